"""What all off-policy estimators share, over the table of them."""

import numpy as np
import pytest

from rankpolicy.off_policy import OFF_POLICY_ESTIMATORS, OffPolicyLog, estimate_policy_value
from rankpolicy.types import RankPolicyError
from tests.off_policy.off_policy_reference import cascade, position_based, true_value, whole_list
from tests.off_policy.test_off_policy import NEW, OLD, TARGET, THETA, all_rounds, log_of, plackett_luce, random_rounds

# Users for whom an estimator is unbiased, whatever its model Q; the normalised estimators and "direct" are unbiased for none.
UNBIASED = {
    "ips": (position_based, cascade, whole_list),
    "iips": (position_based,),
    "rips": (position_based, cascade),
    "cascade-dr": (position_based, cascade),
}


@pytest.mark.parametrize(("name", "user"), [(name, user) for name, users in UNBIASED.items() for user in users])
def test_unbiased_against_enumeration(name, user):
    """On a log that holds every list exactly as often as it is likely, with its mean reward, the estimate is the expectation."""
    tails = np.random.default_rng(1).random((2, 2, 3))  # no matter how bad
    estimate = estimate_policy_value(
        log_of(all_rounds(user)), plackett_luce(NEW), estimator=name, position_weights=THETA, tail_values=tails
    )
    assert estimate.value == pytest.approx(true_value(user, TARGET, THETA), abs=1e-10)


@pytest.mark.parametrize(("name", "user"), [("iips", cascade), ("rips", whole_list), ("cascade-dr", whole_list)])
def test_biased_where_users_look_further_than_the_estimator(name, user):
    tails = np.zeros((2, 2, 3))
    estimate = estimate_policy_value(log_of(all_rounds(user)), plackett_luce(NEW), estimator=name, tail_values=tails)
    assert abs(estimate.value - true_value(user, TARGET, np.ones(2))) > 1e-3


@pytest.mark.parametrize("name", OFF_POLICY_ESTIMATORS)
def test_own_log_gives_the_mean_reward(name):
    """Evaluating the policy that made the log, every weight is 1."""
    log = log_of(random_rounds(400))
    estimate = estimate_policy_value(log, plackett_luce(OLD), estimator=name)
    if name in ("cascade-dr", "direct"):
        assert abs(estimate.value - log.rewards.sum(1).mean()) < 5 * estimate.standard_error + 0.05
    else:
        assert estimate.value == pytest.approx(log.rewards.sum(1).mean(), abs=1e-10)
        assert estimate.effective_sample_size == pytest.approx(400)
        assert estimate.mean_weight == pytest.approx(1)


@pytest.mark.parametrize("name", OFF_POLICY_ESTIMATORS)
def test_order_of_rounds_and_names_of_items_do_not_matter(name):
    log, tails = log_of(random_rounds(60)), np.random.default_rng(1).random((2, 2, 3))
    options = {"estimator": name, "position_weights": THETA}
    wanted = estimate_policy_value(log, plackett_luce(NEW), tail_values=tails, **options)
    order, renamed = np.random.default_rng(2).permutation(60), np.array([2, 0, 1])
    other = OffPolicyLog(
        items=renamed[log.items[order]],
        rewards=log.rewards[order],
        contexts=log.contexts[order],
        propensities=log.propensities[order],
        marginal_propensities=log.marginal_propensities[order],
    )
    weights, moved = np.empty((2, 3)), np.empty_like(tails)
    weights[:, renamed], moved[..., renamed] = NEW, tails
    got = estimate_policy_value(other, plackett_luce(weights.tolist()), tail_values=moved, **options)
    assert got.value == pytest.approx(wanted.value, abs=1e-12)
    assert got.standard_error == pytest.approx(wanted.standard_error, abs=1e-12)


@pytest.mark.parametrize("name", OFF_POLICY_ESTIMATORS)
def test_normalised_estimators_are_consistent(name):
    """On the log that holds every list as often as it is likely, normalising changes nothing: all weights have mean 1."""
    plain = {"snips": "ips", "sniips": "iips", "snrips": "rips"}.get(name, name)
    log = log_of(all_rounds(position_based))
    tails = np.random.default_rng(1).random((2, 2, 3))
    options = {"position_weights": THETA, "tail_values": tails}
    wanted = estimate_policy_value(log, plackett_luce(NEW), estimator=plain, **options)
    got = estimate_policy_value(log, plackett_luce(NEW), estimator=name, **options)
    assert got.value == pytest.approx(wanted.value, abs=1e-10)
    if got.mean_weight is not None:
        assert got.mean_weight == pytest.approx(1.0)


@pytest.mark.parametrize("name", OFF_POLICY_ESTIMATORS)
def test_a_true_model_gives_the_true_value(name):
    """With Q the true mean reward from each position on, the direct method is exact too."""
    attraction, examined = np.array([[0.1, 0.5, 0.8], [0.6, 0.3, 0.2]]), [1.0, 0.6]  # of position_based
    last = THETA[1] * examined[1] * attraction
    weights = np.array(NEW)
    others = weights.sum(1, keepdims=True) - weights
    first = THETA[0] * attraction + ((weights * last).sum(1, keepdims=True) - weights * last) / others
    estimate = estimate_policy_value(
        log_of(all_rounds(position_based)),
        plackett_luce(NEW),
        estimator=name,
        position_weights=THETA,
        tail_values=np.stack([first, last], axis=1),
    )
    assert estimate.value == pytest.approx(true_value(position_based, TARGET, THETA), abs=1e-10)


@pytest.mark.parametrize("name", OFF_POLICY_ESTIMATORS)
def test_without_propensities_weights_are_refused(name):
    log = log_of(random_rounds(20))
    bare = OffPolicyLog(items=log.items, rewards=log.rewards, contexts=log.contexts)
    if estimate_policy_value(log, plackett_luce(NEW), estimator=name).effective_sample_size is None:
        assert np.isfinite(estimate_policy_value(bare, plackett_luce(NEW), estimator=name).value)
        return
    with pytest.raises(RankPolicyError, match=r"need the log's (marginal_)?propensities"):
        estimate_policy_value(bare, plackett_luce(NEW), estimator=name)


@pytest.mark.parametrize("name", OFF_POLICY_ESTIMATORS)
def test_an_estimate_says_what_it_is(name):
    log = log_of(random_rounds(50))
    estimate = estimate_policy_value(log, plackett_luce(NEW), estimator=name, level=0.9)
    low, high = estimate.interval
    assert low < estimate.value < high
    assert (estimate.estimator, estimate.num_rounds, estimate.level) == (name, 50, 0.9)
    assert str(estimate).startswith(f"{name} {estimate.value:.6g}, 90% interval")
