import numpy as np
import pytest

from rankpolicy.bandits import BANDITS, DcmKLUCB
from rankpolicy.executors import Threads
from rankpolicy.simulation import (
    Phase,
    Problem,
    abrupt_drift,
    change_items,
    dcm_lower_bound_problem,
    dcm_user,
    gradual_drift,
    log_spaced_steps,
    mean_over_problems,
    random_user,
    simulate,
    stationary,
)
from rankpolicy.simulation.runs import run_step_by_step
from rankpolicy.types import RankPolicyError

pytest.importorskip("numba")

SMALL = dcm_lower_bound_problem(6, 2, gap=0.15, termination=0.5)


def kernel_draw(seed, run):
    """Clicks of the compiled user, one list at a time."""
    from rankpolicy.kernels.clicks.walk import draw_clicks, random_source

    state = random_source(seed, run)

    def draw(user, ranking):
        nonlocal state
        clicks = np.zeros(len(ranking), np.int8)
        state = np.uint64(draw_clicks(user.walk(ranking), state, clicks))
        return clicks

    return draw


def by_hand(name, problem, steps, *, seed, **settings):
    state = np.random.SeedSequence(seed).generate_state(1)[0] % (2**31 - 1)
    bandit = BANDITS[name](num_items=problem.num_items, cutoff=problem.cutoff, random_state=int(state), **settings)
    return run_step_by_step(bandit, problem, steps=steps, draw=kernel_draw(seed, 0), free_observations=True)


@pytest.mark.parametrize("name", BANDITS)
def test_the_compiled_loop_is_the_loop_of_the_face(name):
    steps = np.array([1, 10, 60])
    found = simulate([name], SMALL, num_steps=60, num_runs=1, random_state=3, steps=steps, executor="serial")
    np.testing.assert_allclose(found.regrets[name][0], by_hand(name, SMALL, steps, seed=3), atol=1e-12)


@pytest.mark.parametrize("kind", ["cascade", "dcm", "pbm", "ubm", "ccm", "dbn", "sdbn"])
def test_the_compiled_loop_knows_all_users_drift_and_items(kind):
    problem = stationary(random_user(kind, 6, 2, random_state=1), 2)
    problem = abrupt_drift(problem, problem.phases[0].user.attraction[::-1], at=15)
    problem = change_items(problem, [1, 2, 4], at=25)
    problem = change_items(problem, [5], at=35)
    problem = gradual_drift(problem, np.full(6, 0.3), start=40, end=50, num_changes=5)
    steps = np.array([14, 15, 30, 60])
    settings = {"window": 12}
    found = simulate(
        {"it": lambda **given: DcmKLUCB(**given, **settings)},
        problem,
        num_steps=60,
        num_runs=1,
        steps=steps,
        executor="serial",
    )
    np.testing.assert_allclose(
        found.regrets["it"][0], by_hand("dcm-kl-ucb", problem, steps, seed=0, **settings), atol=1e-12
    )


def test_threads_and_company_do_not_change_results():
    alone = simulate(["dcm-ts"], SMALL, num_steps=300, num_runs=4, random_state=1, executor="serial")
    together = simulate(["dcm-kl-ucb", "dcm-ts"], SMALL, num_steps=300, num_runs=4, random_state=1, executor=Threads(3))
    more = simulate(["dcm-ts"], SMALL, num_steps=300, num_runs=6, random_state=1, executor=Threads(2))
    np.testing.assert_array_equal(alone.regrets["dcm-ts"], together.regrets["dcm-ts"])
    np.testing.assert_array_equal(alone.regrets["dcm-ts"], more.regrets["dcm-ts"][:4])
    other = simulate(["dcm-ts"], SMALL, num_steps=300, num_runs=4, random_state=2, executor="serial")
    assert (other.regrets["dcm-ts"][:, -1] != alone.regrets["dcm-ts"][:, -1]).all()


def test_regret_of_random_lists_is_its_expectation():
    """Two of three items with attraction 1, 0, 0 and v = 1: the best one is missed with probability 1/3."""
    problem = stationary(dcm_user([1.0, 0.0, 0.0], termination=[1.0, 1.0]), 2)
    found = simulate(["random"], problem, num_steps=900, num_runs=20)
    np.testing.assert_allclose(found.mean("random")[-1], 300, atol=4 * np.sqrt(900 * 2 / 9 / 20))
    np.testing.assert_allclose(found.standard_error("random")[-1], np.sqrt(900 * 2 / 9 / 20), rtol=0.6)


