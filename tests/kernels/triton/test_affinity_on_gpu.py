"""REINFORCE of affinity policies on a GPU: the estimate of the torch reference for the lists drawn, which are those of the policy."""

import sys

import pytest
import torch

from rankpolicy.gradients.controls import CONTROLS
from rankpolicy.gradients.reinforce_reference import affinity_reinforce_of_rankings
from rankpolicy.kernels.triton.affinity import affinity_reinforce
from rankpolicy.metrics import parse_metric, term_table
from rankpolicy.policies import Affinity
from tests.kernels.triton.test_reinforce_on_gpu import ALL_METRICS, batch

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def run(device, scores, labels, mask, reward, *, epsilon, control="greedy", max_positions=None, num_samples=3):
    found = affinity_reinforce(
        *(array.to(device) for array in (scores, labels, mask)),
        epsilons=torch.as_tensor(epsilon, device=device).expand(len(scores)),
        terms=term_table(reward), conventions=reward.conventions, max_positions=max_positions, num_samples=num_samples,
        control=CONTROLS[control].code, seed=torch.tensor([2**61 + 5], device=device),
    )  # fmt: skip
    return type(found)(*(array.cpu() for array in found))


def check(found, scores, labels, mask, reward, *, epsilon, control="greedy", max_positions=None, tolerance=1e-5):
    rankings = found.rankings.transpose(0, 1).long()
    assert (rankings.sort(-1).values.diff(dim=-1) > 0).all()
    policy = Affinity(scores.double(), mask, epsilon, max_positions)
    expected = affinity_reinforce_of_rankings(policy, labels, rankings=rankings, reward=reward, control=control)
    torch.testing.assert_close(found.gradient.double(), expected.gradient, rtol=0, atol=tolerance)
    values = torch.stack(list(expected.metrics.values()), -1)
    torch.testing.assert_close(found.values.double(), values, rtol=1e-5, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize(
    ("num_items", "scale", "name", "options"),
    [
        (1, 1.0, "ndcg@10", {"epsilon": 0.1}),
        (6, 1.0, "ndcg@3", {"epsilon": 0.5, "control": "leave_one_out"}),
        (9, 30.0, "mean(ap, ndcg@10)", {"epsilon": 0.3, "max_positions": 5}),
        (7, 1e4, "ap", {"epsilon": 0.4, "control": "none"}),
        (18, 3.0, ALL_METRICS, {"epsilon": 0.2, "control": "mean"}),
        (6, 2.0, "ndcg@4", {"epsilon": 0.0}),
        (6, 2.0, "ndcg@4", {"epsilon": 1.0}),
    ],
)
def test_it_equals_the_reference_for_its_lists(device, num_items, scale, name, options):
    reward, arrays = parse_metric(name), batch(3, num_items, scale)
    found = run(device, *arrays, reward, **options)
    check(found, *arrays, reward, **options)
    assert torch.equal(found.gradient, run(device, *arrays, reward, **options).gradient)
    assert (found.gradient[~arrays[2]] == 0).all()


def test_one_share_of_chance_per_query(device):
    reward, arrays = parse_metric("ndcg"), batch(3, 5, 1.0)
    epsilon = torch.tensor([0.0, 0.5, 1.0])
    check(run(device, *arrays, reward, epsilon=epsilon), *arrays, reward, epsilon=epsilon.double())


def test_the_estimator_takes_the_kernel(device, monkeypatch):
    from rankpolicy.gradients import affinity_reinforce as estimator

    if device.type == "cpu":
        monkeypatch.setattr(sys.modules["rankpolicy.gradients.affinity_reinforce"], "on_gpu", lambda array: True)
    scores, labels, mask = (array.to(device) for array in batch(2, 5, 1.0))
    first, again = (
        estimator(
            scores, labels, mask, reward=parse_metric("mean(ap, rr)"), num_samples=4, max_positions=3,
            generator=torch.Generator(device).manual_seed(1),
        )
        for _ in range(2)
    )  # fmt: skip
    assert torch.equal(first.gradient, again.gradient)
    assert set(first.metrics) == {"ap", "rr"}
    assert first.gradient.shape == (2, 5)


def test_lists_have_the_probabilities_of_the_policy(only_on_gpu):
    scores = torch.tensor([[0.6, 0.4, 0.2]]).logit().expand(64, 3).contiguous()
    labels, mask = torch.ones(64, 3), torch.ones(64, 3, dtype=torch.bool)
    found = run(only_on_gpu, scores, labels, mask, parse_metric("ndcg"), epsilon=0.3, num_samples=256)
    codes = (found.rankings.long() * torch.tensor([9, 3, 1])).sum(-1).flatten()
    orders = torch.tensor([[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]])
    shares = torch.stack([(codes == code).float().mean() for code in (orders * torch.tensor([9, 3, 1])).sum(-1)])
    expected = Affinity(scores[:1], mask[:1], 0.3).log_prob(orders[:, None]).exp().squeeze(-1)
    torch.testing.assert_close(shares, expected, rtol=0, atol=4.5 * 0.5 / len(codes) ** 0.5)


@pytest.mark.parametrize(("num_items", "name"), [(120, "ap"), (1000, "mean(ap, ndcg@10)"), (5000, "ndcg@10")])
@pytest.mark.parametrize("scale", [2.0, 30.0, 1e4])
def test_long_lists(only_on_gpu, num_items, name, scale):
    reward, arrays = parse_metric(name), batch(3, num_items, scale)
    found = run(only_on_gpu, *arrays, reward, epsilon=0.1)
    check(found, *arrays, reward, epsilon=0.1, tolerance=5e-5 if scale < 100 else 1e-3)
