"""Bandits simulated on a GPU: the lists that the bandit's own formulas call for, and the regret of the CPU within the noise of the runs."""

import logging
from functools import partial

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from rankpolicy.bandits import BANDITS, IndexBandit
from rankpolicy.bandits.indices import KLUCB, UCB1
from rankpolicy.kernels.bandits.examination import fill_examination, observed
from rankpolicy.kernels.bandits.parsimonious import may_reach
from rankpolicy.kernels.triton.bandit_indices import beta_draws
from rankpolicy.kernels.triton.bandits import Trace, new_state
from rankpolicy.simulation import (
    change_items,
    dbn_user,
    dcm_user,
    on_device,
    pbm_user,
    random_user,
    runs,
    simulate,
    stationary,
)
from rankpolicy.simulation.users import reward_of

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
DCM = stationary(dcm_user([0.7, 0.5, 0.6, 0.2, 0.1], [0.8, 0.5, 0.6]), 3)
KINDS = [
    "dcm-kl-ucb", "dcm-kl-ucb-log", "dcm-ucb1", "dcm-ts", "first-click", "last-click", "cascade-kl-ucb", "cascade-ucb1", "cascade-ts",
    "mp-ts", "ranked-kl-ucb", "ranked-exp3", "pbm-ucb", "pbm-ts", "ubm-ucb", "ubm-ts", "ccm-ucb", "ccm-ts", "dbn-ucb", "dbn-ts",
    "pbm-pie", "top-rank", "bubble-rank", "dcm-lin-ucb", "dcm-lin-ts", "epsilon-greedy", "random",
]  # fmt: skip


@pytest.fixture
def there(device, monkeypatch):
    """Simulations on a device run where these tests run, which may be Triton's interpreter."""
    monkeypatch.setattr(on_device, "CUDA", device)
    return device


def traced(device, make, problem, *, num_steps, num_runs=2, **options):
    """Lists (run, step, position), clicks (run, step, position) and regret (run, step)."""
    rule = on_device.rule_of(make, problem)
    trace = Trace(
        torch.full((num_runs, num_steps, problem.num_items), -9, dtype=torch.int32, device=device),
        torch.full((num_runs, num_steps), -9, dtype=torch.int64, device=device),
    )
    regrets = on_device.regrets_on_device(
        rule, problem, steps=np.arange(1, num_steps + 1), num_runs=num_runs, trace=trace,
        **({"random_state": 3, "free_observations": False} | options),
    )  # fmt: skip
    positions, marks = trace.positions.cpu().numpy(), trace.clicks.cpu().numpy()
    length = positions.max() + 1
    order = np.where(positions < 0, 99, positions).argsort(-1, kind="stable")
    rankings = np.where(np.arange(length) <= positions.max(-1, keepdims=True), order[..., :length], -1)
    return rankings, (marks[..., None] >> np.arange(length)) & 1, regrets


def values_of(bandit, position):
    """The numbers by which a bandit orders its items at a position."""
    statistics, settings = bandit.memory.statistics, bandit.memory.settings
    time = bandit.memory.steps[0] + 1.0
    if bandit.name.endswith("bm-ucb"):
        examination = np.empty(len(statistics))
        fill_examination(bandit.memory, examination)
        clicks, lists = statistics[..., 0].sum(0), statistics[..., 1].sum(0)
        examined = examination @ statistics[..., 1]
        bounds = clicks + np.sqrt(lists * settings[0] * np.log(time))
        return [bound / own if own else 1e9 for bound, own in zip(bounds, examined, strict=True)]
    table = statistics[position if len(statistics) > 1 else 0]
    if bandit.name == "epsilon-greedy":
        return [clicks / shown if shown else 1e9 for clicks, shown in table]
    index = KLUCB if bandit.name == "ranked-kl-ucb" else bandit._used_index()
    if bandit.discount < 1:
        time = (1 - bandit.discount**time) / (1 - bandit.discount)
    threshold = index.threshold(min(time, bandit.window or time), settings)
    return [index.value(clicks, shown, threshold, settings, None) for clicks, shown in table]


