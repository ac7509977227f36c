"""Table 1 by a second implementation: NumPy alone, written apart from the package, all runs of a cell side by side.

Nothing of ``rankpolicy`` computes here: users, indices, counts and regret are below, as the paper describes them. The same cells are
run by the package too, with other random numbers, and the two are compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproductions.cascade.cells import BANDITS, NAMES, problems
from reproductions.cascade.published import TABLE_1
from reproductions.regret_cells import NEAR, SMOKE_RUNS, SMOKE_STEPS, Published, seed_of, simulate_cells
from reproductions.statements import Claim
from reproductions.target import Outcome, Row, Setup

Array = NDArray[np.float64]
NUM_STEPS, NUM_RUNS = 100_000, 50
BEST = 0.2
MOST_NEWTON_STEPS, ALMOST_1 = 60, 1 - 1e-12


def run(setup: Setup) -> Outcome:
    """Both implementations on all cells.

    Parameters
    ----------
    setup
        How the target runs.
    """
    steps, runs = (SMOKE_STEPS, SMOKE_RUNS) if setup.is_smoke else (NUM_STEPS, NUM_RUNS)
    package = simulate_cells(BANDITS, problems(), setup, num_runs=NUM_RUNS)
    rows, claims = [], []
    for (items, cutoff, gap), name in NAMES.items():
        for bandit in BANDITS:
            second = regrets(
                bandit,
                items=items,
                cutoff=cutoff,
                gap=gap,
                num_steps=steps,
                num_runs=runs,
                generator=np.random.default_rng([seed_of(name, setup.seed), BANDITS.index(bandit), 1]),
            )
            first = package[name].regrets[bandit][:, -1]
            rows.append(_row(name, bandit, steps, first, second, TABLE_1[items, cutoff, gap][bandit]))
            claims.append(_same(name, bandit, first, second))
            setup.report(f"{name}, {bandit}: {second.mean():.1f}")
    return Outcome(rows=tuple(rows), claims=tuple(claims))


def regrets(
    bandit: str,
    *,
    items: int,
    cutoff: int,
    gap: float,
    num_steps: int,
    num_runs: int,
    generator: np.random.Generator,
) -> Array:
    """Regret of each run (run,) after the last step.

    Parameters
    ----------
    bandit
        "cascade-ucb1" or "cascade-kl-ucb".
    items, cutoff, gap
        L, K and Δ: the first K items attract with 0.2, the others with 0.2 - Δ.
    num_steps, num_runs
        Steps of a run, and runs.
    generator
        Draws attractions and the order of equal indices.
    """
    attraction = np.where(np.arange(items) < cutoff, BEST, BEST - gap)
    best = 1 - (1 - BEST) ** cutoff
    rows = np.arange(num_runs)[:, None]
    pulls = np.ones((num_runs, items))
    hits = (generator.random((num_runs, items)) < attraction).astype(float)  # every item observed once
    index = np.ones((num_runs, items))
    total = np.zeros(num_runs)
    for t in range(1, num_steps + 1):
        if bandit == "cascade-ucb1":
            index = hits / pulls + np.sqrt(1.5 * np.log(t) / pulls)
        else:
            index = kl_ucb(hits / pulls, pulls, threshold(t), start=index)
        shown = np.lexsort((generator.random(index.shape), -index))[:, :cutoff]
        chances = attraction[shown]
        attracted = generator.random(shown.shape) < chances
        first_click = np.where(attracted.any(1), attracted.argmax(1), cutoff)[:, None]
        examined = np.arange(cutoff) <= first_click
        pulls[rows, shown] += examined
        hits[rows, shown] += attracted & examined
        total += best - (1 - np.prod(1 - chances, axis=1))
    return total


def threshold(t: int) -> float:
    """log t + 3 log log t, at least 0.

    >>> threshold(1), round(threshold(100), 4)
    (0.0, 9.1867)
    """
    return max(float(np.log(t) + 3 * np.log(np.log(t))), 0.0) if t > 1 else 0.0


def kl_ucb(means: Array, pulls: Array, bound: float, *, start: Array) -> Array:
    """The largest q in [mean, 1] with pulls KL(mean, q) <= bound, by Newton's method.

    The divergence is convex in q, so a step from below the root lands above it and later ones fall towards it. By Pinsker's inequality
    the root is at most mean + sqrt(bound / (2 pulls)).

    Parameters
    ----------
    means, pulls
        Mean of the observations of each item and how many there are.
    bound
        What the divergence may be at most, times the pulls.
    start
        A guess, such as the index one step before.
    """
    if bound <= 0:
        return means
    level = bound / pulls
    highest = np.minimum(means + np.sqrt(level / 2), ALMOST_1)
    q = np.where((start > means + 1e-3) & (start < highest), start, highest)
    for _ in range(MOST_NEWTON_STEPS):
        step = (_divergence(means, q) - level) * q * (1 - q) / np.maximum(q - means, 1e-15)
        q = np.clip(q - step, means, highest)
        if np.abs(step).max() < 1e-9:
            break
    return np.where(means >= 1, 1.0, q)


def _divergence(p: Array, q: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(p > 0, p * np.log(p / q), 0.0)
        second = np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0.0)
    total: Array = first + second
    return total


def _row(name: str, bandit: str, step: int, first: Array, second: Array, theirs: Published) -> Row:
    row: Row = {"cell": name, "bandit": bandit, "step": step}
    for column, values in (("package", first), ("second", second)):
        row |= {
            f"{column}_regret": round(float(values.mean()), 2),
            f"{column}_standard_error": round(_error(values), 2),
        }
    return row | {"paper": theirs.regret, "paper_standard_error": theirs.standard_error}


def _error(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _same(name: str, bandit: str, first: Array, second: Array) -> Claim:
    """That the means of independent runs differ by at most 5 %."""
    difference: Any = second.mean() - first.mean()
    combined = float(np.hypot(_error(first), _error(second)))
    return Claim(
        claim=f"{name}: the package and the second implementation give {bandit} the same regret",
        paper="not a claim of the paper",
        ours=f"{first.mean():.1f} and {second.mean():.1f}, difference {difference:+.1f} ± {combined:.1f}",
        low=float((difference - 1.96 * combined) / first.mean()),
        high=float((difference + 1.96 * combined) / first.mean()),
        at_least=-NEAR,
        at_most=NEAR,
    )
