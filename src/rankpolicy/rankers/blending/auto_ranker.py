"""One ranker for data of any kind: trees and networks, blended by what they are worth on validation data."""

from __future__ import annotations

import json
import math
import secrets
import warnings
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
import torch
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.settings import HIGHEST_SEED, seed_setting, setting, settings_class
from rankpolicy.declarations.values import settings_by_method
from rankpolicy.evaluation.bootstrap import bootstrap_interval
from rankpolicy.evaluation.measure import evaluate_scores, mean_over_queries
from rankpolicy.metrics import reward_to_maximise
from rankpolicy.metrics.expression import reward_for_labels
from rankpolicy.rankers.base import Ranker
from rankpolicy.rankers.blending.blend import chosen_share, chosen_sharpness, is_better
from rankpolicy.rankers.blending.gating import Columns, features_that_matter
from rankpolicy.rankers.blending.member_fits import Clock, Member, Part, Stop, Task, fit_rounds, mean_scores
from rankpolicy.rankers.blending.recipe import (
    DEFAULT_METHODS,
    EXAMPLE,
    INSTEAD_OF,
    METHODS,
    blended_methods,
    check_methods,
    is_tree_method,
    new_gate,
    new_member,
    ranker_class_of,
    why_left_out,
)
from rankpolicy.rankers.fits import DECISIVE, FitOptions
from rankpolicy.training import epoch_progress
from rankpolicy.types import RankPolicyError, Reward

if TYPE_CHECKING:
    from rankpolicy.rankers.exporting.graph import Graph

Floats = NDArray[np.float64]
_STATE = "blend.json"
_KINDS = ("trees", "networks")
_FEWEST_QUERIES = 2  # to learn from some and validate on others


