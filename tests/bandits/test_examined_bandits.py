"""PBM and UBM bandits: what a list says where items may not have been examined."""

import math

import numpy as np
import pytest

from rankpolicy.bandits import PbmPIE, PbmTS, PbmUCB, UbmTS, UbmUCB
from rankpolicy.types import RankPolicyError

ATTRACTION, EXAMINATION = np.array([0.8, 0.3, 0.5, 0.1]), np.array([1.0, 0.6, 0.25])


def test_pbm_ucb_shows_the_largest_indices_where_they_are_examined_most():
    examination = np.array([0.5, 1.0, 0.2])
    for seed in range(10):
        generator = np.random.default_rng(seed)
        bandit = PbmUCB(num_items=4, cutoff=3, examination=tuple(examination))
        clicked, lists, examined = np.zeros((3, 4))
        for _ in range(60):
            ranking = generator.permutation(4)[:3]
            clicks = generator.random(3) < examination * ATTRACTION[ranking]
            bandit.learn(ranking, clicks)
            clicked[ranking] += clicks
            lists[ranking] += 1
            examined[ranking] += examination
        best = np.argsort(-(clicked / examined + np.sqrt(lists / examined) * np.sqrt(0.5 * math.log(61) / examined)))
        assert bandit.rank().tolist() == [best[1], best[0], best[2]]


def test_ubm_ucb_shows_the_largest_indices_first():
    """Clicks of UBM users, the sums of the index by hand."""
    examination = ((1.0,), (0.4, 0.9), (0.2, 0.5, 0.8))
    for seed in range(10):
        generator = np.random.default_rng(seed)
        bandit = UbmUCB(num_items=4, cutoff=3, examination=examination)
        clicked, lists, examined = np.zeros((3, 4))
        for _ in range(60):
            ranking, clicks, last = generator.permutation(4)[:3], np.zeros(3, int), 0
            for position, item in enumerate(ranking):
                chance = examination[position][last]
                clicks[position] = generator.random() < chance * ATTRACTION[item]
                examined[item] += chance
                last = position + 1 if clicks[position] else last
            bandit.learn(ranking, clicks)
            clicked[ranking] += clicks
            lists[ranking] += 1
        best = np.argsort(-(clicked / examined + np.sqrt(lists / examined) * np.sqrt(0.5 * math.log(61) / examined)))
        assert bandit.rank().tolist() == best[:3].tolist()


def upper_bound(clicks, lists, examination, threshold):
    """The largest a in [0, 1] with sum of lists kl(clicks / lists, e a) <= threshold, by search on a grid."""
    grid = np.linspace(1e-6, 1, 20_001)
    divergence = np.zeros(len(grid))
    for s, n, e in zip(clicks, lists, examination, strict=True):
        for part, chance in ((s, e * grid), (n - s, 1 - e * grid)):
            with np.errstate(divide="ignore"):
                divergence += part * np.log(part / n / chance) if part > 0 else 0.0
    reached = grid[divergence <= threshold]
    return reached.max() if len(reached) else grid[divergence.argmin()]


def test_pbm_pie_shows_leaders_and_rivals_of_the_last_one():
    """Rivals by a search for their upper confidence bounds; the leaders' best goes where examination is highest."""
    examination = np.array([0.5, 1.0, 0.2])
    num_rivals = []
    for seed in range(12):
        generator = np.random.default_rng(seed)
        bandit = PbmPIE(num_items=6, cutoff=3, examination=tuple(examination), radius=(0.3, 1.0)[seed % 2])
        attraction = generator.uniform(0.05, 0.9, 6)
        for _ in range(150):
            ranking = generator.permutation(6)[:3]
            bandit.learn(ranking, generator.random(3) < examination * attraction[ranking])
        clicks, lists = bandit.memory.statistics[..., 0].T, bandit.memory.statistics[..., 1].T  # (item, position)
        estimates = clicks.sum(1) / (lists @ examination)
        leaders = np.argsort(-estimates)[:3]
        threshold = bandit.radius * math.log(151)
        bounds = [upper_bound(clicks[item], lists[item], examination, threshold) for item in range(6)]
        rivals = [item for item in range(6) if item not in leaders and bounds[item] >= estimates[leaders[2]]]
        shown = [tuple(bandit.rank().tolist()) for _ in range(400)]
        assert {lists[:2] for lists in shown} == {(leaders[1], leaders[0])}
        assert {lists[2] for lists in shown} == {leaders[2], *rivals}
        share = np.mean([lists[2] != leaders[2] for lists in shown])
        assert abs(share - 0.5 * bool(rivals)) < 4 * 0.5 / math.sqrt(400)
        num_rivals.append(len(rivals))
    assert 0 in num_rivals
    assert max(num_rivals) > 1


def test_pbm_pie_shows_every_item_before_it_compares():
    bandit = PbmPIE(num_items=5, cutoff=2, examination=(1.0, 0.5))
    seen = set()
    for _ in range(3):
        ranking = bandit.rank()
        seen |= set(ranking.tolist())
        bandit.learn(ranking, [0, 0])
    assert seen == {0, 1, 2, 3, 4}


