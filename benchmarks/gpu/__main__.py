"""`python -m benchmarks.gpu`, with a CUDA device: epochs of training beside LambdaRank in plain torch, a trade-off curve, times of the GPU
kernels inside a CUDA graph with their ratio to the torch path, and epochs of text networks. `python -m benchmarks.gpu quality` compares the
NDCG of whole fits with that of the CPU.

One JSON line per measurement. For kernels: microseconds of ours and of the plain vectorised torch path, their ratio, the goal where there
is one, the largest relative error of the gradient against the CPU kernel in float64, and the time that the card would need for moving the
same bytes. For epochs with a goal: kernels per step, the time in which the device was busy, and the shares of matrix products and of
copies. The last lines are the goals, each with "holds" or "short". `make bench` does not run it.
"""

from __future__ import annotations

import json
import logging
import statistics
import sys
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from benchmarks.gpu import experiments, peers, texts, training
from rankpolicy.kernels import HAS_TRITON
from rankpolicy.metrics import parse_metric, term_table
from rankpolicy.policies.race import COARSE, race_exposure

NUM_QUERIES, CUTOFF, NUM_SAMPLES = 64, 10, 32
GOALS = {24: 45.0, 120: 150.0, 1000: 1200.0}  # microseconds for the exact race of 64 queries
BYTES_PER_MICROSECOND = 4.8e6  # memory of an H200
REPEATS, CALLS = 9, 20
TORCH_REPEATS = 2  # of the torch path, which takes a second for 1000 items