def test_known_best_items_cost_nothing():
    """All free observations of sure items: greedy shows the best two at once and for good."""
    problem = stationary(dcm_user([0.0, 1.0, 0.0, 1.0], termination=[1.0, 1.0]), 2)
    found = simulate(
        {"greedy": lambda **given: BANDITS["epsilon-greedy"](epsilon=0.0, **given)}, problem, num_steps=50, num_runs=2
    )
    np.testing.assert_array_equal(found.regrets["greedy"], 0.0)


def test_forgetting_pays_when_users_change():
    attraction = np.array([0.6, 0.6, 0.1, 0.1, 0.1, 0.1])
    problem = abrupt_drift(stationary(dcm_user(attraction, [0.7, 0.7]), 2), attraction[::-1], at=4001)
    makers = {
        "all": BANDITS["dcm-ts"],
        "window": lambda **given: BANDITS["dcm-ts"](window=800, **given),
        "discount": lambda **given: BANDITS["dcm-ts"](discount=0.998, **given),
    }
    regrets = simulate(makers, problem, num_steps=8000, num_runs=10, steps=[4000, 8000]).regrets
    for name in ("window", "discount"):
        gain = regrets["all"][:, 1] - regrets[name][:, 1]
        assert gain.mean() > 3 * gain.std(ddof=1) / np.sqrt(10)


def test_json_has_the_agreed_shape_and_means_are_over_problems():
    parts = [simulate(["dcm-ts"], SMALL, num_steps=20, num_runs=3, random_state=seed, steps=[5, 20]) for seed in (0, 1)]
    document = parts[0].to_dict()
    assert document["problem"]["items"] == 6
    assert document["problem"]["runs"] == 3
    policy = document["policies"]["dcm-ts"]
    assert policy["steps"] == [5, 20]
    np.testing.assert_allclose(policy["regret"], parts[0].regrets["dcm-ts"].mean(0))
    both = mean_over_problems(parts)
    np.testing.assert_allclose(both.mean("dcm-ts"), (parts[0].mean("dcm-ts") + parts[1].mean("dcm-ts")) / 2)
    assert len(both.to_dict()["problem"]["mean_over"]) == 2


def test_bad_input_is_refused():
    user, other = (dcm_user([0.5, 0.5, 0.5], termination=[v]) for v in (0.5, 0.6))
    first = stationary(user, 1).phases[0]
    for call, text in [
        (lambda: simulate([], SMALL, num_steps=5, num_runs=1), "at least one bandit"),
        (lambda: simulate(["dcm-tz"], SMALL, num_steps=5, num_runs=1), "Did you mean 'dcm-ts'"),
        (lambda: simulate(["dcm-ts"], SMALL, num_steps=0, num_runs=1), "1 step and 1 run"),
        (lambda: simulate(["dcm-ts"], SMALL, num_steps=5, num_runs=1, steps=[6]), "from 1 to 5"),
        (lambda: stationary(user, 2), "all 2 positions"),
        (lambda: stationary(user, 0), "cutoff"),
        (lambda: abrupt_drift(stationary(user, 1), [0.5], at=5), r"attraction must be \(item,\), here \(3,\)"),
        (lambda: Problem(phases=(first, Phase(start=5, user=other, available=np.arange(3))), cutoff=1), "share kind"),
        (lambda: abrupt_drift(stationary(user, 1), [0.5, 0.5, 1.5], at=5), "probabilities"),
        (lambda: abrupt_drift(stationary(user, 1), [0.5, 0.5, 0.5], at=1), "one after another"),
        (lambda: dcm_lower_bound_problem(3, 4, gap=0.1, termination=0.5), "as many items"),
    ]:
        with pytest.raises(RankPolicyError, match=text):
            call()


def test_log_spaced_steps_end_at_the_last():
    for num_steps in (1, 7, 1000):
        steps = log_spaced_steps(num_steps)
        assert steps[0] == 1
        assert steps[-1] == num_steps
        assert (np.diff(steps) > 0).all()
