"""What every ranker does: fit, predict, rank, sample, save."""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

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
from rankpolicy.settings import changed_settings, check_names, check_settings, plain, setting_names
from rankpolicy.types import RankingPolicy, RankPolicyError


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


class Ranker(ABC):
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
        if type(X) is np.ndarray and qid is None and group is None and protected is None:
            quick = self._quick_scores(X)
            if quick is not None:
                return quick
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

    def _plain_settings(self) -> dict[str, Any]:
        return {name: plain(value) for name, value in self.get_params(deep=False).items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings, by name (scikit-learn's protocol).

        Parameters
        ----------
        deep
            Whether to give also the settings of the model, as ``model__hidden``.
        """
        settings = {name: getattr(self, name) for name in self.setting_names()}
        if deep:
            for name, value in self._nested_settings().items():
                settings |= {f"{name}__{each}": getattr(value, each) for each in setting_names(type(value))}
        return settings

    def set_params(self, **settings: Any) -> Self:
        """Change settings by name (scikit-learn's protocol); nothing changes if one of them is refused.

        Parameters
        ----------
        settings
            New values by name; ``model__hidden=(32,)`` changes a setting of the model.
        """
        own = {name: value for name, value in settings.items() if "__" not in name}
        check_names(type(self), own)
        changed = copy.copy(self)
        for name, value in own.items():
            setattr(changed, name, value)
        for name, values in _by_owner(settings).items():
            if name not in self.setting_names():
                check_names(type(self), [name])
            nested = changed._nested_settings().get(name)
            if nested is None:
                raise RankPolicyError(
                    f"{type(self).__name__}: {name}={getattr(changed, name)!r:.60} has no settings; "
                    f"got {', '.join(f'{name}__{each}' for each in values)}."
                )
            check_names(type(nested), values)
            setattr(changed, name, replace(nested, **values))
        changed._check_settings()
        for name in self.setting_names():
            setattr(self, name, getattr(changed, name))
        return self

    def _nested_settings(self) -> Mapping[str, Any]:
        """Settings that have settings themselves, as the values they stand for."""
        return {}

    @classmethod
    def setting_names(cls) -> tuple[str, ...]:
        """The names of the settings, in order."""
        return setting_names(cls)

    def __repr__(self) -> str:
        changed = (f"{name}={value!r}" for name, value in changed_settings(self).items())
        return f"{type(self).__name__}({', '.join(changed)})"

    @property
    def is_fitted(self) -> bool:
        """Whether ``fit`` was called, or the ranker loaded from a file."""
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

    def _quick_scores(self, features: NDArray[Any]) -> NDArray[np.float64] | None:
        """Scores of a plain matrix in which there is nothing to prepare or to refuse; None leaves it to the ordinary way."""
        return None

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


def _by_owner(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """``{"model__hidden": value}`` as ``{"model": {"hidden": value}}``; names without two underscores are left out."""
    by_owner: dict[str, dict[str, Any]] = {}
    for name, value in settings.items():
        owner, nested, rest = name.partition("__")
        if nested:
            by_owner.setdefault(owner, {})[rest] = value
    return by_owner
