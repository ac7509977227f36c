"""What every ranker does: fit, predict, rank, sample, save."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.fairness import position_bias
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
from rankpolicy.rankers.named_settings import NamedSettings
from rankpolicy.settings import plain
from rankpolicy.types import RankingPolicy, RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.clicks.learning.evidence import Propensities
    from rankpolicy.clicks.log.click_log import ClickLog


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


class Ranker(NamedSettings, ABC):
    """A method that learns scores; its policy is Plackett-Luce over these scores, or a mixture of rankings.

    Every ranker is a dataclass whose settings are declared with ``rankpolicy.settings.setting`` and checked when it is made. Constructors
    only store them, so that ``get_params``, ``set_params`` and scikit-learn's ``clone`` work.
    """

    name: ClassVar[str]
    uses_query_weights: ClassVar[bool] = False  # whether queries with higher weights count more in training
    ranks_by_sorting: ClassVar[bool] = True  # whether it learns scores to sort by; otherwise it learns a policy
    # What `compare` tries on validation data, each a change of settings as set_params takes it; the first is the default.
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
    click_report_: dict[str, Any] | None  # what training on clicks rests on (ClickEvidence); None without clicks

    _labels_are_relevances = False  # of the training data: estimated from clicks, item by item

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
        clicks: ClickLog | None = None,
        propensities: Propensities | None = None,
        weighted: str | None = None,
        progress: bool | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn from training data; with validation data, training stops when it no longer helps there, and the best state is kept.

        ``clicks`` is a log of clicks on the items of the dataset, which take the place of its labels; or the dataset is itself a click
        table. ``propensities``, such as ``estimate_position_bias(log)``, undo position bias: ``weighted`` by "item" (relevances by item,
        the default for a log) or by "query" (clicked lists, the default for a click table, and for rewards other than dcg and ndcg,
        which need it). See ``dataset_from_clicks`` and ``weighted_by_propensity``: what they give, with clipping, trust bias or a click
        model's predictions, can be the dataset too, without propensities then. After fit ``click_report_`` says what this rests on. A
        validation click table is weighted too.

        Parameters
        ----------
        X
            A RankingDataset, a matrix or frame of features (rows, features), or a click table.
        y
            The label of each row, where X is a matrix.
        qid
            The query of each row, where X is a matrix; rows of a query may stand anywhere.
        group
            Sizes of the queries, where the rows of X stand query by query; give ``qid`` or ``group``.
        protected
            The protected group of each row, or a function of the dataset that gives it; for fair rankers.
        valid
            Validation data: a RankingDataset or a click table.
        eval_set
            Validation data as LightGBM takes it: a list of one pair of features and labels.
        eval_qid
            A list of one array: the query of each row of ``eval_set``.
        eval_group
            A list of one array: the sizes of the queries of ``eval_set``.
        progress
            Whether to show a progress bar on stderr; None: when that is a terminal.
        checkpoint
            A file that is written after every epoch, for rankers that train in epochs.
        resume
            Whether to continue from the checkpoint if it exists.
        """
        # Here, not above: whoever learns from labels need not wait for what learns from clicks.
        from rankpolicy.rankers.networks.click_training import training_data_from_clicks, validation_data_with_clicks

        self._check_settings()
        train = training_dataset(X, y, qid, group)
        if protected is not None:
            train = with_groups(train, protected, given_in_rows=not isinstance(X, RankingDataset))
        check_kind_of_data(train, reads_texts=self._reads_texts, what="training data")
        if clicks is not None and weighted is None:
            weighted = self._click_weighting()
        train, evidence = training_data_from_clicks(train, clicks, propensities, weighted)
        self._labels_are_relevances = evidence is not None and evidence.weighted == "item"
        self.click_report_ = None if evidence is None else evidence.to_json()
        if evidence is not None or train.query_weights is not None:
            self._check_uses_query_weights()
        validation = validation_dataset(valid, eval_set, eval_qid, eval_group)
        if validation is not None:
            if callable(protected):
                validation = with_groups(validation, protected, given_in_rows=False)
            validation = validation_data_with_clicks(validation, propensities)
            check_kind_of_data(validation, reads_texts=self._reads_texts, what="validation data")
            check_features(validation, train.num_features, train.feature_names, what="validation data")
        if resume and checkpoint is None:
            raise RankPolicyError("resume=True needs checkpoint=, the file to go on from.")
        if checkpoint is not None and Path(checkpoint).is_dir():
            raise RankPolicyError(f"checkpoint must name a file; {checkpoint} is a directory. Name a file in it.")
        self._fit(
            train,
            validation,
            FitOptions(progress=progress, checkpoint=None if checkpoint is None else Path(checkpoint), resume=resume),
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
        """One score per row of X, in its order; higher is better.

        Parameters
        ----------
        X
            A RankingDataset, a matrix or frame of features (rows, features), or a click table.
        qid
            The query of each row, where X is a matrix; rows of a query may stand anywhere.
        group
            Sizes of the queries, where the rows of X stand query by query; give ``qid`` or ``group``.
        protected
            The protected group of each row, or a function of the dataset that gives it; for rankers that rank by groups.
        """
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
        """For each query, in order of first appearance, its rows of X, best first.

        Parameters
        ----------
        X
            A RankingDataset, a matrix or frame of features (rows, features), or a click table.
        qid
            The query of each row, where X is a matrix; rows of a query may stand anywhere.
        group
            Sizes of the queries, where the rows of X stand query by query; give ``qid`` or ``group``.
        protected
            The protected group of each row, or a function of the dataset that gives it; for rankers that rank by groups.
        """
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
        """For each query, rankings drawn from the policy: rows of X (sample, position).

        Parameters
        ----------
        X
            A RankingDataset, a matrix or frame of features (rows, features), or a click table.
        qid
            The query of each row, where X is a matrix; rows of a query may stand anywhere.
        group
            Sizes of the queries, where the rows of X stand query by query; give ``qid`` or ``group``.
        protected
            The protected group of each row, or a function of the dataset that gives it; for rankers that rank by groups.
        num_samples
            How many rankings to draw per query.
        random_state
            Seed; the same seed gives the same rankings. None draws new ones each time.
        """
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
        """Expected exposure of each row of X under the policy, computed exactly: E[weight of its rank].

        Parameters
        ----------
        X
            A RankingDataset, a matrix or frame of features (rows, features), or a click table.
        qid
            The query of each row, where X is a matrix; rows of a query may stand anywhere.
        group
            Sizes of the queries, where the rows of X stand query by query; give ``qid`` or ``group``.
        protected
            The protected group of each row, or a function of the dataset that gives it; for rankers that rank by groups.
        rank_weights
            Weights of the ranks, from the first; by default 1 / log2(1 + rank).
        cutoff
            How many ranks count; None: all.
        """
        dataset = self._to_rank(X, qid, group, protected)
        weights = None if rank_weights is None else torch.from_numpy(np.array(rank_weights, dtype=np.float64))
        if weights is not None and (weights.ndim != 1 or not weights.isfinite().all()):
            raise RankPolicyError(
                f"rank_weights must be finite numbers, one per rank from the first; got shape {tuple(weights.shape)}, {rank_weights!r:.60}."
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
    ) -> RankingPolicy:
        """The policy over the queries of X, padded to (query, item).

        Parameters
        ----------
        X
            A RankingDataset, a matrix or frame of features (rows, features), or a click table.
        qid
            The query of each row, where X is a matrix; rows of a query may stand anywhere.
        group
            Sizes of the queries, where the rows of X stand query by query; give ``qid`` or ``group``.
        protected
            The protected group of each row, or a function of the dataset that gives it; for rankers that rank by groups.
        """
        return self._policy_of(self._to_rank(X, qid, group, protected))

    def save(self, path: str | Path) -> None:
        """Write one file that ``rankpolicy.load`` reads: weights, settings, versions and checksums; no pickle.

        Parameters
        ----------
        path
            Where the file goes, such as "model.rp".
        """
        from rankpolicy.rankers.bundle import save_ranker

        self._require_fitted()
        save_ranker(self, Path(path))

    def to_dict(self) -> dict[str, Any]:
        """Name, settings and (after fit) what was recorded in training, as JSON can hold them.

        A function or torch module among the settings is represented by its name.
        """
        fitted = {name: plain(getattr(self, name)) for name in self.fitted_attributes} if self.is_fitted else {}
        return {"ranker": self.name, "settings": self._plain_settings(), "fitted": fitted}

    @property
    def is_fitted(self) -> bool:
        """Whether ``fit`` was called, or the ranker loaded from a file."""
        return hasattr(self, "num_features_")

    def _require_fitted(self) -> None:
        if not self.is_fitted:
            raise RankPolicyError(
                f"this {type(self).__name__} is not fitted yet: call fit(train) or rankpolicy.load(path) first."
            )

    def _click_weighting(self) -> str:
        """How the clicks of a log are weighted unless that is told."""
        return "item"

    def _check_uses_query_weights(self) -> None:
        if self.uses_query_weights:
            return
        from rankpolicy.rankers import RANKERS

        able = ", ".join(ranker.__name__ for ranker in RANKERS.values() if ranker.uses_query_weights)
        raise RankPolicyError(
            f"{type(self).__name__} knows no query weights, and learning from clicks needs them. These know them: {able}."
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

    def _policy_of(self, dataset: RankingDataset) -> RankingPolicy:
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
    def _fit(self, train: RankingDataset, valid: RankingDataset | None, options: FitOptions) -> None: ...

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