def order_of(bandit, ranking):
    """The positions of a list in the order in which the bandit fills them."""
    if getattr(bandit, "best_last", False):
        return range(len(ranking))[::-1]
    if bandit.name == "pbm-ucb":
        examination = np.empty(len(bandit.memory.statistics))
        fill_examination(bandit.memory, examination)
        values = values_of(bandit, 0)  # positions that are examined alike come in random order
        return sorted(range(len(ranking)), key=lambda place: (-examination[place], -values[ranking[place]]))
    return range(len(ranking))


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("dcm-kl-ucb", {}),
        ("dcm-ucb1", {"discount": 0.9, "radius": 0.1}),
        ("first-click", {"log_log_weight": 0.0}),
        ("last-click", {"best_last": True, "log_log_weight": 0.0}),
        ("ranked-kl-ucb", {"log_log_weight": 0.0}),
        ("epsilon-greedy", {"epsilon": 0.0}),
        ("dcm-ucb1", {"window": 4, "radius": 0.1}),
        ("pbm-ucb", {"examination": (0.5, 0.9, 0.7)}),
        ("pbm-ucb", {"radius": 0.01}),
        ("ubm-ucb", {"radius": 0.01}),
        ("ubm-ucb", {"examination": ((0.9,), (0.5, 0.8), (0.3, 0.6, 0.7))}),
    ],
)
def test_lists_are_those_of_the_bandit_given_its_clicks(there, name, settings):
    make = partial(BANDITS[name], **settings)
    rankings, clicks, regrets = traced(there, make, DCM, num_steps=7)
    for own_rankings, own_clicks, own_regrets in zip(rankings, clicks, regrets, strict=True):
        bandit, total = make(num_items=5, cutoff=3), 0.0
        for ranking, marks, regret in zip(own_rankings, own_clicks, own_regrets, strict=True):
            left = list(range(5))
            for position in order_of(bandit, ranking):
                values = values_of(bandit, position)
                assert values[ranking[position]] == pytest.approx(max(values[other] for other in left), rel=1e-9)
                left.remove(ranking[position])
            bandit.learn(ranking, marks)
            total += DCM.best_rewards()[0] - reward_of(DCM.phases[0].user, ranking)
            assert regret == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize("name", ["ccm-ucb", "dbn-ucb"])
def test_chains_rank_and_learn_as_on_the_cpu(there, name):
    generator, problem, step = np.random.default_rng(4), stationary(dbn_user([0.6] * 6, [0.5] * 6, 0.9), 3), 40
    rule, num_runs = on_device.rule_of(BANDITS[name], problem), 6
    trials = generator.uniform(0, 9, (num_runs, rule.num_tables, 6))
    trials[1:, -1] *= 4  # satisfaction is known better in some runs than in others
    successes = trials * generator.random(trials.shape)
    start = new_state(rule, num_runs, 6, there)
    start.clicks[:], start.observations[:] = torch.from_numpy(successes), torch.from_numpy(trials)
    trace = Trace(
        torch.zeros(num_runs, step, 6, dtype=torch.int32, device=there),
        torch.zeros(num_runs, step, dtype=torch.int64, device=there),
    )
    on_device.regrets_on_device(
        rule, problem, steps=np.array([step]), num_runs=num_runs, random_state=0, free_observations=False, first_step=step,
        start=start, trace=trace,
    )  # fmt: skip
    for run in range(num_runs):
        bandit = BANDITS[name](num_items=6, cutoff=3)
        bandit.memory.statistics[..., 0], bandit.memory.statistics[..., 1] = successes[run], trials[run]
        bandit.memory.steps[0] = step - 1
        positions = trace.positions[run, -1].cpu().numpy()
        ranking = np.array([int(np.flatnonzero(positions == position)[0]) for position in range(3)])
        assert bandit.rank().tolist() == ranking.tolist()
        bandit.learn(ranking, (int(trace.clicks[run, -1]) >> np.arange(3)) & 1)
        learned = torch.stack([start.clicks[run], start.observations[run]], -1).cpu().numpy()
        np.testing.assert_allclose(learned, bandit.memory.statistics, rtol=0, atol=1e-9)


