"""The face of every ranker: fit, predict, rank, sample, save."""

from __future__ import annotations

import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.fairness import position_bias
from rankpolicy.policies.mixture import Mixture
from rankpolicy.policies.plackett_luce import PlackettLuce
from rankpolicy.rankers.inputs import (
    Groups,
    check_features,
    check_kind_of_data,
    dataset_to_rank,
    training_dataset,
    validation_dataset,
    with_groups,
)
from rankpolicy.settings import check_settings
from rankpolicy.types import RankPolicyError


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions:
    """Options of one call of ``fit`` beside the data.

    Parameters
    ----------
    progress
        Whether to show a progress bar on stderr; None: when that is a terminal.
    checkpoint
        A file that is written after every epoch; None: none.
    resume
        Whether to continue from the checkpoint if it exists.
    """

    progress: bool | None
    checkpoint: Path | None
    resume: bool


Course = FitOptions


class Ranker(ABC):
    """A method that learns scores; its policy is Plackett-Luce over these scores, or a mixture of rankings.

    Rankers that are fair to groups when they rank take ``protected`` beside qid and group, as fit does; others leave them unread.
    Constructors only store their settings, so ``get_params``, ``set_params`` and scikit-learn's ``clone`` work.
    """

    name: ClassVar[str]
    uses_query_weights: ClassVar[bool] = False  # whether it learns more from queries that count more
    ranks_by_sorting: ClassVar[bool] = True  # whether it learns scores to sort by; else the policy is what it learns
    # What `compare` tries on validation data, each a change of settings; the first is the default.
    settings_to_try: ClassVar[tuple[dict[str, Any], ...]] = ({},)

    fitted_attributes: ClassVar[tuple[str, ...]] = (
        "num_features_",
        "feature_names_",
        "best_iteration_",
        "best_score_",
        "evals_result_",
        "click_report_",
    )

    num_features_: int
    feature_names_: list[str] | None  # where the training data had names
    best_iteration_: int
    best_score_: float | None
    evals_result_: dict[str, dict[str, list[float]]]
    click_report_: dict[str, Any] | None  # the click_evidence of the training data; None without clicks

    def __post_init__(self) -> None:
        self._check_settings()

    def _check_settings(self) -> None:
        """Refuse settings of a wrong kind or range, or that nothing would read."""
        check_settings(self)

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        protected: Groups | None = None,
        valid: RankingDataset | None = None,
        eval_set: Sequence[tuple[Any, ArrayLike]] | None = None,
        eval_qid: Sequence[ArrayLike] | None = None,
        eval_group: Sequence[ArrayLike] | None = None,
        progress: bool | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn from a RankingDataset, or from a feature matrix with labels and queries.

        To learn from clicks, make the dataset with ``dataset_from_clicks`` (a log) or ``weighted_by_propensity`` (a click table);
        ``click_report_`` then holds the number of clicks and their effective sample size. With validation data, training stops when it
        no longer helps there, and the best state is kept.

        Parameters
        ----------
        X
            A RankingDataset; a feature matrix or frame, one row per item; or a click table, a frame with the columns query_text,
            item_text and clicked.
        y
            The label of each row of a matrix; a RankingDataset holds its own.
        qid
            The query id of each row of a matrix, in any order.
        group
            The number of rows of each query, instead of ``qid``, where the rows of a query follow one another.
        protected
            The protected group of each item, for fair rankers: one value per row, or a function of the dataset.
        valid
            Validation data as a RankingDataset. Weight validation clicks as the training clicks: ``weighted_by_propensity(valid, bias)``.
        eval_set
            Validation data as ``[(Xv, yv)]``, the calling form of LightGBM and XGBoost.
        eval_qid
            The query ids of ``eval_set``, as ``[qid]``.
        eval_group
            The query sizes of ``eval_set``, as ``[sizes]``.
        progress
            Whether to show a progress bar on stderr; by default when that is a terminal.
        checkpoint
            A file for the training state, written after every epoch.
        resume
            Whether to continue from ``checkpoint`` if the file exists.
        """
        self._check_settings()
        train = training_dataset(X, y, qid, group)
        if protected is not None:
            train = with_groups(train, protected, given_in_rows=not isinstance(X, RankingDataset))
        check_kind_of_data(train, reads_texts=self._reads_texts, what="training data")
        self._check_clicks(train)
        self.click_report_ = None if train.click_evidence is None else train.click_evidence.to_dict()
        validation = validation_dataset(valid, eval_set, eval_qid, eval_group)
        if validation is not None:
            if callable(protected):
                validation = with_groups(validation, protected, given_in_rows=False)
            check_kind_of_data(validation, reads_texts=self._reads_texts, what="validation data")
            check_features(validation, train.num_features, train.feature_names, what="validation data")
        if resume and checkpoint is None:
            raise RankPolicyError("resume=True needs checkpoint=, the file to go on from.")
        if checkpoint is not None and Path(checkpoint).is_dir():
            raise RankPolicyError(f"checkpoint must name a file; {checkpoint} is a directory. Name a file in it.")
        self._fit(
            train,
            validation,
            Course(progress=progress, checkpoint=None if checkpoint is None else Path(checkpoint), resume=resume),
        )
        self.num_features_ = train.num_features
        self.feature_names_ = None if train.feature_names is None else list(train.feature_names)
        return self

    def predict(
        self,
        X: Any,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        protected: Groups | None = None,
    ) -> NDArray[np.float64]:
        """One score per row (rows as given); higher is better."""
        dataset = self._to_rank(X, qid, group, protected, needs_queries=self._needs_queries)
        scores = self._scores(dataset)
        return scores if isinstance(X, RankingDataset) else dataset.in_source_order(scores)

    def rank(
        self,
        X: Any,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        protected: Groups | None = None,
    ) -> list[NDArray[np.int64]]:
        """For each query (in order of first appearance) its rows of X, best first."""
        dataset = self._to_rank(X, qid, group, protected)
        order = np.lexsort((np.arange(dataset.num_items), -self._scores(dataset), dataset.query_of_item))
        return np.split(_rows_as_given(X, dataset)[order], dataset.offsets[1:-1])

    def sample(
        self,
        X: Any,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        protected: Groups | None = None,
        num_samples: int = 1,
        random_state: int | None = None,
    ) -> list[NDArray[np.int64]]:
        """For each query, rankings drawn from the policy: rows of X (sample, position)."""
        if not isinstance(num_samples, int | np.integer) or num_samples < 1:
            raise RankPolicyError(f"num_samples must be a whole number, 1 or more; got {num_samples!r}.")
        dataset = self._to_rank(X, qid, group, protected)
        generator = torch.Generator()
        if random_state is None:
            generator.seed()
        else:
            generator.manual_seed(random_state)
        rankings = self._policy_of(dataset).sample(num_samples, generator=generator).numpy()
        rows = _rows_as_given(X, dataset)
        return [
            rows[start + rankings[:, query, :size]]
            for query, (start, size) in enumerate(zip(dataset.offsets[:-1], dataset.sizes, strict=True))
        ]

    def exposure(
        self,
        X: Any,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        protected: Groups | None = None,
        rank_weights: ArrayLike | None = None,
        cutoff: int | None = None,
    ) -> NDArray[np.float64]:
        """Expected exposure of each row (rows as given) under the policy, exact: E[weight of its rank], by default 1 / log2(1 + rank)."""
        dataset = self._to_rank(X, qid, group, protected)
        weights = None if rank_weights is None else torch.from_numpy(np.array(rank_weights, dtype=np.float64))
        if weights is not None and (weights.ndim != 1 or not weights.isfinite().all()):
            raise RankPolicyError(
                f"rank_weights must be finite numbers, one a rank from the first; got shape {tuple(weights.shape)}, {rank_weights!r:.60}."
            )
        if cutoff is not None and (not isinstance(cutoff, int | np.integer) or cutoff < 1):
            raise RankPolicyError(f"cutoff must be a whole number, 1 or more; got {cutoff!r}.")
        if weights is None:
            weights = position_bias(int(dataset.sizes.max()), dtype=torch.float64)
        exposure = self._policy_of(dataset).exposure(weights[:cutoff])
        flat = dataset.padding().unpad(exposure).numpy()
        return flat if isinstance(X, RankingDataset) else dataset.in_source_order(flat)

    def policy(
        self,
        X: Any,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        protected: Groups | None = None,
    ) -> PlackettLuce | Mixture:
        """The policy over the queries of X, padded to (query, item)."""
        return self._policy_of(self._to_rank(X, qid, group, protected))

    def save(self, path: str | Path) -> None:
        """Write one file that ``rankpolicy.load`` reads: weights, settings, versions and checksums; no pickle."""
        from rankpolicy.rankers.bundle import save_ranker

        self._require_fitted()
        save_ranker(self, Path(path))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings, by name (scikit-learn's protocol)."""
        return {name: getattr(self, name) for name in self.setting_names()}

    def set_params(self, **settings: Any) -> Self:
        """Change settings by name (scikit-learn's protocol)."""
        known = self.setting_names()
        for name, value in settings.items():
            if name not in known:
                raise RankPolicyError(f"{type(self).__name__} has no setting {name!r}. Known: {', '.join(known)}.")
            setattr(self, name, value)
        return self

    @classmethod
    def setting_names(cls) -> tuple[str, ...]:
        return tuple(inspect.signature(cls).parameters)

    def __repr__(self) -> str:
        defaults = {name: parameter.default for name, parameter in inspect.signature(type(self)).parameters.items()}
        changed = (f"{name}={value!r}" for name, value in self.get_params().items() if value != defaults[name])
        return f"{type(self).__name__}({', '.join(changed)})"

    @property
    def is_fitted(self) -> bool:
        return hasattr(self, "num_features_")

    def _require_fitted(self) -> None:
        if not self.is_fitted:
            raise RankPolicyError(
                f"this {type(self).__name__} is not fitted yet: call fit(train) or rankpolicy.load(path) first."
            )

    def _check_clicks(self, train: RankingDataset) -> None:
        """Refuse weighted clicks where weights have no effect; warn of position bias in clicks without weights."""
        if not self.uses_query_weights and (train.query_weights is not None or train.label_kind == "relevances"):
            from rankpolicy.rankers import RANKERS

            able = ", ".join(ranker.__name__ for ranker in RANKERS.values() if ranker.uses_query_weights)
            raise RankPolicyError(
                f"{type(self).__name__} does not use query weights, which weighted data and clicks need. These rankers use them: {able}."
            )
        has_ranks = train.shown is not None and train.shown.ranks is not None
        if train.label_kind == "clicks" and has_ranks and train.query_weights is None:
            warnings.warn(
                "this learns from clicks as they are, position bias included. Weight them: weighted_by_propensity(train, propensities), "
                "with those of estimate_position_bias, or with propensities of 1 if that is meant.",
                stacklevel=3,
            )

    def _to_rank(
        self,
        X: Any,
        qid: ArrayLike | None,
        group: ArrayLike | None,
        protected: Groups | None,
        *,
        needs_queries: bool = True,
    ) -> RankingDataset:
        self._require_fitted()
        dataset = dataset_to_rank(X, qid, group, protected, needs_queries=needs_queries)
        check_kind_of_data(dataset, reads_texts=self._reads_texts, what="data to rank")
        if self._reads_texts:
            return dataset
        check_features(dataset, self.num_features_, self.feature_names_, what="data to rank")
        return dataset

    def _policy_of(self, dataset: RankingDataset) -> PlackettLuce | Mixture:
        padding = dataset.padding()
        return PlackettLuce(padding.pad(torch.from_numpy(self._scores(dataset))), padding.mask)

    @property
    def _reads_texts(self) -> bool:
        """Whether this ranker learns from texts instead of features."""
        return False

    @property
    def _needs_queries(self) -> bool:
        """Whether the score of an item depends on the other items of its query."""
        return False

    @abstractmethod
    def _fit(self, train: RankingDataset, valid: RankingDataset | None, course: Course) -> None: ...

    @abstractmethod
    def _scores(self, dataset: RankingDataset) -> NDArray[np.float64]:
        """Flat scores (items,) in the dataset's order."""

    @abstractmethod
    def _files(self) -> dict[str, bytes]:
        """The fitted state as named files of the bundle."""

    @abstractmethod
    def _restore(self, files: dict[str, bytes]) -> None:
        """Take the fitted state from those files."""


def _rows_as_given(X: Any, dataset: RankingDataset) -> NDArray[np.int64]:
    """Row of X of each item: its own index in a dataset, its source row in an array."""
    return np.arange(dataset.num_items) if isinstance(X, RankingDataset) else dataset.source_rows
