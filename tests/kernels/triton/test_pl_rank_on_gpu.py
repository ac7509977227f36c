"""PL-Rank on a GPU: the estimate is that of the torch reference for the rankings it drew."""

import pytest
import torch

from rankpolicy.gradients.pl_rank import pl_rank_of_rankings
from rankpolicy.kernels.triton.pl_rank import pl_rank
from rankpolicy.metrics import parse_metric
from tests.kernels.triton.test_reinforce_on_gpu import batch

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def run(device, scores, labels, mask, reward, *, num_samples=3, seed=2**61 + 5):
    weights, values = (torch.stack(parts) for parts in zip(*reward.additive_forms(labels, mask), strict=True))
    cutoff = int(weights.any(0).nonzero().max()) + 1
    found = pl_rank(
        scores.to(device), mask.to(device), rank_weights=weights[:, :cutoff].to(device), item_values=values.to(device),
        num_samples=num_samples, seed=torch.tensor([seed], device=device),
    )  # fmt: skip
    return type(found)(*(array.cpu() for array in found))


def check(found, scores, labels, mask, reward):
    rankings = found.rankings.transpose(0, 1).long()
    assert (rankings.sort(-1).values.diff(dim=-1) > 0).all()
    expected = pl_rank_of_rankings(scores.double(), labels, mask, rankings=rankings, reward=reward)
    torch.testing.assert_close(found.gradient.double(), expected.gradient, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found.utility.double(), expected.reward, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("num_items", "scale", "name"),
    [(1, 1.0, "ndcg@10"), (6, 1.0, "ndcg@3 + 0.5*p@2"), (9, 30.0, "ndcg"), (7, 1e4, "recall@4"), (9, 3.0, "avg_rank")],
)
def test_it_equals_the_reference_for_its_rankings(device, num_items, scale, name):
    reward = parse_metric(name)
    arrays = batch(3, num_items, scale)
    found = run(device, *arrays, reward)
    check(found, *arrays, reward)
    assert torch.equal(found.gradient, run(device, *arrays, reward).gradient)
    assert (found.gradient[~arrays[2]] == 0).all()


@pytest.mark.parametrize(("num_items", "name"), [(120, "ndcg"), (1000, "ndcg@10"), (5000, "ndcg@10")])
@pytest.mark.parametrize("scale", [2.0, 30.0])
def test_long_lists(only_on_gpu, num_items, name, scale):
    reward = parse_metric(name)
    arrays = batch(3, num_items, scale)
    check(run(only_on_gpu, *arrays, reward), *arrays, reward)