def test_linear_bandits_rank_and_learn_as_on_the_cpu(there):
    features = np.random.default_rng(2).normal(size=(5, 3))
    make = partial(BANDITS["cascade-lin-ucb"], features=features, radius=0.7)
    start = new_state(on_device.rule_of(make, DCM), 1, 5, there)
    rankings, clicks, _ = traced(there, make, DCM, num_steps=6, num_runs=1, start=start)
    bandit = make(num_items=5, cutoff=3)
    for ranking, marks in zip(rankings[0], clicks[0], strict=True):
        assert bandit.rank().tolist() == ranking.tolist()
        bandit.learn(ranking, marks)
    found, expected = start.clicks.cpu().numpy().ravel(), bandit.memory.statistics[0]
    np.testing.assert_allclose(found[:9].reshape(3, 3), expected[:, 1:], rtol=0, atol=1e-12)
    np.testing.assert_allclose(found[9:12], expected[:, 0], rtol=0, atol=1e-12)


def test_linear_thompson_sampling_draws_from_its_posterior(there):
    """With a covariance that makes two items vary together, they are shown together."""
    features = np.array([[1.0, 0.0], [1.0, 0.01], [0.0, 1.0]])
    make = partial(BANDITS["dcm-lin-ts"], features=features)
    problem = stationary(dcm_user([0.5, 0.5, 0.5], [0.5, 0.5]), 2)
    num_runs = 100
    rule = on_device.rule_of(make, problem)
    start = new_state(rule, num_runs, 3, there)
    covariance = torch.tensor([1.0, -0.9, -0.9, 1.0], dtype=torch.float64)
    start.clicks.view(num_runs, -1)[:, :4] = covariance.to(there)
    trace = Trace(
        torch.zeros(num_runs, 2, 3, dtype=torch.int32, device=there),
        torch.zeros(num_runs, 2, dtype=torch.int64, device=there),
    )
    on_device.regrets_on_device(
        rule, problem, steps=np.array([2]), num_runs=num_runs, random_state=0, free_observations=False, first_step=2,
        start=start, trace=trace,
    )  # fmt: skip
    positions = trace.positions[:, -1].cpu().numpy()
    draws = np.random.default_rng(0).multivariate_normal([0, 0], [[1, -0.9], [-0.9, 1]], 20_000) @ features.T
    expected = (np.argmin(draws, 1) == 2).mean()
    assert (positions[:, 2] < 0).mean() == pytest.approx(expected, abs=4 * 0.5 / num_runs**0.5)
    assert expected > 0.4


@pytest.mark.parametrize("name", ["top-rank", "bubble-rank"])
def test_pairs_are_compared_as_on_the_cpu(there, name):
    num_steps, attraction = 16, [0.0, 0.9, 0.2, 1.0, 0.1]
    make = partial(BANDITS[name], failure_probability=0.9)
    problem = stationary(dcm_user(attraction, [0.1, 0.1, 0.1]), 3)
    start = new_state(on_device.rule_of(make, problem), 1, 5, there)
    rankings, clicks, _ = traced(there, make, problem, num_steps=num_steps, num_runs=1, start=start)
    bandit, reordered = make(num_items=5, cutoff=3), 0
    for ranking, marks in zip(rankings[0], clicks[0], strict=True):
        own = bandit.rank()  # in random order where the bandit does not know better
        tables = bandit.memory.statistics
        if name == "top-rank":
            in_blocks = tables[0].diagonal()[ranking]
            assert sorted(in_blocks) == in_blocks.tolist() == sorted(tables[0].diagonal()[own])
            reordered += tables[2].any()
        else:
            places = tables[0].diagonal()
            assert np.abs(places[ranking] - np.arange(3)).max() <= 1
            reordered += (places != np.arange(5)).any()
        bandit.learn(ranking, marks)
    assert reordered
    found, expected = start.clicks[0].cpu().numpy(), bandit.memory.statistics
    apart = ~np.eye(5, dtype=bool)
    np.testing.assert_array_equal(found[:5][apart], expected[0][apart])
    np.testing.assert_array_equal(start.observations[0, :5].cpu().numpy()[apart], expected[1][apart])
    if name == "top-rank":
        np.testing.assert_array_equal(found[5:].T[apart], expected[2][apart])
    else:
        np.testing.assert_array_equal(found[5], expected[0].diagonal())