@final
@settings_class
class AutoRanker(Ranker):
    """The best ranker for this data, without a choice of method or settings: boosted trees and networks, blended.

    Boosted trees follow LambdaRank gradients or predict labels (least squares), each with three settings; networks maximise the expected
    reward of a policy (exact policy gradients) or predict labels, two or three of each. Networks read only the features that gain more in
    boosted trees than any feature does whose values were shuffled (``feature_gate``). Networks that also read how far an item is from the
    mean of its query take the place of the other least-squares networks where that is better by more than a standard error on validation
    data; then predict needs queries. Scores are divided by their standard deviation within queries and averaged over methods; the share of
    networks against trees is the one that ranks validation data best, of those within a standard error of it the nearest to one half. The
    Plackett-Luce policy of the blend is the softest one that keeps 98 % of what sorting gains over a random order.

    With validation data every member is fitted on the training data and stopped by the validation data. Without, the queries are cut into
    ``num_folds`` folds: a member learns from all folds but one and is stopped by that one, and the choices are made on all queries, each
    scored by members that have not seen it. Ranking then averages the members of all folds.

    After fit, ``report_`` holds the members (method, features read, weight in the blend, iterations, seconds, validation reward), the
    validation reward of each method and of the blend with intervals, the shares, and which methods were left out and why.
    """

    name: ClassVar[str] = "auto"
    uses_query_weights: ClassVar[bool] = True
    learns_from_relevances: ClassVar[bool] = True
    ranks_by_sorting: ClassVar[bool] = False
    fitted_attributes: ClassVar[tuple[str, ...]] = (*Ranker.fitted_attributes, "report_")

    reward: Any = setting(
        "ndcg@10",
        "What is maximised, and what choices on validation data are made by. Boosted policies maximise ndcg@10 where this is not a sum of "
        "rank weights times item values.",
    )
    time_limit: float | None = setting(
        None,
        "Seconds that fit may take. Members that would take longer are stopped early or left out; None fits all of them.",
        above=0,
    )
    methods: tuple[str, ...] = setting(
        DEFAULT_METHODS, "The methods that are blended, in the order in which they are fitted.", choices=blended_methods
    )
    method_settings: Mapping[str, Any] | str | None = setting(
        None,
        f"Settings of these methods by name, a dict (or its text) such as {EXAMPLE}, which go before those of the recipe.",
    )
    feature_gate: bool = setting(
        True,
        "Whether networks read only the features that matter to trees; False: all features. Without LightGBM, all.",
    )
    num_folds: int = setting(5, "Folds of the training data where there is no validation data.", at_least=2)
    random_state: int | None = seed_setting(0, "Seed of folds and members. None draws a new one each time.")
    device: str = setting("cpu", """Torch device of the networks, such as "cpu", "cuda" or "auto".""")
    jobs: int | None = setting(
        None, "Members that are fitted at once, each on one thread; None: as many as torch may use threads.", at_least=1
    )

    report_: dict[str, Any] | None = field(default=None, init=False)

    def _check_settings(self) -> None:
        super()._check_settings()
        check_methods(self.methods)
        self._given_settings()

    def _given_settings(self) -> dict[str, dict[str, Any]]:
        by_method = settings_by_method(
            self.method_settings, self.methods, name="method_settings", of="methods", example=EXAMPLE
        )
        for method, settings in by_method.items():
            new_member(method, 0, settings, reward=self.reward, random_state=0, device=self.device)
        return by_method

    def _fit(self, train: RankingDataset, valid: RankingDataset | None, options: FitOptions) -> None:
        options.refuse_checkpoint("AutoRanker keeps no checkpoints: give it a time_limit instead.")
        clock = Clock(self.time_limit, options.report.interruption)
        left_out = {method: why for method in self.methods if (why := why_left_out(method, train))}
        seed = secrets.randbelow(HIGHEST_SEED) if self.random_state is None else self.random_state
        parts, folds = self._parts(train, valid, seed)
        rounds = self._rounds([method for method in self.methods if method not in left_out], parts, seed)
        found: dict[tuple[int, int], Member] = {}
        refused: RankPolicyError | None = None
        fits = fit_rounds(
            rounds,
            parts,
            clock,
            num_workers=self.jobs or torch.get_num_threads(),
            choose_columns=lambda part, stop: self._columns(part, seed, stop),
        )
        with (
            epoch_progress("AutoRanker", sum(map(len, rounds)), options.report) as report_member,
            warnings.catch_warnings(),
            closing(fits),
        ):
            warnings.filterwarnings("ignore", "this learns from clicks as they are")  # the blend has said so
            for number, (place, result) in enumerate(fits, 1):
                if options.report.interruption.is_requested:  # by Ctrl-C, which has cut this member short
                    break
                if isinstance(result, Member):
                    found[place] = result
                    score = result.ranker.best_score_
                    if report_member(number, {} if score is None else {result.method: score}):
                        break
                else:
                    task, refused = result
                    left_out[task.method] = str(refused)
        members = [found[place] for place in sorted(found)]
        members = [member for member in members if member.method not in left_out]
        if not members:
            raise refused or RankPolicyError(
                f"no method is left to learn from this data: {'; '.join(f'{m}: {why}' for m, why in left_out.items())}."
            )
        if left_out:
            texts = "; ".join(f"{method}: {why}" for method, why in left_out.items())
            warnings.warn(f"AutoRanker goes without some of its methods. {texts}", stacklevel=4)
        self._members = members
        self._choose(train, valid, folds)
        assert self.report_ is not None
        self.report_["left_out"] = left_out
        for entry, member in zip(self.report_["members"], self._members, strict=True):
            entry["features"] = None if member.columns is None else _names_of(member.columns, train)

    def _columns(self, part: Part, seed: int, stop: Stop) -> Columns | None:
        """The features that networks read of a part of the data; None: all."""
        trees = new_gate(reward=self.reward, random_state=seed, is_validated=part.valid is not None)
        if not self.feature_gate or trees is None:
            return None
        try:
            return features_that_matter(part.train, part.valid, trees, stop=stop.is_over)
        except RankPolicyError:  # no feature splits the items
            return None

    def _parts(
        self, train: RankingDataset, valid: RankingDataset | None, seed: int
    ) -> tuple[list[Part], NDArray[np.int64] | None]:
        """The data of the members, and without validation data the fold of each query."""
        if valid is not None:
            return [Part(train=train, valid=valid)], None
        if train.num_queries < _FEWEST_QUERIES:
            return [Part(train=train, valid=None)], None
        num_folds = min(self.num_folds, train.num_queries)
        folds = np.random.default_rng(seed).permutation(np.arange(train.num_queries) % num_folds)
        queries = [np.flatnonzero(folds == fold) for fold in range(num_folds)]
        others = [np.flatnonzero(folds != fold) for fold in range(num_folds)]
        return [Part(train=train[a], valid=train[b]) for a, b in zip(others, queries, strict=True)], folds

    def _rounds(self, methods: Sequence[str], parts: Sequence[Part], seed: int) -> list[list[Task]]:
        """With folds one round per fold, else one per variant of the settings; the first round has every method."""
        settings_of = self._given_settings()
        num_rounds = len(parts) if len(parts) > 1 else max((len(METHODS[method]) for method in methods), default=0)
        rounds: list[list[Task]] = []
        for number in range(num_rounds):
            part = number if len(parts) > 1 else 0
            rounds.append(
                [
                    Task(
                        method=method,
                        part=part,
                        is_gated=not is_tree_method(method),
                        ranker=new_member(
                            method,
                            number,
                            settings_of[method],
                            reward=self.reward,
                            random_state=(seed + number) % HIGHEST_SEED,
                            device=self.device,
                            is_validated=parts[part].valid is not None,
                        ),
                    )
                    for method in methods
                    if len(parts) > 1 or number < len(METHODS[method])
                ]
            )
        return rounds

    def _choose(self, train: RankingDataset, valid: RankingDataset | None, folds: NDArray[np.int64] | None) -> None:
        """The share of networks and the sharpness of the policy, by scores of data that members have not learned from."""
        self._share, self._sharpness = 0.5 if len(self._kinds()) > 1 else float("networks" in self._kinds()), 1.0
        self.best_iteration_, self.best_score_, self.evals_result_ = 1, None, {}
        held_out = self._held_out(train, valid, folds)
        if held_out is None:
            self._members = [member for member in self._members if member.method not in INSTEAD_OF] or self._members
            self.report_ = self._report({})
            return
        dataset, by_method = held_out
        reward = reward_for_labels(reward_to_maximise(self.reward), dataset.label_kind)
        self._drop_alternatives(by_method, dataset, reward)
        used = {member.method for member in self._members}
        kinds = {
            kind: _mean({method: each for method, each in by_method.items() if method in used}, kind)
            for kind in self._kinds()
        }
        if len(kinds) > 1:
            self._share = chosen_share(kinds["trees"], kinds["networks"], dataset, reward)
        blended = sum(self._weight(kind) * scores for kind, scores in kinds.items())
        soft = reward if reward.is_additive else reward_for_labels(reward_to_maximise("ndcg@10"), dataset.label_kind)
        self._sharpness = chosen_sharpness(np.asarray(blended), dataset, soft)
        scores = by_method | {"blend": np.asarray(blended)}
        self.report_ = self._report({name: _measured(each, dataset, reward) for name, each in scores.items()})
        score = self.report_["reward"]["blend"]["mean"]
        if valid is None:
            self.evals_result_["out of fold"] = {reward.name: [score]}
        else:
            self.best_score_, self.evals_result_[DECISIVE] = score, {reward.name: [score]}

    def _drop_alternatives(self, by_method: Mapping[str, Floats], dataset: RankingDataset, reward: Reward) -> None:
        """Of two methods of which one may stand in for the other, keep the one whose mean with all others is better."""
        for method, usual in INSTEAD_OF.items():
            if not {method, usual} <= set(by_method):
                continue
            other_scores = [each for name, each in by_method.items() if name not in (method, usual)]
            with_method, with_usual = (np.mean([by_method[name], *other_scores], axis=0) for name in (method, usual))
            dropped = usual if is_better(with_method, with_usual, dataset, reward) else method
            self._members = [member for member in self._members if member.method != dropped]

    def _held_out(
        self, train: RankingDataset, valid: RankingDataset | None, folds: NDArray[np.int64] | None
    ) -> tuple[RankingDataset, dict[str, Floats]] | None:
        """Data to choose by, and the scores (items,) that each method gives it without having learned from it."""
        methods = list(dict.fromkeys(member.method for member in self._members))
        if valid is not None:
            return valid, {method: mean_scores(self._of(method), valid) for method in methods}
        if folds is None:
            return None
        complete_folds = [
            part
            for part in range(int(folds.max()) + 1)
            if {member.method for member in self._members if member.part == part} == set(methods)
        ]
        if not complete_folds:  # Ctrl-C came before any fold was done
            return None
        queries = np.flatnonzero(np.isin(folds, complete_folds))
        dataset = train[queries]
        scores = {method: np.empty(dataset.num_items) for method in methods}
        for part in complete_folds:
            query_indices = np.flatnonzero(folds[queries] == part)
            items = np.isin(dataset.query_numbers, query_indices)
            for method in methods:
                members = [member for member in self._of(method) if member.part == part]
                scores[method][items] = mean_scores(members, dataset[query_indices])
        return dataset, scores

    def _of(self, method: str) -> list[Member]:
        return [member for member in self._members if member.method == method]

    def _kinds(self) -> list[str]:
        present = {_kind(member.method) for member in self._members}
        return [kind for kind in _KINDS if kind in present]

    def _weight(self, kind: str) -> float:
        return self._share if kind == "networks" else 1 - self._share

    def _report(self, rewards: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "members": [
                {
                    "method": member.method,
                    "fold": member.part,
                    "iterations": member.ranker.best_iteration_,
                    "seconds": round(member.seconds, 3),
                    "reward": member.ranker.best_score_,
                    "weight": self._weight_in_blend(member),
                }
                for member in self._members
            ],
            "reward": dict(rewards),
            "share_of_networks": self._share,
            "sharpness": self._sharpness,
        }

    def _scores(self, dataset: RankingDataset) -> Floats:
        scores = np.zeros(dataset.num_items)
        for member, factor in self._factors():
            scores += factor * member.raw_scores(dataset)
        return scores

    @property
    def _needs_queries(self) -> bool:
        self._require_fitted()
        return any(member.ranker._needs_queries for member in self._members)

    def _onnx_scores(self, graph: Graph) -> str:
        total: str | None = None
        for member, factor in self._factors():
            with graph.reading(member.columns):
                scores = member.ranker._onnx_scores(graph)
            column = graph.add("Reshape", graph.cast(scores, np.float64), np.array([-1]))
            scaled = graph.add("Mul", column, np.float64(factor))
            total = scaled if total is None else graph.add("Add", total, scaled)
        assert total is not None, "a blend has members"
        return total

    def _weight_in_blend(self, member: Member) -> float:
        """The share of a member in the blend: methods of a kind have equal shares, and so have the members of a method."""
        kind = _kind(member.method)
        num_methods = len({other.method for other in self._members if _kind(other.method) == kind})
        return self._weight(kind) / (len(self._of(member.method)) * num_methods)

    def _factors(self) -> list[tuple[Member, float]]:
        """Each member that counts, and the factor on its scores."""
        weights = [(member, self._weight_in_blend(member)) for member in self._members]
        return [
            (member, self._sharpness * weight / member.spread)
            for member, weight in weights
            if member.spread > 0 and weight > 0
        ]

    def _files(self) -> dict[str, bytes]:
        state = {
            "share": self._share,
            "sharpness": self._sharpness,
            "members": [
                {
                    "method": member.method,
                    "part": member.part,
                    "columns": None if member.columns is None else member.columns.tolist(),
                    "spread": member.spread,
                    "seconds": member.seconds,
                    **{key: member.ranker.to_dict()[key] for key in ("settings", "fitted")},
                }
                for member in self._members
            ],
        }
        files = {_STATE: json.dumps(state).encode()}
        for number, member in enumerate(self._members):
            files |= {f"member_{number}/{name}": content for name, content in member.ranker._files().items()}
        return files

    def _restore(self, files: dict[str, bytes]) -> None:
        from rankpolicy.rankers.restoring import restored_ranker

        state = json.loads(files[_STATE])
        self._share, self._sharpness = float(state["share"]), float(state["sharpness"])
        if not (0 <= self._share <= 1 and 0 < self._sharpness < math.inf):
            raise RankPolicyError("the shares of the blend are damaged. Copy or train the model again.")
        self._members = []
        for number, saved in enumerate(state["members"]):
            if saved["method"] not in METHODS or not 0 <= float(saved["spread"]) < math.inf:
                raise RankPolicyError(f"member {number} of the blend is damaged. Copy or train the model again.")
            columns = None if saved["columns"] is None else np.array(saved["columns"], np.int64)
            if columns is not None and not _are_places(columns, self.num_features_):
                raise RankPolicyError(
                    f"the features of member {number} of the blend are damaged. Copy or train the model again."
                )
            prefix = f"member_{number}/"
            member_files = {name.removeprefix(prefix): files[name] for name in files if name.startswith(prefix)}
            manifest = {
                "ranker": ranker_class_of(saved["method"]).name,
                "settings": saved["settings"],
                "fitted": saved["fitted"],
            }
            ranker = restored_ranker(manifest, member_files, what=f"member {number} of the blend")
            self._members.append(
                Member(
                    method=saved["method"],
                    part=int(saved["part"]),
                    ranker=ranker,
                    columns=columns,
                    spread=float(saved["spread"]),
                    seconds=float(saved["seconds"]),
                )
            )
        if not self._members:
            raise RankPolicyError("the blend has no members. Copy or train the model again.")


def _names_of(columns: Columns, train: RankingDataset) -> list[str | int]:
    """Names of features, or their numbers where they have none."""
    return [int(column) if train.feature_names is None else train.feature_names[column] for column in columns]


def _are_places(columns: Columns, num_features: int) -> bool:
    """Whether these are ascending numbers of features, one or more."""
    bounds = np.concatenate([[-1], columns, [num_features]])
    return columns.ndim == 1 and len(columns) > 0 and bool((np.diff(bounds) > 0).all())


def _kind(method: str) -> str:
    return "trees" if is_tree_method(method) else "networks"


def _mean(by_method: Mapping[str, Floats], kind: str) -> Floats:
    return np.asarray(np.mean([scores for method, scores in by_method.items() if _kind(method) == kind], axis=0))


def _measured(scores: Floats, dataset: RankingDataset, reward: Reward) -> dict[str, Any]:
    """Mean reward of sorting by scores, with its interval over queries."""
    rewards = evaluate_scores(scores, dataset, [reward])[:, 0]
    low, high = bootstrap_interval(rewards, query_weights=dataset.query_weights)
    return {"mean": mean_over_queries(rewards, dataset.query_weights), "interval": [low, high]}
