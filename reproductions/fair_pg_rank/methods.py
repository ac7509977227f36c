"""The methods that figures 1 and 3 compare, each with the same data, information and number of networks."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data import RankingDataset
from rankpolicy.evaluation.policy_value import SortedPolicy
from rankpolicy.fairness import GroupExposure, MeritScenarios, fair_policies, joint_mixture, position_bias
from rankpolicy.metrics.expression import additive_form
from rankpolicy.rankers import DELTR, FairExposure, FairPGRank
from rankpolicy.rankers.post_processing.out_of_fold import with_group_features
from rankpolicy.types import Conventions, Reward
from reproductions.fair_pg_rank.curves import Draw, Found, Method

Floats = NDArray[np.float64]

PRICE, SAMPLED, PARITY = "FairPGRank, price", "FairPGRank, price, REINFORCE", "FairPGRank, parity"
LONGER = f"{SAMPLED}, twice the epochs"
LP_PRICE, LP_PARITY = "FairLP, price", "FairLP, equal exposure"
DELTR_SORTED, DELTR_POLICY = "DELTR, sorted", "DELTR, Plackett-Luce"
OURS, TWO_SIDED = "FairExposure", "FairExposure, two-sided"
COMPETITORS = (PRICE, SAMPLED, PARITY, LP_PRICE, LP_PARITY, DELTR_SORTED, DELTR_POLICY)

# The strengths of the methods that solve for a policy after learning; infinity gives all groups the same exposure (FairLP with a price:
# no disparity on the estimates).
STRENGTHS = (0.0, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 2.0, 5.0, 20.0, 100.0, 1000.0, math.inf)
LARGE = 1e6  # a finite strength at which no utility is worth any disparity


def with_group(draw: Draw) -> Draw:
    """The same data with the group of an item among its features."""
    names = [str(name) for name in np.unique(np.asarray(draw.train.groups_by_query))]
    return Draw(with_group_features(draw.train, names), with_group_features(draw.test, names), draw.seed)


def by_price(name: str, settings: Mapping[str, Any], strengths: Sequence[float], reward: Reward) -> Method:
    """The paper's method: one FairPGRank per price of disparity."""

    def method(draw: Draw) -> Iterator[Found]:
        for strength in strengths:
            ranker = FairPGRank(strength=strength, reward=reward, random_state=draw.seed, **settings)
            report = _fitted(ranker, draw.train).report_
            objective = report["utility"] - strength * report["disparity"]
            yield Found(name, f"λ = {strength:g}", ranker.exposure(draw.test), objective)

    return method


def by_parity(settings: Mapping[str, Any], shares: Sequence[float], reward: Reward) -> Method:
    """FairPGRank with a share of the offsets that give all groups of a query the same exposure when items are ranked."""

    def method(draw: Draw) -> Iterator[Found]:
        for share in shares:
            ranker = FairPGRank(
                fairness=GroupExposure(parity=share), strength=0.0, reward=reward, random_state=draw.seed, **settings
            )
            yield Found(PARITY, f"parity {share:g}", _fitted(ranker, draw.train).exposure(draw.test))

    return method


def by_deltr(settings: Mapping[str, Any], strengths: Sequence[float]) -> Method:
    """DELTR, its scores sorted and its scores as those of a Plackett-Luce policy."""

    def method(draw: Draw) -> Iterator[Found]:
        bias = position_bias(int(draw.test.sizes.max()))
        for strength in strengths:
            ranker = _fitted(DELTR(strength=strength, random_state=draw.seed, **settings), draw.train)
            yield Found(DELTR_SORTED, f"λ = {strength:g}", SortedPolicy(ranker).exposure(draw.test, rank_weights=bias))
            yield Found(DELTR_POLICY, f"λ = {strength:g}", ranker.exposure(draw.test))

    return method


def by_post_processing(settings: Mapping[str, Any], gain: str, strengths: Sequence[float] = STRENGTHS) -> Method:
    """FairLP with a price and with equal exposure as its aim, and FairExposure, all on the relevances of one estimator."""

    def method(draw: Draw) -> Iterator[Found]:
        ranker = FairExposure(gain=gain, group_feature=False, random_state=draw.seed, **settings)
        relevances = _fitted(ranker, draw.train).relevances(draw.test)
        for name, has_merit in ((LP_PRICE, True), (LP_PARITY, False)):
            exposures = linear_programs(relevances, draw.test, strengths, gain=gain, has_merit=has_merit)
            for strength, exposure in zip(strengths, exposures, strict=True):
                yield Found(name, f"λ = {strength:g}", exposure)
        weights = position_bias(int(draw.test.sizes.max()))
        for name, aim in ((OURS, "group"), (TWO_SIDED, "two_sided")):
            policies = ranker.set_params(aim=aim).policies(draw.test, strengths=strengths)
            for strength, policy in zip(strengths, policies, strict=True):
                exposure = draw.test.padding().unpad(policy.exposure(weights))
                yield Found(name, f"λ = {strength:g}", draw.test.in_row_order(exposure))

    return method


def linear_programs(
    relevances: Floats, dataset: RankingDataset, strengths: Sequence[float], *, gain: str, has_merit: bool
) -> list[Floats]:
    """Exposures (items,) of FairLP's policies, one per strength, on given relevances.

    The linear program of a query with two groups has an optimum that mixes two rankings; ``fair_policies`` finds it without a solver.

    Parameters
    ----------
    relevances
        Estimated relevance of each item (items,).
    dataset
        Queries and groups.
    strengths
        Weights of the disparity; infinity allows none.
    gain
        Gain of a label in NDCG.
    has_merit
        Whether the merit of an item is its relevance, cut at 0; otherwise all have merit 1, and fair is equal exposure.
    """
    padding, flat = dataset.padding(), dataset.in_query_order(relevances)
    form = additive_form("ndcg", padding.pad(flat), padding.mask, conventions=Conventions(gain=gain))  # type: ignore[arg-type]
    assert form is not None
    assert dataset.groups_by_query is not None
    values, merits = padding.unpad(form.item_values), flat.clip(min=0) if has_merit else np.ones_like(flat)
    finite = [min(strength, LARGE) for strength in strengths]
    found: list[list[Any]] = [[] for _ in strengths]
    for start, stop in zip(dataset.query_offsets[:-1], dataset.query_offsets[1:], strict=True):
        codes = np.unique(dataset.groups_by_query[start:stop], return_inverse=True)[1]
        means = np.bincount(codes, merits[start:stop]) / np.bincount(codes)
        certain = MeritScenarios(merits=means[None], probabilities=np.ones(1))
        bias = position_bias(int(stop - start))
        policies = fair_policies(values[start:stop], codes, certain, strengths=finite, bias=bias)
        for of_strength, policy in zip(found, policies, strict=True):
            of_strength.append(policy)
    weights = position_bias(int(dataset.sizes.max()))
    mixtures = [joint_mixture(policies) for policies in found]
    return [dataset.in_row_order(padding.unpad(mixture.exposure(weights))) for mixture in mixtures]


def on(view: Callable[[Draw], Draw], method: Method) -> Method:
    """The method with the data as a view shows them."""
    return lambda draw: method(view(draw))


def _fitted(ranker: Any, train: RankingDataset) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return ranker.fit(train, progress=False)
