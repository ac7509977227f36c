"""Regret beside a published one: simulated cell by cell, as rows, and as claims that the two agree."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.simulation import Problem, Simulation, log_spaced_steps, simulate
from rankpolicy.simulation.runs import MakeBandit
from reproductions.paired import t_interval
from reproductions.statements import Claim
from reproductions.target import Row, Setup

NUM_STEPS, NUM_RUNS = 100_000, 50  # more runs than the papers': the errors that remain are mostly theirs
SMOKE_STEPS, SMOKE_RUNS = 1_000, 2
RUNS_OF_THE_PAPERS = 20
MOST_ERRORS, NEAR = 3.0, 0.05  # as published: within 5 % or three standard errors of the printed value


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A regret as printed; many figures have no standard error."""

    regret: float
    standard_error: float | None = None


def simulate_cells(
    bandits: Iterable[str] | Mapping[str, MakeBandit],
    problems: Mapping[str, Problem],
    setup: Setup,
    *,
    steps: ArrayLike = (),
    num_steps: int = NUM_STEPS,
    num_runs: int = NUM_RUNS,
) -> dict[str, Simulation]:
    """Each problem by its name, with random numbers of its own: no two problems share a stream.

    Regret is taken at about fifty steps, evenly spaced on a logarithmic scale, and at ``steps``; a smoke run has few steps and runs.
    """
    if setup.is_smoke:
        num_steps, num_runs = SMOKE_STEPS, SMOKE_RUNS
    wanted = np.union1d(log_spaced_steps(num_steps), np.asarray(steps, np.int64))
    found = {}
    for name, problem in problems.items():
        found[name] = simulate(
            bandits,
            problem,
            num_steps=num_steps,
            num_runs=num_runs,
            random_state=seed_of(name, setup.seed),
            steps=wanted[wanted <= num_steps],
            executor=setup.executor,
        )
        texts = (f"{bandit} {found[name].mean(bandit)[-1]:.1f}" for bandit in found[name].regrets)
        setup.report(f"{len(found)}/{len(problems)} {name}: {', '.join(texts)}")
    return found


def seed_of(cell: str, seed: int) -> int:
    """The seed of a cell, from its name and the seed of the run.

    >>> seed_of("L=16 K=2", 0) == seed_of("L=16 K=2", 0) != seed_of("L=16 K=4", 0)
    True
    """
    return int(np.random.SeedSequence([seed, zlib.crc32(cell.encode())]).generate_state(1)[0]) % 2**31


def as_lines(simulations: Mapping[str, Simulation], bandit: str) -> Simulation:
    """One bandit on several problems, a line each, for a figure."""
    some = next(iter(simulations.values()))
    return Simulation(
        problems=tuple(problem for simulation in simulations.values() for problem in simulation.problems),
        steps=some.steps,
        regrets={name: simulation.regrets[bandit] for name, simulation in simulations.items()},
    )


def regret_row(
    cell: str, bandit: str, simulation: Simulation, *, step: int | None = None, published: Published | None = None
) -> Row:
    """Regret at a step, the last unless told: ours with its standard error, theirs where it is known."""
    place = _place(simulation, step)
    ours = float(simulation.mean(bandit)[place])
    row: Row = {
        "cell": cell,
        "bandit": bandit,
        "step": int(simulation.steps[place]),
        "regret": round(ours, 2),
        "standard_error": round(float(simulation.standard_error(bandit)[place]), 2),
    }
    if published is not None:
        row |= {
            "paper": published.regret,
            "paper_standard_error": published.standard_error,
            "difference": round(ours / published.regret - 1, 4),
        }
    return row


def agrees(cell: str, bandit: str, simulation: Simulation, published: Published, *, step: int | None = None) -> Claim:
    """That our regret is as published: within 5 % or three standard errors of the printed value, whichever is wider.

    Where the paper gives no standard error, that of 20 runs as ours is taken: its 20 runs are of the same experiment.
    """
    place = _place(simulation, step)
    found = t_interval(simulation.regrets[bandit][:, place])
    own_error = float(simulation.standard_error(bandit)[place])
    their_error = published.standard_error
    if their_error is None:
        their_error = own_error * math.sqrt(found.num_pairs / RUNS_OF_THE_PAPERS)
    margin = max(NEAR * published.regret, MOST_ERRORS * their_error)
    printed = f"{published.regret:g}" if published.standard_error is None else f"{published.regret:g} ± {their_error:g}"
    return Claim(
        claim=f"{bandit}, {cell}, {simulation.steps[place]:,} steps: regret as published",
        paper=printed,
        ours=f"{found.mean:.1f} ± {own_error:.1f}: {found.mean / published.regret - 1:+.1%}",
        low=found.low,
        high=found.high,
        at_least=published.regret - margin,
        at_most=published.regret + margin,
    )


def lower(
    cell: str, simulation: Simulation, better: str, worse: str, *, paper: str, published: float | None = None
) -> Claim:
    """That one bandit ends with less regret than another: the 95 % interval of their differences run by run lies above zero."""
    return less(
        f"{cell}: {better} has less regret than {worse}",
        simulation.regrets[better][:, -1],
        simulation.regrets[worse][:, -1],
        paper=paper,
        published=published,
    )


def less(
    claim: str,
    few: NDArray[np.float64],
    many: NDArray[np.float64],
    *,
    paper: str,
    published: float | None = None,
) -> Claim:
    """That the regrets (run,) of one are below those of another: the 95 % interval of the differences run by run lies above zero.

    ``published`` is the difference of the printed regrets, where they are known.
    """
    found = t_interval(many - few)
    return Claim(
        claim=claim,
        paper=paper,
        ours=f"{np.mean(few):.1f} against {np.mean(many):.1f}, difference {found.mean:.1f} [{found.low:.1f}, {found.high:.1f}] "
        f"over {found.num_pairs} runs",
        low=found.low,
        high=found.high,
        above=0.0,
        published=published,
    )


def logarithmic(cell: str, simulation: Simulation, bandit: str, *, paper: str, published: float | None = None) -> Claim:
    """That regret grows as log n at most: ten times as many steps add no more, on average, than the ten times before did.

    ``published`` is the same difference of the printed curve, where it is known.
    """
    last = int(simulation.steps[-1])
    early, middle, late = (
        np.array([np.interp(step, simulation.steps, run) for run in simulation.regrets[bandit]])
        for step in (last / 100, last / 10, last)
    )
    before, after = middle - early, late - middle
    found = t_interval(before - after)
    return Claim(
        claim=f"{cell}: regret of {bandit} grows no faster than log n",
        paper=paper,
        ours=f"+{before.mean():.1f} from {last // 100:,} to {last // 10:,} steps, +{after.mean():.1f} from there to {last:,}: "
        f"{found.mean:.1f} less [{found.low:.1f}, {found.high:.1f}]",
        low=found.low,
        high=found.high,
        at_least=0.0,
        published=published,
    )


def _place(simulation: Simulation, step: int | None) -> int:
    return len(simulation.steps) - 1 if step is None else int(np.searchsorted(simulation.steps, step))
