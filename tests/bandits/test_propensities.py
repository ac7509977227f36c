import itertools
import math

import numpy as np
import pytest

from rankpolicy.bandits import DcmTS, EpsilonGreedy, QueryBandit, RandomLists, RankedExp3
from rankpolicy.types import RankPolicyError

NUM_DRAWS = 6000


@pytest.mark.parametrize("bandit_class", [EpsilonGreedy, RandomLists, RankedExp3])
def test_lists_come_as_often_as_propensities_say(bandit_class):
    bandit = bandit_class(num_items=4, cutoff=2, random_state=2)
    if bandit_class is EpsilonGreedy:
        bandit = EpsilonGreedy(num_items=4, cutoff=2, epsilon=0.4, random_state=2)
    for _ in range(25):
        ranking = bandit.rank()
        bandit.learn(ranking, (ranking < 2).astype(int))
    available = [0, 1, 3]
    lists = list(itertools.permutations(available, 2))
    expected = {ranking: bandit.propensities(ranking, available).prod() for ranking in lists}
    assert sum(expected.values()) == pytest.approx(1)
    drawn = [tuple(bandit.rank(available).tolist()) for _ in range(NUM_DRAWS)]
    for ranking, probability in expected.items():
        error = math.sqrt(probability * (1 - probability) / NUM_DRAWS)
        assert abs(drawn.count(ranking) / NUM_DRAWS - probability) <= 4 * error + 1e-12


def test_exp3_weighs_losses_by_the_propensity_of_the_list():
    bandit = RankedExp3(num_items=3, cutoff=1)
    bandit.learn([0], [0])  # never ranked by it
    assert bandit.memory.statistics[0, :, 0].sum() == 0
    item = bandit.rank()[0]
    bandit.learn([item], [0])
    assert bandit.memory.statistics[0, item, 0] == pytest.approx(3.0)  # a loss of 1 at probability 1/3
    rate = math.sqrt(math.log(3) / (3 * 3))
    assert bandit.propensities([item])[0] == pytest.approx(math.exp(-3 * rate) / (2 + math.exp(-3 * rate)))


def test_bandits_without_propensities_say_so():
    with pytest.raises(RankPolicyError, match="dcm-ts has no propensities"):
        DcmTS(num_items=3, cutoff=2).propensities([0, 1])
    with pytest.raises(RankPolicyError, match="available items; got 2"):
        EpsilonGreedy(num_items=3, cutoff=2).propensities([2], [0, 1])


def test_propensities_of_the_greedy_part():
    bandit = EpsilonGreedy(num_items=3, cutoff=2, epsilon=0.0)
    bandit.learn_log(
        [
            [
                0,
                1,
            ],
            [2, -1],
        ],
        [[0, 1], [0, 0]],
    )
    np.testing.assert_allclose(bandit.propensities([1, 2]), [1.0, 0.5])
    np.testing.assert_allclose(bandit.propensities([0, 1]), [0.0, 1.0])


@pytest.mark.parametrize(("name", "settings"), [("epsilon-greedy", {"epsilon": 0.3}), ("random", None)])
def test_the_bandits_of_queries_have_the_propensities_of_their_bandit(name, settings):
    by_query = QueryBandit(bandit=name, cutoff=3, bandit_settings=settings)
    alone = (EpsilonGreedy if settings else RandomLists)(num_items=4, cutoff=3, **(settings or {}))
    names = list("abcd")
    rng = np.random.default_rng(0)
    for _ in range(20):
        ranking, clicks = rng.permutation(4)[:3], rng.integers(0, 2, 3)
        by_query.learn("q", [names[place] for place in ranking], clicks)
        alone.learn(ranking, clicks)
    assert by_query.has_propensities
    for ranking in itertools.permutations(range(4), 2):
        found = by_query.propensities("q", [names[place] for place in ranking], names)
        assert found.tolist() == alone.propensities(ranking).tolist()
    with pytest.raises(RankPolicyError, match="could have been shown; got 'z'"):
        by_query.propensities("q", ["z"], names)
    assert not QueryBandit(bandit="dcm-ts", cutoff=2).has_propensities


def test_one_list_of_a_query_may_be_shorter():
    by_query = QueryBandit(bandit="dcm-ts", cutoff=3)
    assert len(by_query.rank("q", list("abcd"), cutoff=2)) == 2
    with pytest.raises(RankPolicyError, match="cutoff must be at most 3; got 4"):
        by_query.rank("q", list("abcd"), cutoff=4)
