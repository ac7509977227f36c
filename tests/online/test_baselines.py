"""PDGD against its definition, with the probability of every list written out; team drafts."""

import math

import numpy as np
import pytest

from rankpolicy.online import DBGD
from rankpolicy.online.dueling import team_draft
from rankpolicy.online.online_ranker import log_prefix_probabilities
from rankpolicy.online.pairwise import pairwise_gradient


def list_probability(scores, ranking):
    left, probability = np.exp(scores).sum(), 1.0
    for item in ranking:
        probability *= math.exp(scores[item]) / left
        left -= math.exp(scores[item])
    return probability


def gradient_by_definition(scores, ranking, clicks):
    slopes = np.zeros(len(ranking))
    clicked = np.flatnonzero(clicks)
    for k in clicked:
        for l in range(len(ranking)):  # noqa: E741
            if clicks[l] or l > clicked[-1] + 1:
                continue
            other = ranking.copy()
            other[[k, l]] = other[[l, k]]
            here, there = list_probability(scores, ranking), list_probability(scores, other)
            a, b = math.exp(scores[ranking[k]]), math.exp(scores[ranking[l]])
            amount = there / (here + there) * a * b / (a + b) ** 2
            slopes[k] += amount
            slopes[l] -= amount
    return slopes


@pytest.mark.parametrize("seed", range(20))
def test_pdgd_is_its_definition(seed):
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=6)
    ranking = generator.permutation(6)[:4]
    clicks = (generator.random(4) < 0.4).astype(float)
    ours = pairwise_gradient(scores[None], np.ones((1, 6), bool), ranking[None], clicks=clicks[None])
    np.testing.assert_allclose(ours[0], gradient_by_definition(scores, ranking, clicks), atol=1e-12)


def test_pdgd_prefers_nothing_for_certain_when_scores_are_far_apart():
    scores = np.array([[1e4, 0.0, -1e4]])
    clicks = np.array([[0.0, 1.0, 0.0]])
    ours = pairwise_gradient(scores, np.ones((1, 3), bool), np.array([[0, 1, 2]]), clicks=clicks)
    assert np.isfinite(ours).all()


def test_prefix_probabilities_of_a_short_query():
    scores, mask = np.log([[3.0, 2.0, 1.0]]), np.array([[True, True, False]])
    np.testing.assert_allclose(
        np.exp(log_prefix_probabilities(scores, mask, np.array([[1, 0, 2]]))), [[2 / 5, 2 / 5, 2 / 5]]
    )


def test_a_team_draft_of_equal_orders_is_that_order_and_teams_have_equal_chances():
    orders = np.tile(np.arange(4), (2, 2000, 1))
    rankings, teams = team_draft(orders, 4, np.random.default_rng(0))
    assert (rankings == np.arange(4)).all()
    assert (teams[:, 0] != teams[:, 1]).all()
    assert (teams[:, 2] != teams[:, 3]).all()
    assert abs(teams[:, 0].mean() - 0.5) < 4 * 0.5 / math.sqrt(2000)


def test_dbgd_moves_only_when_the_other_ranker_wins():
    ranker = DBGD(num_features=2, cutoff=2, learning_rate=0.5)
    features = np.eye(2)[None]
    shown = ranker.rank(features)
    team = shown.memo["teams"][0]
    ranker.learn(features, shown, (team == 0)[None])
    assert not ranker.weights.any()
    ranker.learn(features, shown, (team == 1)[None])
    np.testing.assert_allclose(ranker.weights, 0.5 * shown.memo["directions"][0])
