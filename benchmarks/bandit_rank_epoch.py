"""One epoch of BanditRank on queries like MQ2007's, network included: eq. 3 in plain vectorised torch with autograd against ours.

873 queries of 6 to 147 items, 30 lists of up to 40 items a query, batches of 32 queries, the paper's reward. With the paper's network, a
highway of three layers of 92, most of our time is the network's own, which both versions share; the smaller one of the default settings
leaves more of the loss to be seen.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from benchmarks.timing import speedup
from rankpolicy.data import from_arrays
from rankpolicy.data.batches import Batch, RaggedTensors
from rankpolicy.metrics import ap, ndcg, parse_metric
from rankpolicy.models import as_model
from rankpolicy.objectives import Hybrid, ObjectiveValue

NUM_QUERIES, NUM_FEATURES, BATCH_QUERIES = 873, 46, 32
NUM_SAMPLES, MAX_POSITIONS, EPSILON, GAMMA = 30, 40, 0.1, 0.5


def queries_like_mq2007() -> RaggedTensors:
    """As many queries and items as its training part (41 items on average), a quarter of them relevant."""
    rng = np.random.default_rng(0)
    sizes = np.clip(rng.gamma(4.0, 41 / 4, NUM_QUERIES).round().astype(int), 6, 147)
    features = rng.random((sizes.sum(), NUM_FEATURES), dtype=np.float32)
    labels = rng.choice([0, 1, 2], sizes.sum(), p=[0.74, 0.2, 0.06])
    dataset = from_arrays(features, labels, group=sizes)
    return RaggedTensors.of(dataset, dataset.features_by_query.copy(), torch.device("cpu"))


def plain_torch_loss(scores: Tensor, batch: Batch) -> ObjectiveValue:
    """Eq. 3 as one would first write it: the choices of all lists position by position, autograd through their probabilities."""
    labels, mask = batch.labels, batch.mask
    depth = min(MAX_POSITIONS, mask.shape[-1])
    affinities = (torch.sigmoid(scores) * mask).expand(NUM_SAMPLES, *mask.shape)
    left = mask.float().expand(affinities.shape).clone()
    log_prob = torch.zeros(affinities.shape[:-1])
    rankings = torch.empty(*affinities.shape[:-1], depth, dtype=torch.long)
    for position in range(depth):
        num_left = left.sum(-1, keepdim=True)
        weights = affinities * left
        by_affinity = weights / weights.sum(-1, keepdim=True).clamp(min=1e-9)
        chances = EPSILON * left / num_left.clamp(min=1) + (1 - EPSILON) * by_affinity
        # Queries shorter than the list are filled up with padded items, whose choice has no probability to learn from.
        is_open = num_left.squeeze(-1) > 0
        drawn_from = torch.where(is_open[..., None], chances.detach(), (~mask).float())
        choice = torch.multinomial(drawn_from.flatten(0, 1), 1).view(*is_open.shape, 1)
        log_prob = log_prob + torch.where(is_open, chances.gather(-1, choice).squeeze(-1), 1.0).log()
        rankings[..., position] = choice.squeeze(-1)
        left = left.scatter(-1, choice, 0.0)
    greedy = scores.detach().masked_fill(~mask, -torch.inf).argsort(-1, descending=True)[..., :depth]
    rewards, greedy_reward = (
        (ap(lists, labels, mask) + ndcg(lists, labels, mask, cutoff=10)) / 2 for lists in (rankings, greedy)
    )
    policy_loss = -((rewards - greedy_reward) * log_prob).mean()
    cross_entropy = binary_cross_entropy_with_logits(scores[mask], (labels[mask] >= 1).float())
    return ObjectiveValue(GAMMA * policy_loss + (1 - GAMMA) * cross_entropy, float(rewards.mean()))


def ratio_with(train: RaggedTensors, network: nn.Module) -> float:
    """Time of an epoch of the plain version over that of ours, both with this network."""
    optimizer = torch.optim.Adam(network.parameters(), lr=7e-5)
    hybrid = Hybrid(
        reward=parse_metric("mean(ap, ndcg@10)"),
        gamma=GAMMA,
        num_samples=NUM_SAMPLES,
        max_positions=MAX_POSITIONS,
        epsilon=EPSILON,
    )

    def epoch(objective: Callable[[Tensor, Batch], ObjectiveValue]) -> None:
        for batch in train.shuffled_batches(BATCH_QUERIES):
            loss = objective(batch.padding.pad(network(batch.features)), batch).loss
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()

    return speedup(lambda: epoch(plain_torch_loss), lambda: epoch(hybrid), repeats=3)


def measure() -> list[dict[str, object]]:
    import numba

    torch.set_num_threads(1)
    numba.set_num_threads(1)
    torch.manual_seed(0)
    train = queries_like_mq2007()
    results: list[dict[str, object]] = []
    for model, hidden in (("mlp", (64, 64)), ("highway", (92, 92, 92))):
        network = as_model({"name": model, "hidden": hidden, "dropout": 0.3}).new_network_of(NUM_FEATURES)
        results.append(
            {
                "name": f"bandit-rank-epoch-{model}",
                "ratio": round(ratio_with(train, network), 1),
                "floor": 20,
                "what": f"plain torch autograd / ours, {model} {' x '.join(map(str, hidden))} included, one thread each",
            }
        )
    return results


if __name__ == "__main__":
    for result in measure():
        print(json.dumps(result))
