"""Numbers of policies, fairness, gradients, metrics and off-policy estimates, computed with one kind of array."""

import numpy as np

import rankpolicy as rp
from rankpolicy.data import make_fair_synthetic
from rankpolicy.fairness import (
    FAIRNESS_METRICS,
    GroupExposure,
    IndividualExposure,
    as_aim,
    individual_disparity,
    measure_fairness,
    merit_of,
    mixture_of,
    parity_offsets,
    penalized_ranking,
    position_bias,
)
from rankpolicy.gradients import ESTIMATORS
from rankpolicy.metrics import METRICS, parse_metric
from rankpolicy.policies import Affinity, Mixture, PlackettLuce, RandomSwaps, TopShuffle

OF_RANKINGS = {"max_skew", "min_skew", "ndkl", "rkl", "rnd"}  # counted in float32 where arrays are tensors


def numbers(kind):
    """Lists of numbers by name; ``kind`` makes arrays of what numpy holds."""
    generator = np.random.default_rng(5)
    scores, mask = generator.normal(size=(3, 6)), np.arange(6) < np.array([6, 5, 2])[:, None]
    labels, groups = generator.integers(0, 4, (3, 6)) * mask * 1.0, np.tile([0, 1], (3, 3))
    rankings = np.argsort(np.where(mask, generator.random((4, 3, 6)), 2.0 + np.arange(6)), -1)
    scores, mask, labels, groups, rankings = map(kind, (scores, mask, labels, groups, rankings))
    values = {}

    modes = [PlackettLuce(keys, mask).mode() for keys in (scores, -scores)]
    both = kind(np.stack([np.asarray(mode) for mode in modes]))
    policies = {
        "plackett-luce": PlackettLuce(scores, mask),
        "affinity": Affinity(scores, mask, epsilon=0.2),
        "affinity by weight": Affinity(scores, mask, epsilon=0.0),
        "mixture": Mixture(both, kind(np.array([[0.75] * 3, [0.25] * 3])), mask),
        "shuffle": TopShuffle(scores, mask, depth=3),
        "swaps": RandomSwaps(scores, mask, depth=3),
    }
    for name, policy in policies.items():
        values[f"log_prob of {name}"] = policy.log_prob(rankings)
        values[f"mode of {name}"] = policy.mode()
        if name != "affinity":  # estimated from lists that are drawn
            values[f"exposure of {name}"] = policy.exposure(kind(position_bias(6)))
        drawn = policy.sample(50)
        assert type(drawn) is type(scores)
        assert np.array_equal(np.sort(drawn, -1), np.broadcast_to(np.arange(6), drawn.shape))

    exposure, merit, bias = policies["plackett-luce"].exposure(), merit_of(labels + 1.0), kind(position_bias(6))
    given = {"exposure": exposure, "rankings": rankings, "labels": labels, "merit": merit, "groups": groups}
    values |= measure_fairness(list(set(FAIRNESS_METRICS) - OF_RANKINGS), **given, mask=mask, bias=bias)
    for aim in (GroupExposure(merit="exp2"), GroupExposure(amortized=True), IndividualExposure(impact=True)):
        values[f"gradient of {aim}"] = aim.disparity(exposure, labels, mask, groups=groups).gradient
    values["disparity"] = as_aim("group").disparity(exposure, labels, mask, groups=groups).values
    values["pairs"] = individual_disparity(exposure, merit, mask).gradient
    values["parity"] = parity_offsets(scores, mask, groups).values
    values["exact"] = ESTIMATORS["exact"](scores, labels, mask, reward=parse_metric("ndcg@3")).gradient
    for name in METRICS:
        values[name] = parse_metric(name)(rankings, labels, mask)
    return {name: np.asarray(numbers, np.float64).ravel().tolist() for name, numbers in values.items()}


def numbers_of_datasets():
    """Lists of numbers by name of what takes datasets and logs."""
    data = make_fair_synthetic(12, 6, random_state=0)
    scores = data.features[:, 0].round(1)
    rewards = ["ndcg@3", "0.5*ap + rbp(persistence=0.5)", "ndcg * ap", lambda rankings, labels, mask: labels.sum(-1)]
    value = rp.evaluation.policy_value.policy_value(rp.evaluation.policy_value.UniformPolicy(), data)
    values = {
        "evaluate": rp.evaluate(scores, data, rewards).values,
        "policy value": [value.utility, value.disparity],
        "linear program": penalized_ranking([3.0, 2.0, 1.0], ["a", "b", "a"], strength=2.0).probabilities,
        "birkhoff": mixture_of([[[0.75, 0.25], [0.25, 0.75]], [[1.0]]]).exposure(),
    }
    generator = np.random.default_rng(2)
    log = rp.off_policy.OffPolicyLog(
        items=np.argsort(generator.random((40, 4)))[:, :3],
        rewards=generator.random((40, 3)),
        contexts=np.arange(40) % 2,
        propensities=np.full((40, 3), 0.3),
        marginal_propensities=np.full((40, 3), 0.25),
    )
    policy = PlackettLuce(np.log([[4.0, 3.0, 2.0, 1.0], [1.0, 1.0, 1.0, 5.0]]), np.ones((2, 4), bool))
    for estimator in ("ips", "iips", "rips"):
        values[estimator] = rp.off_policy.estimate_policy_value(log, policy, estimator=estimator).value
    return {name: np.asarray(numbers, np.float64).ravel().tolist() for name, numbers in values.items()}
