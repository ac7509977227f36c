import math

import numpy as np
import pytest
import torch

import rankpolicy as rp
from rankpolicy.experiments import Directness, measure_directness
from rankpolicy.gradients import lambda_rank
from rankpolicy.metrics import parse_metric
from tests.enumeration import enumerated_gradient

SCORES = torch.tensor([[0.5, 1.5, -0.3, 0.2]], dtype=torch.float64)
LABELS = torch.tensor([[2.0, 0.0, 1.0, 1.0]], dtype=torch.float64)
MASK = torch.ones(1, 4, dtype=torch.bool)


def lambdas_by_hand(scores, labels, reward):
    """A loop over all pairs, each swapped in the sorted list."""
    order = sorted(range(len(scores)), key=lambda item: -scores[item])
    found = [0.0] * len(scores)

    def value(ranking):
        given = torch.tensor([labels], dtype=torch.float64)
        return float(reward(torch.tensor([ranking]), given, torch.ones(1, len(scores), dtype=torch.bool)))

    for i in range(len(scores)):
        for j in range(len(scores)):
            if labels[i] > labels[j]:
                swapped = [{i: j, j: i}.get(item, item) for item in order]
                pull = abs(value(swapped) - value(order)) / (1 + math.exp(scores[i] - scores[j]))
                found[i] += pull
                found[j] -= pull
    return found


@pytest.mark.parametrize("metric", ["ndcg", "ndcg@2", "ap", "rr", "mean(ap, ndcg@3)"])
def test_lambdas_are_those_of_a_loop_over_pairs(metric):
    reward = parse_metric(metric)
    found = lambda_rank(SCORES, LABELS, MASK, reward=reward)
    assert found[0].tolist() == pytest.approx(lambdas_by_hand(SCORES[0].tolist(), LABELS[0].tolist(), reward))


def test_padding_changes_no_lambda():
    wide = [
        torch.nn.functional.pad(values, (0, 2), value=pad)
        for values, pad in ((SCORES, 9.0), (LABELS, 3.0), (MASK, False))
    ]
    found = lambda_rank(*wide, reward=parse_metric("ndcg"))
    torch.testing.assert_close(found[:, :4], lambda_rank(SCORES, LABELS, MASK, reward=parse_metric("ndcg")))
    assert (found[:, 4:] == 0).all()


@pytest.mark.parametrize(("metric", "tolerance"), [("ndcg", 1e-4), ("ap", 0.01)])
def test_the_cosine_is_that_with_the_gradient_of_all_rankings(metric, tolerance):
    reward = parse_metric(metric)
    truth = enumerated_gradient(SCORES, LABELS, reward)[0]
    direction = torch.tensor(lambdas_by_hand(SCORES[0].tolist(), LABELS[0].tolist(), reward), dtype=torch.float64)
    expected = float(torch.nn.functional.cosine_similarity(truth, direction, dim=0))
    assert 0.3 < expected < 0.999
    data = rp.from_arrays(np.zeros((4, 1)), LABELS[0].numpy(), group=[4])
    found = measure_directness(SCORES[0].numpy(), data, reward=metric, num_samples=20000, reference_samples=50000)
    assert found.cosines["lambdarank"].tolist() == pytest.approx([expected], abs=tolerance)
    assert found.cosines["reinforce"].tolist() == pytest.approx([1.0], abs=0.01)


def test_queries_where_nothing_can_improve_are_left_out():
    data = rp.from_arrays(np.zeros((5, 1)), [1, 0, 0, 0, 0], group=[3, 2])
    found = measure_directness(np.array([0.1, 0.4, 0.2, 0.3, 0.0]), data)
    assert np.isnan(found.cosines["lambdarank"]).tolist() == [False, True]
    document = found.to_dict()
    assert document["methods"]["lambdarank"]["queries"] == 1
    assert document["methods"]["lambdarank"]["mean"] == pytest.approx(found.cosines["lambdarank"][0])


def test_on_data_more_samples_are_more_direct():
    data = rp.make_web_search(30, random_state=0)
    ranker = rp.Regression(model="linear").fit(data)
    few, many = (measure_directness(ranker, data, num_samples=n) for n in (10, 1000))
    assert isinstance(few, Directness)
    assert few.means["reinforce"] < many.means["reinforce"]
    assert few.means["lambdarank"] == many.means["lambdarank"] > 0.2
