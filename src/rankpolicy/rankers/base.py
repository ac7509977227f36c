"""What every ranker does: fit, predict, rank, sample, save."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.arrays import Array
from rankpolicy.bundle import check_fitted, write_bundle
from rankpolicy.data.dataset import RankingDataset, check_has_labels
from rankpolicy.data.sparse import is_sparse
from rankpolicy.declarations.arguments import as_float64, checked_kinds, checked_path, checked_seed, whole_number
from rankpolicy.declarations.settings import check_settings, plain, setting_names
from rankpolicy.evaluation.measure import evaluate_scores, mean_over_queries
from rankpolicy.fairness import position_bias
from rankpolicy.metrics import CustomReward, reward_to_maximise
from rankpolicy.metrics.expression import reward_for_labels
from rankpolicy.policies.plackett_luce import PlackettLuce
from rankpolicy.rankers.explained import ExplainedRanker, ranker_html
from rankpolicy.rankers.familiar_names import what_is_meant
from rankpolicy.rankers.fit_inputs import (
    check_can_learn,
    check_clicks,
    check_kind_of_data,
    checked_checkpoint,
    matched_features,
    read_eval_sets,
    refusing_unknown_arguments,
    training_dataset,
)
from rankpolicy.rankers.fits import DECISIVE, FitOptions
from rankpolicy.rankers.inputs import (
    Groups,
    dataset_to_rank,
    dense_blocks,
    with_groups,
)
from rankpolicy.rankers.scikit_learn import ScikitLearnEstimator, not_fitted_error
from rankpolicy.training import Callback, TrainingProgress
from rankpolicy.training.data_parallel import current_worker
from rankpolicy.training.progress import report_options
from rankpolicy.types import RankingPolicy, RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.rankers.exporting.engine_models import Layers, Trees
    from rankpolicy.rankers.exporting.graph import Graph


MOST_SAMPLES = 100_000  # rankings per query in one call: they are held in memory together


class Ranker(ScikitLearnEstimator, ExplainedRanker, ABC):
    """A method that learns scores; its policy is Plackett-Luce over these scores, or a mixture of rankings.

    Every ranker is a dataclass whose settings are declared with ``setting`` and checked when it is made. Constructors only store
    them, so that ``get_params``, ``set_params`` and scikit-learn's ``clone`` work.
    """

    name: ClassVar[str]
    uses_query_weights: ClassVar[bool] = False  # whether queries with higher weights count more in training
    learns_from_relevances: ClassVar[bool] = False  # whether labels may be relevances estimated from clicks
    trains_reward_weights: ClassVar[bool] = False  # whether the weights of a reward "trained_mean(...)" are trained
    scores_sparse: ClassVar[bool] = (
        False  # whether sparse features are scored as they are; otherwise by dense blocks of rows
    )
    learns_from_single_items: ClassVar[bool] = False  # whether it predicts labels, item by item
    compares_groups: ClassVar[bool] = False  # whether it always makes rankings fair between protected groups
    ranks_by_sorting: ClassVar[bool] = True  # whether it learns scores to sort by; otherwise it learns a policy
    # Whether strength and max_disparity are read when data is ranked, so that a trade-off curve takes one fit.
    ranks_at_any_strength: ClassVar[bool] = False
    # What `compare` tries on validation data, each a change of settings as set_params takes it; the first is the default.
    settings_to_try: ClassVar[tuple[dict[str, Any], ...]] = ({},)

    fitted_attributes: ClassVar[tuple[str, ...]] = (
        "num_features_",
        "feature_names_",
        "categories_",
        "best_iteration_",
        "best_score_",
        "evals_result_",
        "click_report_",
    )

    num_features_: int
    feature_names_: list[str] | None  # where the training data had names
    categories_: (
        dict[str, list[str]] | None
    )  # of the categorical columns; a category that is not here counts as missing
    best_iteration_: int
    best_score_: float | None
    evals_result_: dict[str, dict[str, list[float]]]
    interrupted_: bool = False  # whether Ctrl-C ended the last fit, which then kept the best state so far
    click_report_: dict[str, Any] | None  # the click_evidence of the training data; None without clicks

    @classmethod
    def setting_names(cls) -> tuple[str, ...]:
        """The names of the settings, in order."""
        return setting_names(cls)

    def __post_init__(self) -> None:
        self._check_settings()

    def _plain_settings(self) -> dict[str, Any]:
        settings = {name: getattr(self, name) for name in self.setting_names()}
        values = {name: kind.of(settings[name]) for name, kind in self.value_settings.items()}
        return {name: plain(value) for name, value in (settings | values).items()}

    def _check_settings(self) -> None:
        """Refuse settings of a wrong kind or range, or that nothing would read."""
        for name, kind in self.value_settings.items():
            kind.of(getattr(self, name))
        check_settings(self)
        for name in ("reward", "valid_metric"):
            value = getattr(self, name, "objective")
            if name in self.setting_names() and not (isinstance(value, str) and value == "objective"):
                measure = reward_to_maximise(value)
                if getattr(measure, "trained", False) and not (name == "reward" and self.trains_reward_weights):
                    raise RankPolicyError(
                        f"{name} {measure.name!r}: weights are trained by BanditRank's reward only; write mean(...) here."
                    )

    @refusing_unknown_arguments
    def fit(
        self,
        X: Any,
        y: str | ArrayLike | None = None,
        *,
        qid: str | ArrayLike | None = None,
        group: ArrayLike | None = None,
        protected: Groups | None = None,
        sample_weight: ArrayLike | None = None,
        valid: Any = None,
        eval_set: Sequence[tuple[Any, Any]] | tuple[Any, Any] | None = None,
        eval_qid: Any = None,
        eval_group: Any = None,
        eval_names: Sequence[str] | None = None,
        init: Ranker | None = None,
        callbacks: Sequence[Callback | Callable[[TrainingProgress], Any]] | None = None,
        verbose: bool | int | None = None,
        progress: bool | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn from a RankingDataset, or from a feature matrix with labels and queries.

        To learn from clicks, make the dataset with ``dataset_from_clicks`` (a log) or ``weighted_by_propensity`` (a click table);
        ``click_report_`` then holds the number of clicks and their effective sample size. With validation data, training stops when it
        no longer helps there, and the best state is kept.

        Ctrl-C ends training after the present iteration: the ranker is then fitted with the best state so far, a warning says so, and
        ``interrupted_`` is True. Before the first iteration has finished, and at the second time, Ctrl-C is a KeyboardInterrupt.

        Parameters
        ----------
        X
            A RankingDataset; a feature matrix or frame, one row per item; or a click table, a frame with the columns query_text,
            item_text and clicked.
        y
            The label of each row, or the name of a column of the frame; a RankingDataset holds its own.
        qid
            The query id of each row, in any order, or the name of a column of the frame. A frame of which ``y`` or ``qid`` names a column
            is read as by ``from_frame``: the columns item_id and group have their roles, all others are features.
        group
            The number of rows of each query, instead of ``qid``, where the rows of a query follow one another.
        protected
            The protected group of each item, for fair rankers: one value per row, or a function of the dataset.
        sample_weight
            How much each query counts: one weight per query, in the order of first appearance, or one per row, equal within a query.
            Only their ratios matter to networks and trees.
        valid
            Validation data as a RankingDataset, or as a frame where ``y`` and ``qid`` are names of columns. Weight validation clicks as the
            training clicks: ``weighted_by_propensity(valid, bias)``.
        eval_set
            Validation data as ``(Xv, yv)`` or ``[(Xv, yv)]``, the calling form of LightGBM and XGBoost. With several sets the last one
            decides, as in XGBoost, when training stops and which state is kept; the others are only recorded in ``evals_result_``.
        eval_qid
            The query ids of ``eval_set``, as ``[qid]``; arrays, or names of columns.
        eval_group
            The query sizes of ``eval_set``, as ``[sizes]``.
        eval_names
            Names of the validation sets in ``evals_result_``; by default valid_0, valid_1, ...
        init
            A fitted ranker to continue from (fine-tuning): its weights or trees, and its scaling or vocabulary, are kept and trained
            further on this data. For networks any network ranker with the same model; for trees the same kind of ranker, to which up to
            ``num_trees`` trees are added. ``init`` itself does not change.
        callbacks
            Functions of a ``rankpolicy.training.TrainingProgress``, called after every epoch or tree, or ``Callback`` objects, such as
            ``rankpolicy.training.TensorBoard()``. Training stops where one returns True.
        verbose
            False is silent, True shows progress, a number n above 1 a line after every n epochs or trees; None: as ``progress``.
        progress
            Whether to show progress on stderr: a bar in a terminal, elsewhere a line every few seconds. By default it is shown.
        checkpoint
            A file for the training state, written after every epoch.
        resume
            Whether to continue from ``checkpoint``; where the file does not exist yet, training starts afresh with a warning. The
            settings and the data must be those that the checkpoint was made with.
        """
        self._check_settings()
        train = training_dataset(X, y, qid, group, protected=protected, sample_weight=sample_weight)
        train = self._readable_training_data(train, init)
        eval_sets = read_eval_sets(valid, eval_set, eval_qid, eval_group, eval_names, y=y, qid=qid, train=train)
        for name, validation in eval_sets.items():
            with_protected = with_groups(validation, protected) if callable(protected) else validation
            eval_sets[name] = self._readable_validation_data(with_protected, train)
        # Of several sets the last one decides.
        valid_name, decisive = eval_sets.popitem() if eval_sets else (None, None)
        options = FitOptions(
            report=report_options(
                progress, verbose, callbacks, settings={} if callbacks is None else self._plain_settings()
            ),
            checkpoint=checked_checkpoint(checkpoint, resume),
            resume=resume,
            init=init,
            valid_name=valid_name,
            other_sets=eval_sets,
        )
        interruption = options.report.interruption
        # Of workers that train one network together none may stop alone.
        with interruption.caught() if current_worker.get() is None else nullcontext():
            self._fit(train, decisive, options)
        self._note_fit(train, options)
        self.interrupted_ = interruption.is_requested
        if self.interrupted_:
            warnings.warn(
                f"training was interrupted after iteration {interruption.num_finished}; the ranker is fitted with the best so far, "
                f"best_iteration_={self.best_iteration_}.",
                stacklevel=3,
            )
        return self

    def _readable_training_data(self, train: RankingDataset, init: Ranker | None) -> RankingDataset:
        """The training data, with the columns of ``init`` where training continues from it; refuses what nothing can be learned from."""
        check_has_labels(train, "training data")
        check_kind_of_data(train, reads_texts=self._reads_texts, what="training data")
        check_clicks(train, type(self))
        check_can_learn(
            train,
            learns_from_single_items=self.learns_from_single_items,
            has_custom_reward=isinstance(reward_to_maximise(getattr(self, "reward", "ndcg")), CustomReward),
            compares_groups=self.compares_groups,
        )
        self.click_report_ = None if train.click_evidence is None else train.click_evidence.to_dict()
        if init is None:
            return train
        self._check_init(init, train)
        if train.texts_by_query is not None:
            return train
        what = "training data, to continue from init,"
        return matched_features(train, init.num_features_, init.feature_names_, init.categories_, what=what)

    def _readable_validation_data(self, valid: RankingDataset, train: RankingDataset) -> RankingDataset:
        """The validation data with the columns of the training data."""
        what = "validation data"
        check_has_labels(valid, what)
        check_kind_of_data(valid, reads_texts=self._reads_texts, what=what)
        return matched_features(valid, train.num_features, train.feature_names, train.categories, what=what)

    def _note_fit(self, train: RankingDataset, options: FitOptions) -> None:
        """Keep what every fitted ranker knows of its training data, and name the curves as the user does."""
        self.num_features_ = train.num_features
        self.feature_names_ = None if train.feature_names is None else list(train.feature_names)
        self.categories_ = None if train.categories is None else {k: list(v) for k, v in train.categories.items()}
        if options.valid_name is not None:
            self.evals_result_ = self._named_curves(options.valid_name, options.other_sets)

    def _named_curves(self, decisive: str, others: Mapping[str, RankingDataset]) -> dict[str, dict[str, list[float]]]:
        """The curves by the names of the validation sets; a set that training did not follow is measured once, at the end."""
        curves = dict(self.evals_result_)
        of_decisive = curves.pop(DECISIVE, {})
        for name, dataset in others.items():
            if name not in curves:
                measure = reward_for_labels(reward_to_maximise(_metric_of(self)), dataset.label_kind)
                values = evaluate_scores(self._scores(dataset), dataset, [measure])[:, 0]
                curves[name] = {measure.name: [mean_over_queries(values, dataset.query_weights)]}
        return curves | {decisive: of_decisive}

    def predict(
        self,
        X: Any,
        *,
        qid: str | ArrayLike | None = None,
        group: ArrayLike | None = None,
        protected: Groups | None = None,
    ) -> NDArray[np.float64]:
        """One score per row of X, in its order; higher is better. Rows of a RankingDataset are those that it was made from.

        Parameters
        ----------
        X
            A RankingDataset, a matrix or frame of features (rows, features), or a click table. A sparse matrix is scored
            as it is by trees, else some rows at a time; it is never dense as a whole (but with qid or group by linear rankers).
        qid
            The query of each row, where X is a matrix or frame, or the name of a column; rows of a query may stand anywhere.
        group
            Sizes of the queries, where the rows of X stand query by query; give ``qid`` or ``group``.
        protected
            The protected group of each row, or a function of the dataset that gives it; for rankers that rank by groups.
        """
        if qid is None and group is None and protected is None:
            quick = self._quick_scores(X) if type(X) is np.ndarray else None
            if quick is not None:
                return quick
            if not self.scores_sparse and is_sparse(X) and X.shape[0] > 0 and not self._needs_queries:
                return np.concatenate([self.predict(rows) for rows in dense_blocks(X)])
        dataset = self._to_rank(X, qid, group, protected, as_one_query=False)
        return dataset.in_row_order(self._scores(dataset))

    def rank(
        self,
        X: Any,
        *,
        qid: str | ArrayLike | None = None,
        group: ArrayLike | None = None,
        protected: Groups | None = None,
    ) -> list[NDArray[np.int64]]:
        """For each query, in order of first appearance, its rows of X, best first: numbers as ``predict`` counts them.

        Rows without ``qid`` and ``group`` are those of one query.

        Parameters
        ----------
        X
            A RankingDataset, a matrix or frame of features (rows, features), or a click table.
        qid
            The query of each row, where X is a matrix or frame, or the name of a column; rows of a query may stand anywhere.
        group
            Sizes of the queries, where the rows of X stand query by query; give ``qid`` or ``group``.
        protected
            The protected group of each row, or a function of the dataset that gives it; for rankers that rank by groups.
        """
        dataset = self._to_rank(X, qid, group, protected)
        order = np.lexsort((np.arange(dataset.num_items), -self._scores(dataset), dataset.query_numbers))
        return np.split(dataset.row_numbers()[order], dataset.query_offsets[1:-1])

    def sample(
        self,
        X: Any,
        *,
        qid: str | ArrayLike | None = None,
        group: ArrayLike | None = None,
        protected: Groups | None = None,
        num_samples: int = 1,
        random_state: int | None = None,
    ) -> list[NDArray[np.int64]]:
        """For each query, rankings drawn from the policy: rows of X (sample, position), numbered as ``predict`` counts them.

        Parameters
        ----------
        X
            A RankingDataset, a matrix or frame of features (rows, features), or a click table.
        qid
            The query of each row, where X is a matrix or frame, or the name of a column; None: all rows are one query.
        group
            Sizes of the queries, where the rows of X stand query by query; give ``qid`` or ``group``.
        protected
            The protected group of each row, or a function of the dataset that gives it; for rankers that rank by groups.
        num_samples
            How many rankings to draw per query.
        random_state
            Seed; the same seed gives the same rankings. None draws new ones each time.
        """
        num_samples = whole_number("num_samples", num_samples, at_least=1, at_most=MOST_SAMPLES)
        dataset = self._to_rank(X, qid, group, protected)
        seed = None if random_state is None else checked_seed(random_state)
        rankings = self._policy_of(dataset).sample(num_samples, generator=np.random.default_rng(seed))
        rows = dataset.row_numbers()
        return [
            rows[start + rankings[:, query, :size]]
            for query, (start, size) in enumerate(zip(dataset.query_offsets[:-1], dataset.sizes, strict=True))
        ]

    def exposure(
        self,
        X: Any,
        *,
        qid: str | ArrayLike | None = None,
        group: ArrayLike | None = None,
        protected: Groups | None = None,
        rank_weights: ArrayLike | None = None,
        cutoff: int | None = None,
    ) -> NDArray[np.float64]:
        """Expected exposure of each row of X under the policy, in its order, computed exactly: E[weight of its rank].

        Parameters
        ----------
        X
            A RankingDataset, a matrix or frame of features (rows, features), or a click table.
        qid
            The query of each row, where X is a matrix or frame, or the name of a column; None: all rows are one query.
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
        weights = None if rank_weights is None else as_float64("rank_weights", rank_weights)
        if weights is not None and (weights.ndim != 1 or not np.isfinite(weights).all()):
            raise RankPolicyError(
                f"rank_weights must be finite numbers, one per rank from the first; got shape {weights.shape}, {rank_weights!r:.60}."
            )
        if cutoff is not None:
            cutoff = whole_number("cutoff", cutoff, at_least=1)
        if weights is None:
            weights = position_bias(int(dataset.sizes.max()))
        exposure = self._policy_of(dataset).exposure(weights[:cutoff])
        return dataset.in_row_order(dataset.padding().unpad(exposure))

    def policy(
        self,
        X: Any,
        *,
        qid: str | ArrayLike | None = None,
        group: ArrayLike | None = None,
        protected: Groups | None = None,
    ) -> RankingPolicy:
        """The policy over the queries of X, padded to (query, item): items of a query as a RankingDataset of X holds them.

        Parameters
        ----------
        X
            A RankingDataset, a matrix or frame of features (rows, features), or a click table.
        qid
            The query of each row, where X is a matrix or frame, or the name of a column; None: all rows are one query.
        group
            Sizes of the queries, where the rows of X stand query by query; give ``qid`` or ``group``.
        protected
            The protected group of each row, or a function of the dataset that gives it; for rankers that rank by groups.
        """
        return self._policy_of(self._to_rank(X, qid, group, protected))

    def score(
        self,
        X: Any,
        y: str | ArrayLike | None = None,
        *,
        qid: str | ArrayLike | None = None,
        group: ArrayLike | None = None,
        protected: Groups | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Mean NDCG@10 over queries, higher is better: what scikit-learn's searches and cross-validation compare.

        ``rankpolicy.evaluate`` measures other metrics, with intervals.

        Parameters
        ----------
        X
            A RankingDataset with labels, a matrix or frame of features (rows, features), or a click table.
        y
            The label of each row, or the name of a column of the frame; a RankingDataset holds its own.
        qid
            The query of each row, where X is a matrix or frame, or the name of a column; rows of a query may stand anywhere.
        group
            Sizes of the queries, where the rows of X stand query by query; give ``qid`` or ``group``.
        protected
            The protected group of each row, or a function of the dataset that gives it; for rankers that rank by groups.
        sample_weight
            How much each query counts in the mean: one weight per query, or one per row, equal within a query.
        """
        self._require_fitted()
        names = None if self._reads_texts else self.feature_names_
        dataset = training_dataset(
            X,
            y,
            qid,
            group,
            protected=protected,
            sample_weight=sample_weight,
            feature_names=names,
            categorical=self.categories_ or (),
        )
        check_has_labels(dataset, "data to score")
        scores = self._scores(self._to_rank(dataset, None, None, None))
        measure = reward_for_labels(reward_to_maximise("ndcg@10"), dataset.label_kind)
        return mean_over_queries(evaluate_scores(scores, dataset, [measure])[:, 0], dataset.query_weights)

    def save(self, path: str | Path) -> None:
        """Write one file that ``rankpolicy.load`` reads: weights, settings, versions and checksums; no pickle.

        Parameters
        ----------
        path
            Where the file goes, such as "model.rp".
        """
        self._require_fitted()
        write_bundle(Path(checked_path(path)), {"kind": "ranker"} | self.to_dict(), self._files())

    def export_onnx(self, path: str | Path) -> None:
        """Write the fitted ranker as an ONNX file, scaling included, which other programs and languages run without this library.

        Its input is ``features`` (row, feature), float32: the columns of the training data in their order, NaN where a value is missing,
        and for a categorical column the place of the category in ``categories_``. Its output is ``scores`` (row,), float32.
        Where scores depend on the other items of a query, as with scaling="query_minmax", a second input ``query`` (row,), int64 from 0,
        says which rows belong to one query. Metadata holds method, version, feature names and categories. If onnxruntime is installed, the
        scores of the file are compared with those of ``predict``, to 1e-5, before it is written. ``pip install 'rankpolicy[onnx]'``.

        Parameters
        ----------
        path
            Where the file goes, such as "model.onnx".
        """
        from rankpolicy.rankers.exporting.export import export_features_ranker

        self._require_fitted()
        export_features_ranker(self, path)

    @checked_kinds
    def export(self, path: str | Path, *, format: str = "onnx") -> list[Path]:
        """Write the fitted ranker as files that a search engine reads; their paths, the model's first.

        Next to the model stands what the engine has to be told about its features, as far as the ranker knows it: every feature is a field
        of the document with the feature's name, to be replaced where it is a match with the query.

        - "onnx": as ``export_onnx``.
        - "opensearch": the Learning to Rank plugin of OpenSearch and Elasticsearch, as ``model/xgboost+json`` (trees) or ``model/linear``.
        - "opensearch-ranklib": the same plugin, trees as ``model/ranklib``.
        - "elasticsearch": Elasticsearch's own learning to rank, trees as the file of XGBoost that eland imports.
        - "xgboost": the same file for everything that loads a model of XGBoost.
        - "vespa": trees as Vespa reads them from LightGBM; "vespa-onnx": any ranker that scores items one by one, as an ONNX file.
        - "solr": trees, weighted sums, and networks of relu layers over features that are not scaled or standardized.

        Scores are those of ``predict`` to 1e-5, but for a weighted sum in "opensearch", which lacks a constant. Other rankers (AutoRanker,
        networks that read whole queries, fair policies) become trees first: ``rankpolicy.distil``.

        Parameters
        ----------
        path
            Where the model goes, such as "model.json"; for "onnx" and "vespa-onnx" "model.onnx".
        format
            A name of the list above.
        """
        self._require_fitted()
        if format == "onnx":
            self.export_onnx(path)
            return [Path(path)]
        from rankpolicy.rankers.exporting.engine_formats import export_for_engine

        return export_for_engine(self, path, format)

    def onnx_inputs(
        self, X: Any, *, qid: str | ArrayLike | None = None, group: ArrayLike | None = None
    ) -> dict[str, NDArray[Any]]:
        """The inputs of the exported file for new data, by name; its scores are then in the order of the given rows.

        A frame is matched by column names, and categories become the numbers that the file reads.

        Parameters
        ----------
        X
            A RankingDataset, or a matrix or frame of features (rows, features).
        qid
            The query of each row, where X is a matrix and scores depend on the other items of a query.
        group
            Sizes of the queries, instead of ``qid``.
        """
        dataset = self._to_rank(X, qid, group, None, as_one_query=False)
        features = np.ascontiguousarray(dataset.in_row_order(dataset.features_by_query))
        if not self._needs_queries:
            return {"features": features}
        return {"features": features, "query": dataset.in_row_order(dataset.query_numbers).astype(np.int64)}

    def to_dict(self) -> dict[str, Any]:
        """Name, settings and (after fit) what was recorded in training, as JSON can hold them.

        A function or torch module among the settings is represented by its name.
        """
        fitted = {name: plain(getattr(self, name)) for name in self.fitted_attributes} if self.is_fitted else {}
        return {"ranker": self.name, "settings": self._plain_settings(), "fitted": fitted}

    @classmethod
    def where_setting_belongs(cls, name: str) -> str | None:
        """Where a setting that this ranker does not have belongs: to other rankers or to a model, or what it is called here; None: nowhere.

        Parameters
        ----------
        name
            The name of the setting.
        """
        from rankpolicy.models.members import models_with_setting
        from rankpolicy.rankers.members import RANKERS

        kind = cls.value_with_setting(name)
        if kind is not None:
            return kind.owner_in_words(name)
        meant = what_is_meant(name, cls.setting_names())
        if meant is not None:
            return meant
        rankers = ", ".join(
            ranker.__name__ for ranker in RANKERS.installed().values() if name in ranker.setting_names()
        )
        if rankers:
            return f"it is a setting of {rankers}"
        models = models_with_setting(name)
        return f"it belongs to a network: rp.models.{models[0].__name__}({name}=...)" if models else None

    def _repr_html_(self) -> str:
        return ranker_html(self)

    @property
    def is_fitted(self) -> bool:
        """Whether ``fit`` was called, or the ranker loaded from a file."""
        return hasattr(self, "num_features_")

    def _require_fitted(self) -> None:
        if not self.is_fitted:
            raise not_fitted_error(
                f"this {type(self).__name__} is not fitted yet: call fit(train) or rankpolicy.load(path) first."
            )

    def _check_init(self, init: Any, train: RankingDataset) -> None:
        """Refuse to continue from another ranker, unless a subclass can."""
        raise RankPolicyError(
            f"{type(self).__name__} cannot continue from a fitted ranker: it has no state to train further. Leave init out; "
            "rankers over networks and trees can continue."
        )

    def _to_rank(
        self,
        X: Any,
        qid: str | ArrayLike | None,
        group: ArrayLike | None,
        protected: Groups | None,
        *,
        as_one_query: bool = True,
    ) -> RankingDataset:
        """The data to rank; rows without queries are those of one query, or else each alone."""
        self._require_fitted()
        dataset = dataset_to_rank(
            X,
            qid,
            group,
            protected,
            needs_queries=self._needs_queries,
            as_one_query=as_one_query,
            feature_names=None if self._reads_texts else self.feature_names_,
            categorical=self.categories_ or (),
        )
        check_kind_of_data(dataset, reads_texts=self._reads_texts, what="data to rank")
        if self._reads_texts:
            return dataset
        return matched_features(
            dataset,
            self.num_features_,
            self.feature_names_,
            self.categories_,
            what="data to rank",
            ranker=type(self).__name__,
        )

    def _quick_scores(self, features: NDArray[Any]) -> NDArray[np.float64] | None:
        """Scores of a plain matrix in which there is nothing to prepare or to refuse; None leaves it to the ordinary way."""
        return None

    def _onnx_scores(self, graph: Graph) -> str:
        """The scores (row,) or (row, 1) as nodes of an ONNX graph of features; refused unless a subclass can."""
        raise RankPolicyError(
            f"{type(self).__name__} cannot be exported to ONNX. Use save(path), which every ranker has."
        )

    def _engine_model(self, names: Sequence[str]) -> Trees | Layers:
        """What a search engine computes of features with these names; refused unless a subclass can."""
        from rankpolicy.rankers.exporting.engine_models import trees_needed

        raise trees_needed(
            f"search engines compute trees, weighted sums and plain networks; {type(self).__name__} is none of them"
        )

    def _policy_of(self, dataset: RankingDataset) -> RankingPolicy:
        padding = dataset.padding()
        return self._policy_over(padding.pad(self._scores(dataset)), padding.mask)

    def _policy_over(self, scores: Array, mask: Array) -> RankingPolicy:
        """The policy over items with these scores (query, item)."""
        return PlackettLuce(scores, mask)

    @property
    def _reads_texts(self) -> bool:
        """Whether this ranker learns from texts instead of features."""
        return False

    @property
    def _needs_queries(self) -> bool:
        """Whether the score of an item depends on the other items of its query."""
        return False

    def _restore_fitted(self, fitted: Mapping[str, Any], files: dict[str, bytes]) -> None:
        """Take what training recorded, and the fitted state, from the manifest and the parts of a file."""
        check_fitted(fitted)
        for name in self.fitted_attributes:
            # None: an attribute that rankers of the version that wrote the file did not have.
            setattr(self, name, fitted.get(name))
        self._restore(files)

    @abstractmethod
    def _fit(self, train: RankingDataset, valid: RankingDataset | None, options: FitOptions) -> None:
        """Learn from data that can be read."""

    @abstractmethod
    def _scores(self, dataset: RankingDataset) -> NDArray[np.float64]:
        """Flat scores (items,) in the dataset's order."""

    @abstractmethod
    def _files(self) -> dict[str, bytes]:
        """The fitted state as named files of the bundle."""

    @abstractmethod
    def _restore(self, files: dict[str, bytes]) -> None:
        """Take the fitted state from those files."""


def _metric_of(ranker: Ranker) -> Any:
    """The metric of validation data; ndcg@10 where the ranker has none or uses its objective."""
    metric = getattr(ranker, "valid_metric", "ndcg@10")
    return "ndcg@10" if isinstance(metric, str) and metric == "objective" else metric
