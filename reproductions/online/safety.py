"""What runs lose against the logger when users turn against what was learned."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.online import SafePolicyGradient
from rankpolicy.online.online_ranker import drawn_rankings
from reproductions.online.environment import CUTOFF, Environment, environment
from reproductions.online.stream import Batch, made, stream
from reproductions.online.users import Users, users_of
from reproductions.paired import t_interval
from reproductions.statements import Claim
from reproductions.target import Outcome, Row, Setup

DATASETS = ("letor_mq2008", "yandex_letor")
USERS = ("perfect", "position-based", "navigational", "informational")
ADVERSARIES = ("at random", "at promotions")
NUM_RUNS = 200
NUM_LISTS = 6_000
BUDGET = 250.0  # first clicks at the top; the logger earns 2,000 to 4,600 in these lists
LOGGER_DRAWS = 4  # lists per query whose mean says what the logger would have earned
BAR = "the bar set before the run"


class _Task(NamedTuple):
    run: int
    method: str


def run(setup: Setup) -> Outcome:
    data = setup.folder(DATASETS[0]).parent
    num_runs = 4 if setup.is_smoke else NUM_RUNS
    tasks = [_Task(run, method) for run in range(num_runs) for method in ("safe-policy-gradient", "pdgd")]
    rows: list[Row] = []
    for number, row in setup.as_finished(partial(_run, data, setup.seed, 300 if setup.is_smoke else NUM_LISTS), tasks):
        rows.append(row)
        setup.report(f"{tasks[number]}: largest loss {row['largest_loss']:.1f}, surplus {row['surplus']:+.1f}")
    rows.sort(key=lambda row: (row["method"], row["run"]))
    return Outcome(rows=tuple(rows), claims=() if setup.is_smoke else _claims(rows))


def _run(data: Path, first_seed: int, num_lists: int, task: _Task) -> Row:
    """The largest loss against the logger at any time, in expected earnings of the first click."""
    kind, dataset = USERS[task.run % 4], DATASETS[task.run // 4 % 2]
    adversary = ADVERSARIES[task.run // 8 % 2]
    # Ten loggers: reading a set costs more than a run.
    around = environment(data, dataset, first_seed + task.run // 16 % 10)
    seed = first_seed + task.run
    settings = {"budget": BUDGET} if task.method == "safe-policy-gradient" else {}
    ranker = made(task.method, around, seed, **settings)
    usual = users_of(kind, around.num_grades, CUTOFF)
    users = [usual]
    switches = np.sort(np.random.default_rng([seed, 2]).integers(num_lists, size=3))
    generator = np.random.default_rng([seed, 3])
    surplus, lowest, present = 0.0, 0.0, usual
    for batch in stream(ranker, around, users, seed):
        surplus += float(
            (_earned(present, batch, batch.rankings) - _of_logger(present, batch, around, generator)).sum()
        )
        lowest = min(lowest, surplus)
        if batch.num_lists >= num_lists:
            break
        is_reversed = bool(np.searchsorted(switches, batch.num_lists, side="right") % 2)
        if adversary == "at promotions":
            # PDGD serves something new from the first list on.
            is_reversed = not isinstance(ranker, SafePolicyGradient) or not ranker.report()["logger_serves"]
        present = usual.reversed() if is_reversed else usual
        users[0] = present
    report = ranker.report() if isinstance(ranker, SafePolicyGradient) else {}
    return {
        "run": task.run,
        "method": task.method,
        "dataset": dataset,
        "users": kind,
        "adversary": adversary,
        "largest_loss": -lowest,
        "surplus": surplus,
        "promotions": report.get("promotions", 0),
        "demotions": report.get("demotions", 0),
    }


def _earned(users: Users, batch: Batch, rankings: NDArray[np.int64]) -> NDArray[np.float64]:
    """E[1 / log2(1 + position of the first click)] of each list: it does not depend on when users stop."""
    grades = batch.shown_grades(rankings)
    chance = users.click[grades] * users.examination[: grades.shape[1]] * (grades >= 0)
    no_click_above = np.cumprod(np.concatenate([np.ones((len(chance), 1)), 1 - chance[:, :-1]], 1), 1)
    return np.asarray((no_click_above * chance / np.log2(np.arange(2, 2 + chance.shape[1]))).sum(1))


def _of_logger(users: Users, batch: Batch, around: Environment, generator: np.random.Generator) -> NDArray[np.float64]:
    scores = batch.features @ around.logger
    draws = [drawn_rankings(scores, batch.mask, CUTOFF, generator) for _ in range(LOGGER_DRAWS)]
    return np.asarray(np.mean([_earned(users, batch, rankings) for rankings in draws], 0))


def _claims(rows: list[Row]) -> tuple[Claim, ...]:
    safe, pdgd = ([row for row in rows if row["method"] == name] for name in ("safe-policy-gradient", "pdgd"))
    largest, of_pdgd = (max(row["largest_loss"] for row in of_method) for of_method in (safe, pdgd))
    within = sum(row["largest_loss"] <= BUDGET for row in safe)
    surplus = t_interval([row["surplus"] for row in safe])
    promoted, demoted = (sum(row[name] > 0 for row in safe) for name in ("promotions", "demotions"))
    return (
        Claim(
            claim=f"SafePolicyGradient's largest loss in {len(safe)} runs is at most its budget of {BUDGET:g}",
            paper=BAR,
            ours=f"{largest:.1f}; {within} of {len(safe)} runs within the budget; surplus at the end {surplus}",
            low=largest,
            high=largest,
            at_most=BUDGET,
        ),
        Claim(
            claim="PDGD's largest loss in the same runs is larger",
            paper=BAR,
            ours=f"{of_pdgd:.1f} against {largest:.1f}",
            low=of_pdgd - largest,
            high=of_pdgd - largest,
            above=0.0,
        ),
        Claim(
            claim="a policy is promoted in at least a fifth of the runs",
            paper=BAR,
            ours=f"{promoted} of {len(safe)}",
            low=promoted / len(safe),
            high=promoted / len(safe),
            at_least=0.2,
        ),
        Claim(
            claim="a policy is taken back in at least one run",
            paper=BAR,
            ours=f"{demoted} of {len(safe)}",
            low=demoted,
            high=demoted,
            at_least=1,
        ),
    )