def test_pbm_pie_and_pbm_ucb_learn_with_known_examination():
    """Exploring at one position only costs less than bounds at all of them; regret grows slower than steps."""
    pytest.importorskip("numba")
    from rankpolicy.simulation import pbm_user, simulate, stationary

    examination = (1.0, 0.6, 0.3)
    problem = stationary(pbm_user(np.where(np.arange(10) < 3, 0.3, 0.1), examination), 3)
    makers = {
        "pie": lambda **options: PbmPIE(examination=examination, **options),
        "ucb": lambda **options: PbmUCB(examination=examination, **options),
    }
    found = simulate(makers, problem, num_steps=16_000, num_runs=8, executor="serial")
    middle = int(np.searchsorted(found.steps, 8_000))
    gain = found.regrets["ucb"][:, -1] - found.regrets["pie"][:, -1]
    assert gain.mean() > 4 * gain.std(ddof=1) / math.sqrt(len(gain))
    for name in makers:
        later = found.mean(name)[-1] - found.mean(name)[middle]
        assert later / (found.steps[-1] - found.steps[middle]) < 0.6 * found.mean(name)[middle] / found.steps[middle]


def estimated(bandit):
    from rankpolicy.kernels.bandits.position import fill_examination

    found = np.empty(len(bandit.memory.statistics))
    fill_examination(bandit.memory, found)
    return found


def test_examination_is_found_from_exact_rates():
    """clicks = lists x examination x attraction in every cell, lists of any number: only the true rates fit."""
    lists = np.random.default_rng(0).integers(1_000, 9_000, (3, 4)).astype(float)
    for bandit, true in (
        (PbmTS(num_items=4, cutoff=3), EXAMINATION),
        (UbmTS(num_items=4, cutoff=2), np.array([1.0, 0.6, 0.25])),
    ):
        bandit.memory.statistics[..., 1] = lists
        bandit.memory.statistics[..., 0] = lists * true[:, None] * ATTRACTION
        np.testing.assert_allclose(estimated(bandit), true, atol=0.01)
    np.testing.assert_array_equal(estimated(PbmTS(num_items=4, cutoff=3, examination=(0.9, 0.5, 0.2))), [0.9, 0.5, 0.2])


def test_ubm_cells_are_positions_and_last_clicks():
    bandit = UbmTS(num_items=4, cutoff=4)
    bandit.learn([3, 1, 0, 2], [0, 1, 0, 1])
    found = {(int(cell), int(item)): clicks for cell, item in np.argwhere(bandit.memory.statistics[..., 1])
             for clicks in [bandit.memory.statistics[cell, item, 0]]}  # fmt: skip
    # Position 1: cell 0; 2, none above: 1; 3, last click at 2: 3 + 2; 4, last click at 2: 6 + 2.
    assert found == {(0, 3): 0, (1, 1): 1, (5, 0): 0, (8, 2): 1}


def test_draws_are_close_to_the_posterior():
    """Item 0 shown where e = 0.5, item 1 where e = 1; P(a_0 > a_1) by sums over a grid of the true posteriors."""
    bandit = PbmTS(num_items=2, cutoff=2, examination=(1.0, 0.5))
    bandit.memory.statistics[1, 0] = 12, 40
    bandit.memory.statistics[0, 1] = 11, 20
    grid = (np.arange(2000) + 0.5) / 2000
    first, second = grid**12 * (1 - 0.5 * grid) ** 28, grid**11 * (1 - grid) ** 9
    below = np.cumsum(second) - second / 2
    expected = (first * below).sum() / first.sum() / second.sum()
    shown = np.mean([bandit.rank()[0] == 0 for _ in range(4000)])
    assert abs(shown - expected) < 0.03 + 4 * math.sqrt(expected * (1 - expected) / 4000)


def test_settings_are_checked():
    for make, text in [
        (lambda: PbmTS(num_items=3, cutoff=2, examination=(1.0,)), "2 probabilities for lists of 2; got 1"),
        (lambda: PbmUCB(num_items=3, cutoff=2, examination=(1.0, 0.0)), "above 0"),
        (lambda: PbmUCB(num_items=3, cutoff=2, radius=-1.0), "radius"),
        (lambda: UbmTS(num_items=3, cutoff=2, examination=((1.0,), (1.0,))), "each row"),
        (lambda: UbmTS(num_items=3, cutoff=3, examination=((1.0,), (1.0, 0.5))), "6 probabilities"),
        (lambda: UbmTS(num_items=3, cutoff=2, prior_skips=0.0), "prior_skips"),
        (lambda: UbmUCB(num_items=3, cutoff=3, examination=((1.0,), (1.0, 0.5))), "6 probabilities"),
        (lambda: PbmPIE(num_items=3, cutoff=2, examination=(1.0,)), "2 probabilities for lists of 2; got 1"),
        (lambda: PbmPIE(num_items=3, cutoff=2, radius=-1.0), "radius"),
    ]:
        with pytest.raises(RankPolicyError, match=text):
            make()
