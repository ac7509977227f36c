"""REINFORCE on a GPU: the estimate of the rankings it drew is that of the torch reference, and its draws are those of the policy."""

import pytest
import torch
import triton
import triton.language as tl

from rankpolicy.gradients import exact
from rankpolicy.gradients.estimate import CONTROLS
from rankpolicy.gradients.reinforce_reference import reinforce_of_rankings
from rankpolicy.kernels.triton.reinforce import exponential_draws, reinforce
from rankpolicy.metrics import parse_metric, term_table

# The interpreter computes with NumPy, which warns of infinities that the kernels mean.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

ALL_METRICS = "dcg@5 + 0.5*ap + 0.3*rr + p@4 + recall@7 + 0.1*err + 0.01*avg_rank@6 + success@2 + p + ndcg@3"


def batch(num_queries, num_items, scale):
    generator = torch.Generator().manual_seed(num_items)
    scores = scale * (2 * torch.rand(num_queries, num_items, generator=generator) - 1)
    mask = torch.ones_like(scores, dtype=torch.bool)
    mask[0, num_items // 2 + 1 :] = False
    labels = torch.randint(0, 4, scores.shape, generator=generator).float().masked_fill(~mask, 0.0)
    labels[-1] = 0.0  # a query without relevant items
    return scores, labels, mask


def run(device, scores, labels, mask, reward, *, num_samples=3, control="leave_one_out", seed=2**61 + 5):
    arrays = (array.to(device) for array in (scores, labels, mask))
    found = reinforce(
        *arrays, terms=term_table(reward), conventions=reward.conventions, num_samples=num_samples,
        control=CONTROLS[control].code, seed=torch.tensor([seed], device=device),
    )  # fmt: skip
    return type(found)(*(array.cpu() for array in found))


def check_against_reference(found, scores, labels, mask, reward, control="leave_one_out", tolerance=1e-5):
    rankings = found.rankings.transpose(0, 1).long()
    assert (rankings.sort(-1).values.diff(dim=-1) > 0).all()
    expected = reinforce_of_rankings(scores.double(), labels, mask, rankings=rankings, reward=reward, control=control)
    torch.testing.assert_close(found.gradient.double(), expected.gradient, rtol=0, atol=tolerance)
    values = torch.stack(list(expected.metrics.values()), -1)
    torch.testing.assert_close(found.values.double(), values, rtol=1e-5, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize(
    ("num_items", "scale", "name", "control"),
    [
        (1, 1.0, "ndcg@10", "mean"),
        (6, 1.0, "ndcg@3", "leave_one_out"),
        (9, 30.0, "ndcg", "greedy"),
        (7, 1e4, "ap", "none"),
        (18, 3.0, ALL_METRICS, "leave_one_out"),
    ],
)
def test_it_equals_the_reference_for_its_rankings(device, num_items, scale, name, control):
    reward = parse_metric(name)
    arrays = batch(3, num_items, scale)
    check_against_reference(run(device, *arrays, reward, control=control), *arrays, reward, control)


@pytest.mark.parametrize("empty", ["skip", 1.0])
def test_queries_without_relevant_items(device, empty):
    conventions = parse_metric("ndcg").conventions
    reward = parse_metric(
        "ndcg@3 + ap + dcg", conventions=type(conventions)(empty=empty, gain="linear", relevant_from=2)
    )
    arrays = batch(2, 4, 1.0)
    found = run(device, *arrays, reward)
    check_against_reference(found, *arrays, reward)
    assert (found.gradient[-1] == 0).all()


def test_draws_depend_on_seed_and_query_alone(device):
    scores, labels, mask = batch(3, 6, 1.0)
    reward = parse_metric("ndcg")
    first, again = (run(device, scores, labels, mask, reward, num_samples=2) for _ in range(2))
    assert all(torch.equal(*pair) for pair in zip(first, again, strict=True))
    wider = [torch.nn.functional.pad(array, (0, 14)) for array in (scores, labels, mask)]
    padded = run(device, *(array[:2] for array in wider), reward, num_samples=2)
    assert torch.equal(padded.rankings[1, :, :6], first.rankings[1])
    torch.testing.assert_close(padded.gradient[:, :6], first.gradient[:2])
    other = run(device, scores, labels, mask, reward, num_samples=2, seed=4)
    assert not torch.equal(other.rankings, first.rankings)


@triton.jit
def _draw(seed, out, sample, N: tl.constexpr):
    items = tl.arange(0, N)
    tl.store(out + items, exponential_draws(tl.load(seed), 3, sample, items))


def test_noise_is_exponential(device):
    draws = torch.empty(2, 16384, device=device)
    for sample in range(2):
        _draw[(1,)](torch.tensor([7], device=device), draws[sample], sample, N=16384)
    draws = draws.cpu().double()
    assert (draws > 0).all()
    # Kolmogorov's distance to the distribution function, of 1.95 / sqrt(n) with probability 1e-3; and no correlation between samples.
    uniform = 1 - torch.exp(-draws.sort(-1).values)
    steps = torch.arange(1, 16385) / 16384
    assert (uniform - steps).abs().max() < 1.95 / 128
    assert torch.corrcoef(draws)[0, 1].abs() < 3.5 / 128
    assert torch.corrcoef(torch.stack([draws[0, 1:], draws[0, :-1]]))[0, 1].abs() < 3.5 / 128


def test_many_samples_estimate_the_exact_gradient(only_on_gpu):
    scores, labels, mask = batch(3, 8, 2.0)
    reward = parse_metric("ndcg@5")
    expected = exact(scores.double(), labels, mask, reward=reward).gradient
    found = torch.stack(
        [run(only_on_gpu, scores, labels, mask, reward, num_samples=1000, seed=s).gradient for s in range(30)]
    )
    error = found.std(0) / 30**0.5
    assert ((found.mean(0) - expected).abs() <= 5 * error + 1e-3).all()


@pytest.mark.parametrize("num_items", [120, 1000, 5000])
@pytest.mark.parametrize("scale", [2.0, 30.0, 1e4])
def test_long_lists(only_on_gpu, num_items, scale):
    reward = parse_metric("ndcg@10 + 0.1*ap@40")
    arrays = batch(3, num_items, scale)
    check_against_reference(run(only_on_gpu, *arrays, reward, num_samples=8), *arrays, reward, tolerance=1e-3)
