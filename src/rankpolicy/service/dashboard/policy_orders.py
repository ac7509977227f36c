"""Why a policy orders the items of a query as it does: what it knows, and which lists it would show now."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from rankpolicy.bandits.index import AnyIndexBandit, CountIndex, ThompsonSampling
from rankpolicy.bandits.per_query.keys import keys_of, mixed_keys
from rankpolicy.bandits.per_query.query_bandit import QueryBandit
from rankpolicy.service.dashboard.click_rates import share_with_interval
from rankpolicy.service.domain.messages import RankRequest
from rankpolicy.service.learning.live import LivePolicy
from rankpolicy.service.policies.query_bandit import BanditPolicy
from rankpolicy.types import RankPolicyError

DRAWS = 100  # lists drawn to see how often an item is shown


def explained(live: LivePolicy, request: RankRequest) -> dict[str, Any]:
    """What a policy would do with a request now. Nothing is stored, nothing learned."""
    facts: dict[str, Any] = {
        "policy": live.version.policy,
        "version": live.version.number,
        "kind": live.version.kind,
        "settings": live.version.settings,
    }
    draws = DRAWS if live.policy.is_quick else 1
    shown: Counter[str] = Counter()
    first: Counter[str] = Counter()
    scores: dict[str, float] = {}
    try:
        for _ in range(draws):
            ordered = live.order(request, generator=np.random.default_rng(secrets.randbits(64)))
            shown.update(ordered.items)
            first.update(ordered.items[:1])
            if ordered.scores is not None:
                scores |= dict(zip(ordered.items, ordered.scores, strict=True))
    except RankPolicyError as error:  # a ranker whose features the request does not have
        return facts | {"draws": 0, "items": [], "why_none": str(error)}
    names = [item.id for item in request.items]
    counts, indices = live.look(lambda policy: _of_bandit(policy, request.query, names))
    items: list[dict[str, Any]] = []
    for name in names:
        clicks, seen = counts.get(name, (None, None))
        items.append(
            {
                "id": name,
                "shown": shown[name] / draws,
                "first": first[name] / draws,
                "score": scores.get(name, indices.get(name)),
                "clicks": clicks,
                "observations": seen,
                **share_with_interval(clicks or 0, seen or 0),
            }
        )
    items.sort(key=lambda item: (-item["first"], -item["shown"], -(item["rate"] or 0.0)))
    return facts | {"draws": draws, "items": items, "why_none": None, "has_counts": bool(counts)}


def _of_bandit(policy: Any, query: str, names: list[str]) -> tuple[dict[str, tuple[int, int]], dict[str, float]]:
    """Clicks and observations of items in the bandit of a policy, and their indices if they are not drawn."""
    bandit = next(_bandits(policy), None)
    if bandit is None or not names:
        return {}, {}
    counts = {name: (int(c), int(o)) for name, (c, o) in zip(names, bandit.counts_of(query, names), strict=True)}
    one_list_bandit = bandit._one_list
    index = one_list_bandit._used_index() if isinstance(one_list_bandit, AnyIndexBandit) else None
    if not isinstance(index, CountIndex) or isinstance(index, ThompsonSampling):
        return counts, {}
    settings, unused = np.array(index.numbers(), np.float64), np.random.default_rng(0)
    threshold = index.threshold(_lists_of(bandit, query) + 1.0, settings)
    index_values = {name: index.value(c, o, threshold, settings, unused) for name, (c, o) in counts.items()}
    return counts, {name: value for name, value in index_values.items() if np.isfinite(value)}


def _bandits(policy: Any) -> Iterator[QueryBandit]:
    if isinstance(policy, BanditPolicy):
        yield policy._bandit
    for member in getattr(policy, "members", ()):
        yield from _bandits(member)


def _lists_of(bandit: QueryBandit, query: str) -> float:
    arrays = bandit._arrays()
    rows = np.flatnonzero(arrays["keys"] == mixed_keys(keys_of([query]))[0])
    return float(arrays["counts"][rows[0], 0]) if len(rows) else 0.0
