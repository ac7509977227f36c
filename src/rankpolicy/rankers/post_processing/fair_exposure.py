"""Fair exposure under uncertain labels: a predictive distribution of labels, then the best fair policy of each query."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.data.dataset import RankingDataset, check_has_labels
from rankpolicy.declarations.arguments import as_float64
from rankpolicy.declarations.settings import HIGHEST_SEED, ReadWhen, seed_setting, setting, settings_class
from rankpolicy.declarations.values import settings_by_method
from rankpolicy.evaluation.mean_bound import upper_mean
from rankpolicy.evaluation.measure import evaluate_scores, mean_over_queries
from rankpolicy.fairness import MERITS, encode_groups, fair_policies, joint_mixture, position_bias
from rankpolicy.fairness.birkhoff import Decomposition
from rankpolicy.fairness.label_scenarios import UncertainQuery, binary_scenarios, sampled_scenarios
from rankpolicy.metrics import reward_to_maximise
from rankpolicy.policies.mixture import Mixture
from rankpolicy.rankers.base import Ranker
from rankpolicy.rankers.fit_inputs import training_dataset
from rankpolicy.rankers.fits import DECISIVE, FitOptions
from rankpolicy.rankers.inputs import Groups
from rankpolicy.rankers.post_processing.certificate import Certificate, Terms, certified, disparities, highest_disparity
from rankpolicy.rankers.post_processing.fair_ranker import (
    FairRanker,
    groups_of,
    new_estimator,
    relevance_estimators,
    rows_by_query,
)
from rankpolicy.rankers.post_processing.fairness_curve import (
    FairnessCurve,
    curve_strengths,
    measure_policy,
    queries_to_measure,
)
from rankpolicy.rankers.post_processing.label_model import LABEL_MODELS, LabelModel, sample_levels
from rankpolicy.rankers.post_processing.out_of_fold import (
    folds_of_rows,
    out_of_fold_scores,
    rows_of,
    stacking_weights,
    with_group_features,
)
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.rankers.exporting.graph import Graph

Floats = NDArray[np.float64]
AIMS = ("group", "two_sided", "equal_exposure")
# Without validation data all trees are grown, so they are few.
_DEFAULTS: dict[str, dict[str, Any]] = {"boosted-regression": {"num_trees": 100, "min_items_in_leaf": 20}}
_STATE, _LABELS = "fair_exposure.json", "label_model.json"
_TIE_BREAK = 1e-6  # of the relevance, added to expected values
_EXAMPLE = "{'boosted-regression': {'num_trees': 300}}"


@final
@settings_class
class FairExposure(FairRanker):
    """The best fair policy under a predictive distribution of labels: maximise E[NDCG] - strength * E[disparity], query by query.

    Disparity of exposure is not linear in labels, so a policy that is fair to point estimates of relevance, as that of FairLP, is not fair
    to the labels that come. Here both expectations are over the labels that items of similar predictions turned out to have:

    1. rankers estimate relevance out of fold (each item by models that have not seen it), by default the best weighted mean of a linear
       regression and boosted regression trees, with the protected group as a feature;
    2. these predictions and the labels give the distribution of a label at a prediction (``label_model``);
    3. with two groups the optimum is exact and mixes at most two rankings per query (about a millisecond); more groups take a linear
       program (about 0.1 s per query, less with fewer samples).

    Ranking needs the protected group of every item, from ``dataset.groups`` or ``protected=``. ``predict`` returns the expected exposure
    of an item in its query, so ``rank`` puts the most exposed item first. ``strength`` and ``max_disparity`` may be changed after ``fit``
    by ``set_params``: they are read when data is ranked.

    After fit, ``report_`` holds the utility (NDCG) and disparities of the policy, measured on the labels of the training data with
    out-of-fold predictions: "disparity" (the paper's one-sided D_group), "treatment_difference" (highest minus lowest exposure per unit of
    merit of a group, two-sided) and "exposure_difference" (highest minus lowest mean exposure); and a "curve" of the same over strengths,
    from which ``max_disparity`` chooses. Validation data is only measured: the validation score is that of the relevances. With
    ``certify`` it chooses the strength instead, and ``report_["certificate"]`` says what was shown, with which bound, by how many queries;
    the report then has the out-of-fold figures of that strength.
    """

    name: ClassVar[str] = "fair-exposure"
    ranks_at_any_strength: ClassVar[bool] = True
    fitted_attributes: ClassVar[tuple[str, ...]] = (*Ranker.fitted_attributes, "report_")

    strength: float = setting(
        1.0,
        "Weight of the expected disparity against expected NDCG; 0 ignores fairness, higher values are fairer.",
        at_least=0,
        read_when=ReadWhen(
            condition='max_disparity is None and aim is not "equal_exposure"',
            holds=lambda ranker: ranker.max_disparity is None and ranker.aim != "equal_exposure",
        ),
    )
    max_disparity: float | None = setting(
        None,
        "Mean disparity wanted, in place of a strength: one strength for all queries, the lowest that kept it out of fold on the training "
        "data. 0 is equal exposure. None uses strength.",
        at_least=0,
        read_when=ReadWhen(
            condition='aim is not "equal_exposure"', holds=lambda ranker: ranker.aim != "equal_exposure"
        ),
    )
    certify: float | None = setting(
        None,
        "Probability, such as 0.95, with which the mean disparity of new queries is at most max_disparity: fit then chooses the lowest "
        "strength that held-out queries, passed as valid=, certify. None: max_disparity is kept on the training data only.",
        above=0,
        below=1,
        read_when=ReadWhen(
            condition='max_disparity is set and aim is "group"',
            holds=lambda ranker: ranker.max_disparity is not None and ranker.aim == "group",
        ),
    )
    wrong_groups: float = setting(
        0.0,
        "Share of items whose group may be wrong where data is ranked, such as 0.1: the certificate then holds for errors at random "
        "of this share, of half of it, and for none.",
        at_least=0,
        below=1,
        read_when=ReadWhen(condition="certify is set", holds=lambda ranker: ranker.certify is not None),
    )
    held_out_groups: str = setting(
        "right",
        """Groups of the held-out queries: "right", or "noisy" where they are wrong as often as those of new queries; the bound is then
        corrected, which takes many more queries (at 10 items of two groups 8 times for 5 %, 90 times for 10 %).""",
        choices=("right", "noisy"),
        read_when=ReadWhen(condition="wrong_groups is above 0", holds=lambda ranker: ranker.wrong_groups > 0),
    )
    aim: str = setting(
        "group",
        """"group": the paper's disparity, in which only the group of higher merit can have too much exposure; "two_sided":
        abs(E_a / M_a - E_b / M_b), exposure in proportion to merit; "equal_exposure": the same mean exposure for all groups, where the
        paper's disparity is 0 whatever the labels are (the limit of an infinite strength).""",
        choices=AIMS,
    )
    relevance: tuple[str, ...] = setting(
        ("regression", "boosted-regression"),
        "The rankers that estimate relevance, by method names; several are averaged with the weights of least squares.",
        choices=relevance_estimators,
    )
    relevance_settings: Mapping[str, Any] | str | None = setting(
        None,
        f"Settings of these rankers by name, a dict (or its text) such as {_EXAMPLE}; None takes defaults: a linear regression on "
        "standardised features, 100 trees with 20 items or more per leaf.",
    )
    group_feature: bool = setting(
        True,
        "Whether the estimators of relevance see the protected group, as one column per group next to the features.",
    )
    label_model: str = setting(
        "auto",
        """How labels are distributed at a predicted relevance r. "binary": 1 with probability r, computed exactly for two groups;
        "neighbours": the labels of the nearest out-of-fold predictions in the same group; "residuals": r plus the errors of these;
        "auto": binary for labels 0 and 1, else residuals.""",
        choices=LABEL_MODELS,
    )
    num_neighbours: int = setting(
        60,
        "Nearest out-of-fold predictions whose labels are the distribution. More: smoother, and less specific.",
        at_least=1,
        read_when=ReadWhen(
            condition='label_model is not "binary"', holds=lambda ranker: ranker.label_model != "binary"
        ),
    )
    num_samples: int = setting(
        200,
        "Samples of the labels of a query, where they are not computed exactly. More cost time.",
        at_least=1,
        at_most=10_000,
    )
    num_folds: int = setting(5, "Folds of the training data, for predictions out of fold.", at_least=2)
    gain: str = setting(
        "exp2",
        "Gain of a label in NDCG: 2^label - 1 or the label itself, as in Conventions.",
        choices=("exp2", "linear"),
    )
    merit: str = setting("identity", "Merit of an item, as a function of its label.", choices=MERITS)
    random_state: int | None = seed_setting(
        0, "Seed of folds, samples and estimators, unless their settings have one. None draws a new one each time."
    )

    report_: dict[str, Any] | None = field(default=None, init=False)

    def _check_settings(self) -> None:
        super()._check_settings()
        if not self.relevance or len(set(self.relevance)) < len(self.relevance):
            raise RankPolicyError(f"relevance must name one or more different rankers; got {self.relevance!r}.")
        self._new_estimators()

    def _new_estimators(self) -> list[Ranker]:
        """Unfitted estimators of relevance; refuses settings that they do not have or would not read."""
        settings = settings_by_method(
            self.relevance_settings, self.relevance, name="relevance_settings", of="relevance", example=_EXAMPLE
        )
        return [
            new_estimator(
                name,
                _DEFAULTS.get(name, {}) | settings[name],
                random_state=getattr(self, "_seed", self.random_state),
            )
            for name in self.relevance
        ]

    def _fit(self, train: RankingDataset, valid: RankingDataset | None, options: FitOptions) -> None:
        options.refuse_checkpoint("FairExposure keeps no checkpoints.")
        groups = groups_of(train, "FairExposure learns how labels are distributed in each group, from")
        self._seed = secrets.randbelow(HIGHEST_SEED) if self.random_state is None else self.random_state
        codes, names = encode_groups(groups)
        self._groups = [str(name) for name in names]
        seen = self._seen(train)
        labels = train.labels_by_query.astype(np.float64)
        folds = folds_of_rows(seen, self.num_folds, np.random.default_rng(self._seed))
        scores = out_of_fold_scores(self._new_estimators, seen, folds)
        self._weights, self._intercept = stacking_weights(scores, labels)
        self._estimators = [estimator.fit(seen, progress=False) for estimator in self._new_estimators()]
        self._label_model = LabelModel(
            kind=self._kind_of_labels(labels),
            predictions=scores @ self._weights + self._intercept,
            labels=labels,
            codes=codes,
            num_neighbours=self.num_neighbours,
        )
        self._curve = self._out_of_fold_curve(train, folds)
        self._highest_disparity = highest_disparity(train, merit=self.merit)
        self._certificate = None if self.certify is None else self._certified(valid)
        self.report_ = {**self._curve.row_at(self._strength()), "curve": self._curve.to_rows()}
        if self._certificate is not None:
            self.report_["certificate"] = self._certificate.to_dict()
        self.best_iteration_, self.best_score_, self.evals_result_ = 1, None, {}
        if valid is not None:
            metric = reward_to_maximise("ndcg@10")
            values = evaluate_scores(self._relevances(valid), valid, [metric])[:, 0]
            self.best_score_ = mean_over_queries(values, valid.query_weights)
            self.evals_result_[DECISIVE] = {f"relevance {metric.name}": [self.best_score_]}

    def _certified(self, held_out: RankingDataset | None) -> Certificate:
        """The certificate by held-out queries, of which nothing was used before."""
        if held_out is None:
            raise RankPolicyError(
                "certify needs held-out queries with labels and groups, which nothing was learned from: pass them as valid=."
            )
        groups_of(held_out, "A certificate measures disparity by")
        return certified(
            lambda seen: self._policies(seen, self._relevances(seen), self._label_model, self._curve.strengths),
            held_out,
            self._terms(),
            strengths=self._curve.strengths,
            highest=self._highest_disparity,
            merit=self.merit,
            generator=np.random.default_rng(self._seed),
        )

    def _terms(self) -> Terms:
        assert self.certify is not None
        assert self.max_disparity is not None
        return Terms(
            level=self.certify,
            max_disparity=self.max_disparity,
            wrong_groups=self.wrong_groups,
            held_out_groups=self.held_out_groups,
        )

    def _kind_of_labels(self, labels: Floats) -> str:
        is_binary = bool(np.isin(labels, (0.0, 1.0)).all())
        if self.label_model == "binary" and not is_binary:
            raise RankPolicyError(
                f'label_model="binary" needs labels 0 and 1; got labels up to {labels.max():g}. Leave label_model at "auto".'
            )
        return self.label_model if self.label_model != "auto" else ("binary" if is_binary else "residuals")

    def _seen(self, dataset: RankingDataset) -> RankingDataset:
        """The data as the estimators of relevance see it."""
        return with_group_features(dataset, self._groups) if self.group_feature else dataset

    def relevances(
        self,
        X: Any,
        *,
        qid: str | ArrayLike | None = None,
        group: ArrayLike | None = None,
        protected: Groups | None = None,
    ) -> Floats:
        """The estimated relevance of each row of X, in its order: the expected label that the policy is made from.

        Parameters
        ----------
        X
            A RankingDataset, a matrix or frame of features (rows, features), or a click table.
        qid
            The query of each row, where X is a matrix or frame, or the name of a column; None: all rows are one query.
        group
            Sizes of the queries, where the rows of X stand query by query; give ``qid`` or ``group``.
        protected
            The protected group of each row, or a function of the dataset that gives it.
        """
        dataset = self._to_rank(X, qid, group, protected)
        return dataset.in_row_order(self._relevances(dataset))

    def policies(
        self,
        X: Any,
        *,
        strengths: Sequence[float],
        qid: str | ArrayLike | None = None,
        group: ArrayLike | None = None,
        protected: Groups | None = None,
    ) -> list[Mixture]:
        """The policies over the queries of X at several strengths, for little more than the cost of one.

        Parameters
        ----------
        X
            A RankingDataset, a matrix or frame of features (rows, features), or a click table.
        strengths
            Weights of the expected disparity, 0 or more; infinity is the limit of high ones: with the aim "group", equal exposure.
        qid
            The query of each row, where X is a matrix or frame, or the name of a column; None: all rows are one query.
        group
            Sizes of the queries, where the rows of X stand query by query; give ``qid`` or ``group``.
        protected
            The protected group of each row, or a function of the dataset that gives it.
        """
        weights = as_float64("strengths", strengths)
        if weights.ndim != 1 or not (weights >= 0).all():
            raise RankPolicyError(f"strengths must be a list of numbers, 0 or more; got {strengths!r:.80}.")
        dataset = self._to_rank(X, qid, group, protected)
        return self._policies(dataset, self._relevances(dataset), self._label_model, weights.tolist())

    def frontier(
        self,
        X: Any,
        y: str | ArrayLike | None = None,
        *,
        qid: str | ArrayLike | None = None,
        group: ArrayLike | None = None,
        protected: Groups | None = None,
        level: float = 0.95,
    ) -> list[dict[str, Any]]:
        """Utility and disparities on labelled queries at all strengths from 0 to infinity, one row per strength.

        The rows are those of the "curve" of ``report_``, with "upper_disparity": with probability ``level`` the mean disparity of new
        queries, each counted up to the highest that was possible in the training data, is below it at all strengths at once.

        Parameters
        ----------
        X
            A RankingDataset with labels, a matrix or frame of features (rows, features), or a click table.
        y
            The label of each row, or the name of a column of the frame; a RankingDataset holds its own.
        qid
            The query of each row, where X is a matrix or frame, or the name of a column.
        group
            Sizes of the queries, where the rows of X stand query by query; give ``qid`` or ``group``.
        protected
            The protected group of each row, or a function of the dataset that gives it.
        level
            Probability of the upper bounds, between 0 and 1.
        """
        self._require_fitted()
        dataset = training_dataset(
            X, y, qid, group, protected=protected, feature_names=self.feature_names_, categorical=self.categories_ or ()
        )
        check_has_labels(dataset, "data of a frontier")
        groups_of(dataset, "A frontier measures disparity by")
        readable = self._to_rank(dataset, None, None, None)
        strengths = self._curve.strengths
        policies = self._policies(readable, self._relevances(readable), self._label_model, strengths)
        values, is_counted = disparities(policies, readable, merit=self.merit)
        each = 1 - (1 - level) / len(strengths)  # Bonferroni
        rows = []
        for strength, policy, of_queries in zip(strengths, policies, values[:, is_counted], strict=True):
            row = {"strength": strength, **measure_policy(policy, readable, merit=self.merit, gain=self.gain)}
            if self._highest_disparity > 0 and is_counted.any():
                row["upper_disparity"] = upper_mean(of_queries, highest=self._highest_disparity, level=each)
            rows.append(row)
        return rows

    def _relevances(self, dataset: RankingDataset) -> Floats:
        seen = self._seen(dataset)
        scores = np.stack([estimator._scores(seen) for estimator in self._estimators], axis=1)
        return np.asarray(scores @ self._weights + self._intercept, np.float64)

    def _strength(self) -> float:
        """The strength that data is ranked with; infinity is equal exposure."""
        if self.aim == "equal_exposure":
            return math.inf
        if self.max_disparity is None:
            return self.strength
        if self.certify is not None:
            if self._certificate is None or self._certificate.terms != self._terms():
                raise RankPolicyError(
                    "certify, max_disparity, wrong_groups and held_out_groups must be those of the fit, which the certificate is for. "
                    "Fit again with held-out queries as valid=."
                )
            return self._certificate.strength
        if self._curve.two_sided != self._two_sided:
            raise RankPolicyError(
                f"max_disparity with aim={self.aim!r} needs a ranker that was fitted with that aim, whose curve is of these policies. "
                "Fit again, or set a strength."
            )
        return self._curve.strength_for(self.max_disparity)

    @property
    def _two_sided(self) -> bool:
        return self.aim == "two_sided"

    def _policies(
        self, dataset: RankingDataset, relevances: Floats, label_model: LabelModel, strengths: Sequence[float]
    ) -> list[Mixture]:
        """The policies over the queries of a dataset, one per strength."""
        by_query = list(self._policies_by_query(dataset, relevances, label_model, strengths))
        return [joint_mixture(policies) for policies in zip(*by_query, strict=True)]

    def _policies_by_query(
        self, dataset: RankingDataset, relevances: Floats, label_model: LabelModel, strengths: Sequence[float]
    ) -> Iterator[list[Decomposition]]:
        """For each query its policies, one per strength."""
        for codes, query in self._uncertain_queries(dataset, relevances, label_model):
            yield fair_policies(
                query.values,
                codes,
                query.scenarios,
                strengths=strengths,
                bias=_bias(len(codes)),
                two_sided=self._two_sided,
            )

    def _uncertain_queries(
        self, dataset: RankingDataset, relevances: Floats, label_model: LabelModel
    ) -> Iterator[tuple[NDArray[np.int64], UncertainQuery]]:
        """For each query the codes of the groups in it, and the distribution of its labels."""
        groups = np.asarray(groups_of(dataset, "FairExposure ranks by")).astype(str)
        code_of = {name: code for code, name in enumerate(self._groups)}
        trained = np.array([code_of.get(name, -1) for name in groups])
        for rows in rows_by_query(dataset):
            codes = np.unique(groups[rows], return_inverse=True)[1].astype(np.int64)
            bias = _bias(len(codes))
            if label_model.kind == "binary" and codes.max() <= 1:
                chances = label_model.probabilities(relevances[rows])
                query = binary_scenarios(chances, codes, bias, merit=self.merit)
            else:
                labels = self._sampled_labels(relevances[rows], trained[rows], label_model)
                query = sampled_scenarios(labels, codes, bias, gain=self.gain, merit=self.merit)
            # Labels are cut to their range, so items of low relevance may all have the value 0; they keep the order of their relevance.
            yield codes, query._replace(values=query.values + _TIE_BREAK * relevances[rows])

    def _sampled_labels(self, relevances: Floats, codes: NDArray[np.int64], label_model: LabelModel) -> Floats:
        """Labels (sample, item) of one query."""
        # Samples must not depend on the order in which items come: the first levels are for the lowest relevance of the first group.
        levels = np.empty((len(codes), self.num_samples))
        levels[np.lexsort((relevances, codes))] = sample_levels(len(codes), self.num_samples, self._seed)
        return label_model.quantiles(relevances, codes, levels).T

    def _out_of_fold_curve(self, train: RankingDataset, folds: NDArray[np.int64]) -> FairnessCurve:
        strengths = sorted({*curve_strengths(len(self._groups)), self.strength})
        chosen = queries_to_measure(train, len(self._groups), np.random.default_rng(self._seed))
        policies = self._out_of_fold_policies(train, folds, chosen, strengths)
        measured = [measure_policy(policy, train[chosen], merit=self.merit, gain=self.gain) for policy in policies]
        return FairnessCurve(strengths=tuple(strengths), measured=tuple(measured), two_sided=self._two_sided)

    def _out_of_fold_policies(
        self, train: RankingDataset, folds: NDArray[np.int64], chosen: NDArray[np.int64], strengths: Sequence[float]
    ) -> list[Mixture]:
        """Policies of some training queries, from relevances that were predicted without their labels."""
        model = self._label_model
        fold_of_query = folds[train.query_offsets[chosen]]
        # Folds over items spread each query over all folds; then its own labels stay in the label model, a few among many.
        hides_queries = bool((folds == np.repeat(folds[train.query_offsets[:-1]], train.sizes)).all())
        by_query: dict[int, list[Decomposition]] = {}
        for fold in np.unique(fold_of_query):
            queries = chosen[fold_of_query == fold]
            rows = np.concatenate([np.arange(train.query_offsets[q], train.query_offsets[q + 1]) for q in queries])
            label_model = model.without(folds == fold) if hides_queries else model
            policies = self._policies_by_query(rows_of(train, rows), model.predictions[rows], label_model, strengths)
            by_query |= zip(queries.tolist(), policies, strict=True)
        in_order = [by_query[query] for query in chosen.tolist()]
        return [joint_mixture(policies) for policies in zip(*in_order, strict=True)]

    def _policy_of(self, dataset: RankingDataset) -> Mixture:
        (policy,) = self._policies(dataset, self._relevances(dataset), self._label_model, [self._strength()])
        return policy

    def _onnx_scores(self, graph: Graph) -> str:
        raise RankPolicyError(
            "FairExposure cannot be exported to ONNX: the score of an item comes from an optimisation over all items of its query and "
            "their protected groups. Use save(path); or fit and export a ranker that estimates relevance "
            f"({', '.join(map(repr, self.relevance))}) by itself."
        )

    def _files(self) -> dict[str, bytes]:
        state = {
            "groups": self._groups,
            "weights": self._weights.tolist(),
            "intercept": self._intercept,
            "seed": self._seed,
            "curve": self._curve.to_rows(),
            "two_sided": self._curve.two_sided,
            "certificate": None if self._certificate is None else self._certificate.to_dict(),
            "highest_disparity": self._highest_disparity,
            "fitted": [
                {name: getattr(estimator, name) for name in estimator.fitted_attributes}
                for estimator in self._estimators
            ],
        }
        files = {_STATE: json.dumps(state).encode(), _LABELS: self._label_model.to_bytes()}
        for name, estimator in zip(self.relevance, self._estimators, strict=True):
            files |= {f"{name}/{path}": content for path, content in estimator._files().items()}
        return files

    def _restore(self, files: dict[str, bytes]) -> None:
        state = json.loads(files[_STATE])
        self._groups, self._seed = [str(name) for name in state["groups"]], int(state["seed"])
        self._weights, self._intercept = np.array(state["weights"], dtype=np.float64), float(state["intercept"])
        if self._weights.shape != (len(self.relevance),) or not np.isfinite(self._weights.sum() + self._intercept):
            raise RankPolicyError(
                "the weights of the estimators of relevance must be finite, one per estimator. Copy or train the model again."
            )
        self._curve = FairnessCurve.from_rows(state["curve"], two_sided=bool(state["two_sided"]))
        certificate, self._highest_disparity = state.get("certificate"), float(state.get("highest_disparity", 0.0))
        self._certificate = None if certificate is None else Certificate.from_dict(certificate)
        self._label_model = LabelModel.from_bytes(files[_LABELS], num_neighbours=self.num_neighbours)
        self._estimators = self._new_estimators()
        for name, estimator, fitted in zip(self.relevance, self._estimators, state["fitted"], strict=True):
            prefix = f"{name}/"
            estimator_files = {path.removeprefix(prefix): files[path] for path in files if path.startswith(prefix)}
            estimator._restore_fitted(fitted, estimator_files)


def _bias(size: int) -> Floats:
    return position_bias(size)
