"""TopRank and BubbleRank: what is sure of pairs decides, and BubbleRank keeps close to the ranking in use."""

import itertools
import math

import numpy as np
import pytest

from rankpolicy.bandits import BubbleRank, TopRank
from rankpolicy.simulation import draw_clicks, pbm_user
from rankpolicy.types import RankPolicyError


def test_top_rank_is_sure_after_as_many_lists_as_its_bound_says():
    """Item 0 is clicked always, item 1 never: S = N, so N >= 2 log(c / delta sqrt N) decides."""
    constant = 4 * math.sqrt(2 / math.pi) / math.erf(math.sqrt(2))
    needed = next(n for n in itertools.count(1) if n >= 2 * math.log(constant / 1e-4 * math.sqrt(n)))
    bandit = TopRank(num_items=2, cutoff=2)
    for count in range(1, needed + 1):
        assert bandit.memory.statistics[2].sum() == 0
        ranking = bandit.rank()
        bandit.learn(ranking, ranking == 0)
        assert bandit.memory.statistics[1, 0, 1] == count
    assert bandit.memory.statistics[2].tolist() == [[0, 0], [1, 0]]
    assert all(bandit.rank().tolist() == [0, 1] for _ in range(20))


def test_top_rank_shows_blocks_in_order():
    """1 beats 0 and 3 beats 2, and 0 beats 4: blocks {1, 3}, {0, 2}, {4}."""
    bandit = TopRank(num_items=5, cutoff=4)
    for worse, better in ((0, 1), (2, 3), (4, 0)):
        bandit.memory.statistics[2, worse, better] = 1
    lists = {tuple(bandit.rank().tolist()) for _ in range(200)}
    assert lists == {(a, b, c, d) for a, b in ((1, 3), (3, 1)) for c, d in ((0, 2), (2, 0))}
    ranking = bandit.rank()
    bandit.learn(ranking, ranking == 1)  # in the block of 3 only, whatever else was not clicked
    assert bandit.memory.statistics[1][~np.eye(5, dtype=bool)].sum() == 2
    bandit.rank([0, 3, 4])
    bandit.learn([3, 0, 4], [0, 1, 0])  # 0 shares its block with 3 now, as 1 is not there; 2 is not either
    assert bandit.memory.statistics[0, 0, [1, 2, 3, 4]].tolist() == [0, 0, 1, 0]


def wrong_pairs(ranking, attraction):
    """How many pairs stand in the wrong order."""
    values = attraction[np.asarray(ranking)]
    return sum(upper < lower for upper, lower in itertools.combinations(values, 2))


@pytest.mark.parametrize("seed", range(4))
def test_bubble_rank_is_safe(seed):
    """At every list, learning or not: at most half as many wrong pairs more than the base has as there are positions."""
    generator = np.random.default_rng(seed)
    attraction = np.linspace(0.9, 0.1, 6)
    base = generator.permutation(6)
    user = pbm_user(attraction, [1.0, 0.8, 0.6, 0.5, 0.4, 0.3])
    bandit = BubbleRank(num_items=6, cutoff=6, base_ranking=tuple(base.tolist()), random_state=seed)
    allowed = wrong_pairs(base, attraction) + 6 // 2
    for step in range(2000):
        ranking = bandit.rank()
        leader = bandit.leading_ranking()
        moved = np.flatnonzero(ranking != leader)
        assert wrong_pairs(ranking, attraction) <= allowed
        assert (moved[::2] % 2 == step % 2).all()  # odd and even pairs in turn
        np.testing.assert_array_equal(ranking[moved].reshape(-1, 2), leader[moved].reshape(-1, 2)[:, ::-1])
        bandit.learn(ranking, draw_clicks(user, ranking, generator))
    assert wrong_pairs(bandit.leading_ranking(), attraction) < max(1, wrong_pairs(base, attraction))


def test_bubble_rank_brings_an_item_in_from_below():
    generator = np.random.default_rng(0)
    user = pbm_user([0.05, 0.5, 0.9, 0.9, 0.9], [1.0, 0.7])
    bandit = BubbleRank(num_items=5, cutoff=2)
    assert sorted(bandit.rank().tolist()) == [0, 1]  # the first pair only
    for _ in range(1500):
        ranking = bandit.rank()
        assert set(ranking.tolist()) <= set(bandit.leading_ranking()[:3].tolist())
        bandit.learn(ranking, draw_clicks(user, ranking, generator))
    np.testing.assert_array_equal(bandit.leading_ranking(), [2, 1, 0, 3, 4])


def test_bubble_rank_exchanges_what_is_sure():
    """The lower is clicked in every list that exchanged them: N > 2 sqrt(N log(1 / delta)) from N = 37 on."""
    bandit = BubbleRank(num_items=2, cutoff=2)
    needed = math.floor(4 * math.log(1e4)) + 1
    while bandit.memory.statistics[1, 0, 1] < needed:
        np.testing.assert_array_equal(bandit.leading_ranking(), [0, 1])
        ranking = bandit.rank()
        bandit.learn(ranking, ranking == 1)
    assert needed == 37
    bandit.rank()
    np.testing.assert_array_equal(bandit.leading_ranking(), [1, 0])
    assert all(bandit.rank().tolist() == [1, 0] for _ in range(20))
    bandit.add_items(1)
    np.testing.assert_array_equal(bandit.leading_ranking(), [1, 0, 2])
    bandit.forget_items([0])
    np.testing.assert_array_equal(bandit.leading_ranking(), [0, 1, 2])


def test_items_that_are_not_in_the_base_ranking_follow_it():
    bandit = BubbleRank(num_items=4, cutoff=2, base_ranking=(2, 1))
    np.testing.assert_array_equal(bandit.leading_ranking(), [2, 1, 0, 3])
    bandit.add_items(1)
    np.testing.assert_array_equal(bandit.leading_ranking(), [2, 1, 0, 3, 4])


def test_settings_are_checked():
    for make, text in [
        (lambda: TopRank(num_items=3, cutoff=2, failure_probability=0.0), "failure_probability"),
        (lambda: BubbleRank(num_items=3, cutoff=2, base_ranking=(0, 3)), "from 0 to 2; got 3"),
        (lambda: BubbleRank(num_items=3, cutoff=2, base_ranking=(0, 0, 1)), "each item once"),
    ]:
        with pytest.raises(RankPolicyError, match=text):
            make()
