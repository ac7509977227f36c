"""Equity of attention: each ranking against all permutations."""

from itertools import permutations

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.fairness import equal_attention_rankings, position_bias


@pytest.mark.parametrize("quality", [0.0, 0.8, 0.95, 1.0])
def test_every_ranking_is_the_fairest_of_those_of_enough_quality(quality):
    relevance, bias = np.array([0.2, 3.0, 1.0, 2.5]), position_bias(4)
    gains = 2**relevance - 1
    rankings = equal_attention_rankings(relevance, bias, num_rankings=12, quality=quality, values=gains)
    merits, attention = relevance / relevance.sum(), bias / bias.sum()
    owed = np.zeros(4)

    def unfairness(ranking):
        return abs(owed + merits - attention[np.argsort(ranking)]).sum()

    def dcg(ranking):
        return gains[list(ranking)] @ bias

    ideal = max(map(dcg, permutations(range(4))))
    for ranking in rankings:
        allowed = [other for other in permutations(range(4)) if dcg(other) >= quality * ideal - 1e-9]
        assert dcg(ranking) >= quality * ideal - 1e-6
        assert unfairness(ranking) == pytest.approx(min(map(unfairness, allowed)), abs=1e-4)
        owed += merits - attention[np.argsort(ranking)]
    if quality == 0:
        # The least attention is more than the first item has earned; all others lose what it gains.
        assert abs(owed).sum() / 12 == pytest.approx(2 * (attention[-1] - merits[0]), abs=0.1)
    if quality == 1:
        assert (rankings == [1, 3, 2, 0]).all()


def test_items_without_relevance_share_attention():
    rankings = equal_attention_rankings(np.zeros(3), np.array([1.0, 0.5, 0.25]), num_rankings=6)
    assert np.bincount(rankings[:, 0]).tolist() == [2, 2, 2]


def test_what_cannot_be_asked():
    for relevance, settings in (([-1.0, 1.0], {}), ([1.0], {}), ([1.0, 1.0], {"quality": 1.5})):
        with pytest.raises(rp.RankPolicyError, match="relevance must be 0 or more"):
            equal_attention_rankings(np.array(relevance), np.ones(2), **{"num_rankings": 1} | settings)
