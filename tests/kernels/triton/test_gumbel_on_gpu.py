"""Gradients that integrate noise on a GPU: the estimate is that of the torch reference for the same draws, those of the policy."""

import pytest
import torch

from rankpolicy.gradients.gumbel import cascade_form, gumbel_of_draws
from rankpolicy.kernels.triton.gumbel import gumbel
from rankpolicy.metrics import parse_metric
from tests.kernels.triton.test_reinforce_on_gpu import batch

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def run(device, scores, labels, mask, reward, *, num_samples=3, seed=2**61 + 5):
    form = cascade_form(reward, labels, mask)
    found = gumbel(
        scores.to(device), mask.to(device), rank_weights=form.rank_weights.to(device),
        item_values=form.item_values.to(device), keep=form.keep.to(device), add=form.add.to(device),
        num_swaps=form.slopes.shape[-1], num_samples=num_samples, seed=torch.tensor([seed], device=device),
    )  # fmt: skip
    return type(found)(*(array.cpu() for array in found)), form


def check(found, form, scores, labels, mask, reward, tolerance):
    highest = scores.masked_fill(~mask, -torch.inf).amax(-1, keepdim=True)
    expected = gumbel_of_draws(
        scores - highest,
        labels,
        mask,
        rankings=found.rankings.transpose(0, 1).long(),
        noisy_scores=found.noisy_scores.transpose(0, 1).double(),
        reward=reward,
    )
    torch.testing.assert_close(found.gradient, expected.gradient, rtol=1e-4, atol=tolerance)
    torch.testing.assert_close((found.utility + form.constant).float(), expected.reward, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("num_items", "scale", "name"),
    [(1, 1.0, "ndcg@10"), (6, 1.0, "ndcg@3 + 0.5*ap"), (9, 30.0, "ap"), (7, 1e4, "rr@4"), (18, 3.0, "err + success@2")],
)
def test_it_equals_the_reference_for_its_draws(device, num_items, scale, name):
    reward = parse_metric(name)
    arrays = batch(3, num_items, scale)
    found, form = run(device, *arrays, reward)
    check(found, form, *arrays, reward, tolerance=1e-5 * max(1.0, form.item_values.abs().max().item()))
    again, _ = run(device, *arrays, reward)
    assert torch.equal(found.gradient, again.gradient)
    assert (found.gradient[~arrays[2]] == 0).all()


def test_the_first_items_are_drawn_by_their_weights(only_on_gpu):
    scores = torch.tensor([[3.0, 2.0, 1.0]]).log().expand(8, 3).contiguous()
    labels, mask = torch.ones(8, 3), torch.ones(8, 3, dtype=torch.bool)
    found, _ = run(only_on_gpu, scores, labels, mask, parse_metric("rr@1"), num_samples=64)
    shares = torch.bincount(found.rankings[..., 0].flatten().long(), minlength=3) / 512
    torch.testing.assert_close(shares, torch.tensor([3.0, 2.0, 1.0]) / 6, rtol=0, atol=4 * 0.5 / 512**0.5)


@pytest.mark.parametrize(("num_items", "name"), [(120, "ap"), (1000, "ndcg@10"), (5000, "rr@10")])
@pytest.mark.parametrize("scale", [2.0, 30.0])
def test_long_lists(only_on_gpu, num_items, name, scale):
    reward = parse_metric(name)
    arrays = batch(3, num_items, scale)
    found, form = run(only_on_gpu, *arrays, reward)
    check(found, form, *arrays, reward, tolerance=1e-5)
