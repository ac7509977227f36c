import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.data.scaling import fit_scaling
from rankpolicy.evaluation import evaluate_scores
from rankpolicy.metrics import parse_metric
from rankpolicy.rankers.linear.reward_ascent import RewardSurface

DATA = rp.make_web_search(30, items_per_query=(1, 40), random_state=4)
STEPS = np.array([-50.0, -1.0, -0.1, 0.0, 1e-12, 0.3, 0.3, 2.0, 1e6])


@pytest.mark.parametrize("text", ["map", "ndcg@10", "rr", "0.7*ndcg@3 + 0.3*p@5", "err@5", "-avg_rank", "dcg"])
@pytest.mark.parametrize("has_ties", [False, True])
def test_each_step_earns_what_evaluation_says(text, has_ties):
    reward = parse_metric(text, rp.Conventions(relevant_from=2.0, gain="linear"))
    surface = RewardSurface.of(DATA, fit_scaling("standardize", DATA), reward)
    scores, direction = np.random.default_rng(0).normal(size=(2, surface.dataset.num_items))
    if has_ties:
        scores, direction = np.round(scores), np.round(direction)
    expected = [evaluate_scores(scores + step * direction, surface.dataset, [reward]).mean() for step in STEPS]
    np.testing.assert_allclose(surface.along(scores, direction, STEPS), expected, rtol=1e-12)


def test_other_rewards_take_the_same_way_through_evaluation():
    reward = parse_metric("ndcg * ap")
    surface = RewardSurface.of(DATA, fit_scaling("none", DATA), reward)
    scores, direction = np.random.default_rng(1).normal(size=(2, surface.dataset.num_items))
    expected = [evaluate_scores(scores + step * direction, surface.dataset, [reward]).mean() for step in STEPS]
    np.testing.assert_array_equal(surface.along(scores, direction, STEPS), expected)