def test_parsimonious_exploration_knows_its_rivals(there):
    problem = stationary(pbm_user([0.6, 0.5, 0.4, 0.3, 0.2], [0.9, 0.5, 0.3]), 3)
    make = partial(BANDITS["pbm-pie"], examination=(0.9, 0.5, 0.3), radius=0.3)
    rankings, clicks, _ = traced(there, make, problem, num_steps=14, num_runs=2)
    replaced = 0
    for own_rankings, own_clicks in zip(rankings, clicks, strict=True):
        bandit = make(num_items=5, cutoff=3)
        for ranking, marks in zip(own_rankings, own_clicks, strict=True):
            memory, examination = bandit.memory, np.array([0.9, 0.5, 0.3])
            counts = [observed(memory, item, examination) for item in range(5)]
            estimates = np.array([click / examined if examined else 1e9 for click, examined in counts])
            order = np.sort(estimates)[::-1]
            np.testing.assert_allclose(estimates[ranking[:2]], order[:2], rtol=1e-12)
            if not np.isclose(estimates[ranking[2]], order[2]):
                replaced += 1
                threshold = 0.3 * np.log(bandit.memory.steps[0] + 1)
                assert may_reach(memory, ranking[2], examination, min(1.0, order[2]), threshold)
            bandit.learn(ranking, marks)
    assert replaced


def test_runs_do_not_depend_on_company_or_launches(there, monkeypatch):
    rule = on_device.rule_of(BANDITS["dcm-ts"], DCM)
    run = partial(
        on_device.regrets_on_device, rule, DCM, steps=np.array([1, 5]), random_state=5, free_observations=True
    )
    together = run(num_runs=3)
    monkeypatch.setattr(on_device, "STEPS_OF_A_LAUNCH", 4)
    monkeypatch.setattr(on_device, "MOST_RUNS_AT_ONCE", 2)
    np.testing.assert_array_equal(run(num_runs=3), together)
    np.testing.assert_array_equal(run(num_runs=1, first_run=2)[0], together[2])
    assert len(np.unique(together[:, -1])) == 3


def test_only_available_items_are_shown(there):
    problem = change_items(stationary(dcm_user([0.5] * 6, [0.5, 0.5]), 2), [3, 5], at=4)
    rankings, _, _ = traced(there, BANDITS["random"], problem, num_steps=6)
    assert len(set(rankings[:, :3].ravel())) > 2
    assert set(rankings[:, 3:].ravel()) == {3, 5}


@triton.jit
def draw_kernel(a, b, drawn, ITEMS: tl.constexpr):
    items = tl.arange(0, ITEMS)
    step = tl.cast(1, tl.int64)
    tl.store(drawn + items, beta_draws(tl.load(a + items), tl.load(b + items), 11, 2, step, items))


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.4, 2.0), (300.0, 700.0), (1.0, 60.0)])
def test_beta_draws_have_the_moments_of_the_distribution(device, a, b):
    count = 8192
    arrays = [torch.full((count,), value, dtype=torch.float64, device=device) for value in (a, b)]
    drawn = torch.empty_like(arrays[0])
    draw_kernel[(1,)](*arrays, drawn, ITEMS=count, num_warps=4)
    found, mean = drawn.cpu().numpy(), a / (a + b)
    variance = mean * (1 - mean) / (a + b + 1)
    assert found.mean() == pytest.approx(mean, abs=4.5 * np.sqrt(variance / count))
    assert found.var() == pytest.approx(variance, rel=0.12)
    assert ((found > 0) & (found < 1)).all()


