"""One policy-gradient step, 64 queries x 40 items, 30 samples, NDCG@10: plain vectorised torch with autograd against the fused kernel."""

from __future__ import annotations

import json

import torch
from torch import Tensor

from benchmarks.timing import speedup, use_two_threads
from rankpolicy.gradients import reinforce
from rankpolicy.metrics import parse_metric

NUM_QUERIES, NUM_ITEMS, NUM_SAMPLES, CUTOFF = 64, 40, 30, 10


def plain_torch_step(scores: Tensor, labels: Tensor) -> Tensor:
    """Leave-one-out REINFORCE as one would first write it: Gumbel top-k, log probability, NDCG, backward."""
    scores = scores.clone().requires_grad_()
    noise = -torch.empty(NUM_SAMPLES, *scores.shape).exponential_().log()
    rankings = (scores.detach() + noise).argsort(-1, descending=True)
    ranked = scores.expand(NUM_SAMPLES, -1, -1).gather(-1, rankings)
    steps = ranked - ranked.flip(-1).logcumsumexp(-1).flip(-1)
    log_prob = steps[..., :CUTOFF].sum(-1)
    discounts = 1 / torch.arange(2, CUTOFF + 2).log2()
    gains = 2**labels - 1
    ideal = (gains.sort(-1, descending=True).values[..., :CUTOFF] * discounts).sum(-1).clamp(min=1e-9)
    gained = gains.expand(NUM_SAMPLES, -1, -1).gather(-1, rankings[..., :CUTOFF])
    rewards = (gained * discounts).sum(-1) / ideal
    advantages = (rewards - rewards.mean(0)) * (NUM_SAMPLES / (NUM_SAMPLES - 1))
    (advantages * log_prob).mean(0).sum().backward()
    assert scores.grad is not None
    return scores.grad


def measure() -> dict[str, object]:
    use_two_threads()
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(NUM_QUERIES, NUM_ITEMS, generator=generator)
    labels = torch.randint(0, 5, scores.shape, generator=generator).float()
    mask = torch.ones_like(scores, dtype=torch.bool)
    reward = parse_metric("ndcg@10")
    ratio = speedup(
        lambda: plain_torch_step(scores, labels),
        lambda: reinforce(scores, labels, mask, reward=reward, num_samples=NUM_SAMPLES),
        calls=50,
    )
    return {
        "name": "policy-gradient-step",
        "ratio": round(ratio, 2),
        "floor": 10,
        "what": "plain torch autograd / ours",
    }


if __name__ == "__main__":
    print(json.dumps(measure()))
