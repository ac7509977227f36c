"""Learning a ranker from the log, judging it by lists that it has not seen, and promoting it if it is better."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.click_log import log_from_lists
from rankpolicy.clicks.position_bias.bias import PositionBias
from rankpolicy.clicks.position_bias.estimate import estimate_position_bias
from rankpolicy.data.arrays import from_arrays
from rankpolicy.data.click_table.table import from_click_table
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.formats.frames import frame_features
from rankpolicy.optional import require
from rankpolicy.service.domain.messages import ENCODER, REQUEST, Item, RankRequest
from rankpolicy.service.domain.records import LoggedList
from rankpolicy.service.learning.evaluation import restored
from rankpolicy.service.learning.off_policy_evidence import (
    candidate_value,
    compared,
    document_of,
    evidence_of,
    own_rewards,
    refusal_of,
)
from rankpolicy.service.learning.promotion import checked_candidate, promote_model, serving_version
from rankpolicy.service.learning.retrain_settings import Retrain
from rankpolicy.service.log.export import feature_column, features_by_name
from rankpolicy.service.log.store import Store
from rankpolicy.types import RankPolicyError

_DAY = 86_400_000_000


def retrain(store: Store, plan: Retrain, *, now: int, author: str = "retraining") -> dict[str, Any]:
    """Estimate position bias, learn a ranker, judge it, promote it if it is better; what was found, as JSON can hold it.

    Everything is in the audit log. The ranker is judged by the last lists with propensities, and learns from all others.
    """

    def noted(document: dict[str, Any]) -> dict[str, Any]:
        detail = json.dumps({name: _short(value) for name, value in document.items()})
        store.add_change(author, "retrain", plan.policy, detail=detail, now=now)
        return document

    def unchanged(why: str, facts: Mapping[str, Any]) -> dict[str, Any]:
        return noted({"decision": "kept", "why": why} | dict(facts))

    serving = serving_version(store, plan.policy)
    since = now - round(plan.days * _DAY)
    lists = [logged for logged in store.logged(since=since) if logged.deadline < now and logged.shown.items]
    if len(lists) < plan.fewest_lists:
        return unchanged(f"there are {len(lists)} lists; {plan.fewest_lists} are needed", {})
    to_learn, to_judge = _split(lists, plan.judged, now=now)
    bias = estimated_bias(lists, plan)
    content, learned = _learned(to_learn, bias, plan)
    settings: dict[str, Any] = {"order_by": plan.order_by}
    if plan.order_by == "sampled":
        settings["temperature"] = plan.temperature
    candidate = checked_candidate(content, settings)
    evidence = evidence_of(to_judge, now=now, event=plan.event)
    terms: dict[str, Any] = {"estimator": plan.estimator, "level": plan.level}
    estimate = candidate_value(evidence, candidate, **terms)
    own_lists = [logged for logged in to_judge if logged.version == serving.key]
    rewards = own_rewards(own_lists, now=now, event=plan.event)
    comparison = compared(evidence, candidate, restored(store, serving), own_rewards=rewards, **terms)
    judged = document_of(evidence, estimate, comparison)
    document = {"bias": None if bias is None else bias.tolist(), "learned": learned, "judged": judged}
    store.save_model(content, now=now)  # whatever is decided: the audit log names it
    document["model_sha256"] = candidate.model_sha256
    if plan.promote == "by hand":
        return unchanged("promotion is by hand", document)
    if not judged["is_covered"]:
        return unchanged("the log lacks lists that the candidate would show", document)
    if not comparison.interval[0] > 0:
        return unchanged("the lower bound of the difference is not above 0", document)
    noted({"decision": "promoted"} | document)
    facts: dict[str, Any] = {"author": author, "detail": "better by the log", "now": now}
    change = promote_model(store, plan.policy, content, share=plan.share, settings=settings, **facts)
    return {"decision": "promoted", "version": change.version} | document


def _split(lists: Sequence[LoggedList], judged: float, *, now: int) -> tuple[list[LoggedList], list[LoggedList]]:
    """Lists to learn from, and the last of those with propensities to judge by; lists without any are learned from whenever shown."""
    usable = [logged.seq for logged in lists if refusal_of(logged, now=now) is None]
    first = usable[-max(1, round(judged * len(usable)))] if usable else math.inf
    to_judge = [logged for logged in lists if logged.seq >= first]
    usable_seqs = set(usable)
    return [logged for logged in lists if logged.seq < first or logged.seq not in usable_seqs], to_judge


def estimated_bias(lists: Sequence[LoggedList], plan: Retrain) -> NDArray[np.float64] | None:
    """How likely each rank is examined, relative to the first; None where position bias is left in."""
    if plan.bias == "none":
        return None
    chosen = [logged for logged in lists if plan.bias_policy is None or logged.shown.policy == plan.bias_policy]
    if not chosen:
        raise RankPolicyError(f"the policy {plan.bias_policy!r:.80} of bias_policy showed no list in this time.")
    swaps = None
    if plan.bias == "swaps":
        swaps = [(logged.shown.memo or {}).get("swap") or (-1, -1) for logged in chosen]
    log = log_from_lists(
        [logged.shown.query for logged in chosen],
        [logged.shown.items for logged in chosen],
        [logged.clicks(plan.event) for logged in chosen],
    )
    estimate: PositionBias = estimate_position_bias(log, method=plan.bias, num_resamples=0, swaps=swaps)
    propensities = np.array(estimate.propensities, np.float64)
    for rank in range(1, len(propensities)):  # a rank without evidence is taken for the one above it
        if not propensities[rank] > 0:
            propensities[rank] = propensities[rank - 1]
    return propensities


def relevances_of(
    lists: Sequence[LoggedList], bias: NDArray[np.float64] | None, *, event: str, prior: float
) -> tuple[list[RankRequest], NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64]]:
    """Different requests of the lists; relevance of each of their items, whether it was shown, and the number of lists of each request.

    relevance = (clicks + prior * mean) / (examined impressions + prior), where an impression at a rank counts as examined with the
    propensity of that rank, so that neither position bias nor how often an item was shown has an influence.
    """
    indices: dict[bytes, int] = {}
    requests: list[RankRequest] = []
    clicks: list[NDArray[np.float64]] = []
    examined: list[NDArray[np.float64]] = []
    counts: list[float] = []
    for logged in lists:
        request = REQUEST.decode(logged.request)
        key = blake2b(ENCODER.encode((request.query, request.items)), digest_size=16).digest()
        index = indices.setdefault(key, len(requests))
        if index == len(requests):
            requests.append(request)
            clicks.append(np.zeros(len(request.items)))
            examined.append(np.zeros(len(request.items)))
            counts.append(0.0)
        row_of = {item.id: row for row, item in enumerate(requests[index].items)}
        rows = [row_of[name] for name in logged.shown.items]
        chances = np.ones(len(rows)) if bias is None else bias[np.minimum(np.arange(len(rows)), len(bias) - 1)]
        clicks[index][rows] += logged.clicks(event)
        examined[index][rows] += chances
        counts[index] += 1
    all_clicks, all_examined = np.concatenate(clicks), np.concatenate(examined)
    mean = all_clicks.sum() / all_examined.sum()
    with np.errstate(invalid="ignore"):
        values = (all_clicks + prior * mean) / (all_examined + prior)
    return requests, np.nan_to_num(values), all_examined > 0, np.array(counts)


def training_data(
    lists: Sequence[LoggedList],
    bias: NDArray[np.float64] | None,
    *,
    event: str = "click",
    prior: float = 1.0,
    texts: bool,
) -> RankingDataset:
    """The lists as data to learn from: features or texts of the items that were shown, and their relevances."""
    requests, values, is_shown, counts = relevances_of(lists, bias, event=event, prior=prior)
    rows = [(number, request, item) for number, request in enumerate(requests) for item in request.items]
    rows = [row for row, shown in zip(rows, is_shown, strict=True) if shown]
    groups = [item.group for _, _, item in rows]
    protected = None if None in groups else np.array(groups)
    labels = values[is_shown].astype(np.float32)
    if texts:
        data = _text_data(rows)
    else:
        frame, is_named = _feature_frame([item for _, _, item in rows])
        features, categories = frame_features(frame)
        data = from_arrays(
            features,
            qid=np.array([number for number, _, _ in rows]),
            protected=protected,
            feature_names=frame.columns if is_named or categories else None,
        )
        data = replace(data, categories=categories or None)
    ordered = data.in_query_order(labels)
    weights = np.array([counts[int(name)] for name in data.query_ids], np.float64)
    return replace(data, labels_by_query=ordered, label_kind="relevances", query_weights=weights)


def _text_data(rows: Sequence[tuple[int, RankRequest, Any]]) -> RankingDataset:
    polars = require("polars", "Training on texts")
    if not all((item.text or "").strip() for _, _, item in rows):
        raise RankPolicyError("the method reads texts, and items of the log have none.")
    names = list(dict.fromkeys(name for _, _, item in rows for name in (item.side or {})))
    columns: dict[str, list[Any]] = {
        "session": [str(number) for number, _, _ in rows],
        "query_text": [request.query for _, request, _ in rows],
        "item_text": [item.text for _, _, item in rows],
    }
    columns |= {name: [(item.side or {}).get(name) for _, _, item in rows] for name in names}
    return from_click_table(polars.DataFrame(columns, strict=False), needs_clicks=False)


def _feature_frame(items: Sequence[Item]) -> tuple[Any, bool]:
    """The features of items as a frame, null where they are missing, and whether they have names."""
    polars = require("polars", "Training on features")
    first = items[0].features
    is_named = isinstance(first, dict)
    for item in items:
        if item.features is None:
            raise RankPolicyError("the method reads features, and items of the log have none.")
        if isinstance(item.features, dict) != is_named or (not is_named and len(item.features) != len(first or ())):
            raise RankPolicyError(f"items of the log must all have the same features; {item.id!r:.80} has others.")
    rows = [features_by_name(item) for item in items]
    names = list(dict.fromkeys(name for row in rows for name in row))
    names = sorted(names) if is_named else names
    return polars.DataFrame({name: feature_column([row.get(name) for row in rows]) for name in names}), is_named


def _learned(
    lists: Sequence[LoggedList], bias: NDArray[np.float64] | None, plan: Retrain
) -> tuple[bytes, dict[str, Any]]:
    """The file of a ranker learned from lists, and facts about what it learned from."""
    from rankpolicy.rankers.members import ranker_class_named

    ranker = ranker_class_named(plan.method)(**(plan.settings or {}))
    reads_texts = bool(getattr(ranker, "_reads_texts", False))
    data = training_data(lists, bias, event=plan.event, prior=plan.prior, texts=reads_texts)
    ranker.fit(data, progress=False)
    with tempfile.TemporaryDirectory(prefix="rankpolicy-") as folder:
        path = Path(folder) / "model.rp"
        ranker.save(path)
        content = path.read_bytes()
    clicks = sum(sum(logged.clicks(plan.event)) for logged in lists)
    facts = {"lists": len(lists), "clicks": clicks, "requests": data.num_queries, "items": data.num_items}
    return content, facts | {"method": plan.method}


def _short(value: Any) -> Any:
    """Numbers of the audit log with few digits."""
    if isinstance(value, Mapping):
        return {name: _short(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_short(member) for member in value]
    return float(f"{value:.6g}") if isinstance(value, float) and math.isfinite(value) else value