def test_bandits_that_the_kernel_does_not_know_run_on_the_cpu_and_the_log_says_so(there, monkeypatch, caplog):
    class OwnIndex(UCB1):
        name = "own"

        @staticmethod
        def value(clicks, observations, threshold, settings, generator):
            return -clicks

    monkeypatch.setattr(runs, "takes_cuda", lambda name, **_: name == "cuda")
    makers = {
        "linear": partial(BANDITS["dcm-lin-ucb"], features=np.eye(5, 80)),
        "forgetful": partial(BANDITS["pbm-ts"], window=5),
        "own": partial(IndexBandit, index=OwnIndex()),
        "function": lambda **given: BANDITS["dcm-ts"](**given),
        "random": BANDITS["random"],
    }
    with caplog.at_level(logging.INFO, logger="rankpolicy.simulation"):
        found = simulate(makers, DCM, num_steps=3, num_runs=2, device="cuda")
    assert [record.getMessage().split(" runs")[0] for record in caplog.records] == [
        "linear",
        "forgetful",
        "own",
        "function",
    ]
    expected = simulate({"own": makers["own"]}, DCM, num_steps=3, num_runs=2)
    np.testing.assert_array_equal(found.regrets["own"], expected.regrets["own"])
    assert np.isfinite(found.regrets["random"]).all()


PROBLEMS = {
    "dcm": DCM,
    "dbn": stationary(dbn_user([0.7, 0.5, 0.4, 0.2], [0.9, 0.2, 0.5, 0.4], 0.8), 3),
    "pbm": stationary(pbm_user([0.7, 0.5, 0.4, 0.2], [0.9, 0.5, 0.3]), 3),
    "ubm": stationary(random_user("ubm", 6, 4, random_state=1), 4),
    "ccm": stationary(random_user("ccm", 40, 5, random_state=1), 5),
}


@pytest.mark.parametrize(
    ("name", "users"),
    [(name, users) for name in KINDS for users in PROBLEMS if users in ("dcm", "ccm", BANDITS[name].made_for)],
)
def test_regret_is_that_of_the_cpu_within_noise(only_on_gpu, name, users):
    options = {"num_steps": 400, "steps": [1, 20, 400]}
    expected = simulate([name], PROBLEMS[users], num_runs=600, **options)
    found = simulate([name], PROBLEMS[users], num_runs=2000, device="cuda", **options)
    error = np.hypot(found.standard_error(name), expected.standard_error(name))
    np.testing.assert_array_less(np.abs(found.mean(name) - expected.mean(name)), 4.5 * error + 1e-9)


@pytest.mark.parametrize("users", PROBLEMS)
def test_users_click_with_their_probabilities(only_on_gpu, users):
    from rankpolicy.kernels.clicks.walk import click_probabilities

    problem = PROBLEMS[users]
    rankings, clicks, _ = traced(only_on_gpu, BANDITS["dcm-kl-ucb"], problem, num_steps=1, num_runs=20_000)
    user, length = problem.phases[0].user, problem.cutoff
    expected = np.empty(rankings[:, 0].shape)
    for ranking, row in zip(rankings[:, 0], expected, strict=True):
        walk = user.walk(ranking)
        click_probabilities(walk, np.empty(walk.examination.shape[1]), row)
    error = np.sqrt((expected * (1 - expected)).mean(0) / len(expected))
    assert expected.shape[1] == length
    np.testing.assert_array_less(np.abs(clicks[:, 0].mean(0) - expected.mean(0)), 4.5 * error)