def captured(program: Callable[[], object]) -> Callable[[], None]:
    """The program as a CUDA graph; it has run before, so that everything is compiled."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            program()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        program()
    return graph.replay


def microseconds(program: Callable[[], object], *, calls: int = CALLS, repeats: int = REPEATS) -> float:
    """Median time of a call, between events on the device."""
    program()
    times = []
    for _ in range(repeats):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(calls):
            program()
        end.record()
        end.synchronize()
        times.append(1000 * start.elapsed_time(end) / calls)
    return statistics.median(times)


def batch(num_items: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(num_items)
    scores = torch.randn(NUM_QUERIES, num_items, generator=generator)
    shares = torch.tensor([0.6, 0.2, 0.1, 0.06, 0.04])
    labels = torch.multinomial(shares, scores.numel(), replacement=True, generator=generator).reshape(scores.shape)
    return scores.cuda(), labels.float().cuda(), torch.ones_like(scores, dtype=torch.bool).cuda()


def exact_race(num_items: int) -> dict[str, object]:
    from rankpolicy.kernels.plackett_luce.race import race as race_on_cpu
    from rankpolicy.kernels.triton import race as kernels

    scores, labels, mask = batch(num_items)
    ((weights, values),) = parse_metric(f"ndcg@{CUTOFF}").additive_forms(labels, mask)
    weights = weights[:CUTOFF].contiguous()

    def ours() -> Tensor:
        return kernels.race(scores, mask, weights, values, quadrature=COARSE, up_to="gradient").gradient

    def in_torch() -> Tensor:
        leaf = scores.detach().requires_grad_()
        exposure = race_exposure(leaf, mask, weights, quadrature=COARSE)
        return torch.autograd.grad((exposure * values).sum(), leaf)[0]

    arrays = (scores.double(), mask, weights.double(), values.double())
    expected = torch.from_numpy(race_on_cpu(*(array.cpu().numpy() for array in arrays), quadrature=COARSE).gradient)
    error = (ours().cpu().double() - expected).abs().max() / expected.abs().max()
    shape = kernels._shape(NUM_QUERIES, num_items, CUTOFF, COARSE)
    # States are written once and read once by every program that has nodes to integrate; all of them are counted.
    num_bytes = 2 * NUM_QUERIES * shape.num_chunks * num_items * 2 * shape.nodes * shape.counts * 4
    return {
        "name": f"exact race, {NUM_QUERIES} x {num_items}, cutoff {CUTOFF}",
        **compared(microseconds(captured(ours)), microseconds(in_torch, calls=1, repeats=TORCH_REPEATS)),
        "eager_us": round(microseconds(ours), 1),
        "goal_us": GOALS.get(num_items),
        "memory_limit_us": round(num_bytes / BYTES_PER_MICROSECOND, 1),
        "error": float(f"{error.item():.1e}"),
    }


def reinforce(num_items: int) -> dict[str, object]:
    from rankpolicy.gradients.estimate import CONTROLS
    from rankpolicy.gradients.reinforce_reference import reinforce_of_rankings
    from rankpolicy.kernels.triton.reinforce import reinforce as kernel
    from rankpolicy.policies import PlackettLuce

    scores, labels, mask = batch(num_items)
    reward = parse_metric(f"ndcg@{CUTOFF}")
    terms, seed = term_table(reward), torch.zeros(1, dtype=torch.int64, device=scores.device)
    assert terms is not None

    def ours() -> Tensor:
        seed.add_(1)
        return kernel(
            scores, labels, mask, terms=terms, conventions=reward.conventions, num_samples=NUM_SAMPLES,
            control=CONTROLS["leave_one_out"].code, seed=seed,
        ).gradient  # fmt: skip

    def in_torch() -> Tensor:
        rankings = PlackettLuce(scores, mask).sample(NUM_SAMPLES, cutoff=CUTOFF)
        return reinforce_of_rankings(scores, labels, mask, rankings=rankings, reward=reward).gradient

    return {
        "name": f"REINFORCE, {NUM_QUERIES} x {num_items}, {NUM_SAMPLES} samples, ndcg@{CUTOFF}",
        **compared(microseconds(captured(ours)), microseconds(in_torch, calls=1, repeats=TORCH_REPEATS)),
        "eager_us": round(microseconds(ours), 1),
    }


def gumbel(num_items: int) -> dict[str, object]:
    from rankpolicy.gradients.gumbel import cascade_form, gumbel_of_draws, sample_noisy_scores
    from rankpolicy.kernels.triton.gumbel import gumbel as kernel

    scores, labels, mask = batch(num_items)
    reward = parse_metric(f"ap@{CUTOFF}")
    form, seed = cascade_form(reward, labels, mask), torch.zeros(1, dtype=torch.int64, device=scores.device)
    num_swaps = form.slopes.shape[-1]
    parts = {name: getattr(form, name) for name in ("rank_weights", "item_values", "keep", "add")}

    def ours() -> Tensor:
        seed.add_(1)
        return kernel(scores, mask, **parts, num_swaps=num_swaps, num_samples=NUM_SAMPLES, seed=seed).gradient

    def in_torch() -> Tensor:
        rankings, noisy = sample_noisy_scores(scores, mask, num_samples=NUM_SAMPLES, cutoff=num_swaps + 1)
        return gumbel_of_draws(scores, labels, mask, rankings=rankings, noisy_scores=noisy, reward=reward).gradient

    return {
        "name": f"Gumbel, {NUM_QUERIES} x {num_items}, {NUM_SAMPLES} samples, ap@{CUTOFF}",
        **compared(microseconds(captured(ours)), microseconds(in_torch, calls=1, repeats=TORCH_REPEATS)),
        "eager_us": round(microseconds(ours), 1),
    }


def pl_rank(num_items: int) -> dict[str, object]:
    from rankpolicy.gradients.pl_rank import pl_rank_of_rankings
    from rankpolicy.kernels.triton.pl_rank import pl_rank as kernel
    from rankpolicy.policies import PlackettLuce

    scores, labels, mask = batch(num_items)
    reward = parse_metric(f"ndcg@{CUTOFF}")
    ((weights, values),) = reward.additive_forms(labels, mask)
    parts = {"rank_weights": weights[None, :CUTOFF], "item_values": values[None]}
    seed = torch.zeros(1, dtype=torch.int64, device=scores.device)

    def ours() -> Tensor:
        seed.add_(1)
        return kernel(scores, mask, **parts, num_samples=NUM_SAMPLES, seed=seed).gradient

    def in_torch() -> Tensor:
        rankings = PlackettLuce(scores, mask).sample(NUM_SAMPLES, cutoff=CUTOFF)
        return pl_rank_of_rankings(scores, labels, mask, rankings=rankings, reward=reward).gradient

    return {
        "name": f"PL-Rank, {NUM_QUERIES} x {num_items}, {NUM_SAMPLES} samples, ndcg@{CUTOFF}",
        **compared(microseconds(captured(ours)), microseconds(in_torch, calls=1, repeats=TORCH_REPEATS)),
        "eager_us": round(microseconds(ours), 1),
    }


def compared(ours: float, in_torch: float) -> dict[str, object]:
    return {"us": round(ours, 1), "torch_us": round(in_torch, 1), "ratio": round(in_torch / ours, 1)}


def verdicts(row: dict[str, Any]) -> list[dict[str, object]]:
    """The goal of a measurement beside what was measured, and whether it holds."""
    goals = (("epoch_s", "goal_s", False), ("us", "goal_us", False), ("ratio", "goal_ratio", True))
    return [
        {"bar": row["name"], "measured": row[measured], goal: row[goal], "verdict": "holds" if is_met else "short"}
        for measured, goal, is_higher_better in goals
        if row.get(goal) is not None
        for is_met in [row[measured] >= row[goal] if is_higher_better else row[measured] <= row[goal]]
    ]


def main() -> int:
    if not torch.cuda.is_available() or not HAS_TRITON:
        missing = "the package triton" if torch.cuda.is_available() else "a CUDA device"
        print(f"benchmarks.gpu needs {missing}; nothing was measured.", file=sys.stderr)
        return 1
    logging.basicConfig(level=logging.WARNING)
    if sys.argv[1:] == ["quality"]:
        for row in experiments.quality():
            print(json.dumps(row), flush=True)
        return 0
    bars = []
    lengths = (24, 120, 1000)
    kernels = [partial(measured, length) for measured in (exact_race, reinforce, gumbel, pl_rank) for length in lengths]
    of_kernels = (kernel() for kernel in kernels)
    for row in chain(training.rows(), peers.rows(), experiments.rows(), of_kernels, texts.rows()):
        print(json.dumps(row), flush=True)
        bars += verdicts(row)
    for bar in bars:
        print(json.dumps(bar), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
