"""NDCG of rankers that learn online, at checkpoints of clicks."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rankpolicy.online import SafePolicyGradient
from reproductions.online.environment import CUTOFF, environment
from reproductions.online.stream import made, stream
from reproductions.online.users import users_of
from reproductions.paired import t_interval
from reproductions.statements import Claim
from reproductions.target import Outcome, Row, Setup

DATASETS = ("letor_mq2007", "letor_mq2008", "yandex_letor")
FITTING = ("perfect", "position-based")
USERS = (*FITTING, "navigational", "informational")
METHODS = ("safe-policy-gradient", "pdgd", "dbgd")
CHECKPOINTS = (100, 1_000, 10_000, 100_000)
NUM_RUNS = 1  # on each set
SERVES, CANDIDATE = "safe, serves", "safe, candidate"
GAP = 0.9
BAR = "the bar set before the run"


class _Cell(NamedTuple):
    dataset: str
    users: str
    method: str
    run: int


def run(setup: Setup) -> Outcome:
    data = setup.folder(DATASETS[1]).parent
    checkpoints = CHECKPOINTS[:1] if setup.is_smoke else CHECKPOINTS
    cells = [
        _Cell(dataset, users, method, run)
        for run in range(1 if setup.is_smoke else NUM_RUNS)
        for dataset in (DATASETS[1:2] if setup.is_smoke else DATASETS)
        for users in (USERS[:1] if setup.is_smoke else USERS)
        for method in METHODS
    ]
    rows: list[Row] = []
    for number, found in setup.as_finished(partial(_curve, data, setup.seed, checkpoints), cells):
        rows += found
        setup.report(f"{cells[number]}: {found[-1]['ndcg']:.4f} after {found[-1]['lists']:,} lists")
    rows.sort(key=lambda row: (row["users"], row["dataset"], row["method"], row["run"], row["clicks"]))
    return Outcome(rows=tuple(rows), claims=tuple(_claims(rows, checkpoints)) if not setup.is_smoke else ())


def _curve(data: Path, first_seed: int, checkpoints: tuple[int, ...], cell: _Cell) -> list[Row]:
    """NDCG@10 on test queries at the checkpoints; of the policy that serves, and of the candidate."""
    seed = first_seed + cell.run
    around = environment(data, cell.dataset, seed)
    ranker = made(cell.method, around, seed)
    users = users_of(cell.users, around.num_grades, CUTOFF)
    rows: list[Row] = []
    batches = stream(ranker, around, [users], seed)
    for checkpoint in checkpoints:
        batch = next(batch for batch in batches if batch.num_clicks >= checkpoint)
        is_safe = isinstance(ranker, SafePolicyGradient)
        measured = {SERVES if is_safe else cell.method: ranker.weights}
        if isinstance(ranker, SafePolicyGradient):
            measured[CANDIDATE] = ranker.candidate_weights
        rows += [
            {
                "dataset": cell.dataset,
                "users": cell.users,
                "run": cell.run,
                "clicks": checkpoint,
                "method": name,
                "ndcg": around.test.ndcg(weights),
                "logger": around.test.ndcg(around.logger),
                "labels": around.test.ndcg(around.labels),
                "lists": batch.num_lists,
                "promotions": ranker.num_promotions if isinstance(ranker, SafePolicyGradient) else 0,
            }
            for name, weights in measured.items()
        ]
    return rows


def _claims(rows: list[Row], checkpoints: tuple[int, ...]) -> list[Claim]:
    values = {(row["dataset"], row["users"], row["run"], row["clicks"], row["method"]): row for row in rows}
    pairs = sorted({(row["dataset"], row["run"]) for row in rows})

    def of(users: str, clicks: int, method: str, column: str = "ndcg") -> np.ndarray:
        return np.array([values[dataset, users, run, clicks, method][column] for dataset, run in pairs])

    claims = []
    for users in USERS:
        end = checkpoints[-1]
        serves, logger, labels = (of(users, end, SERVES, column) for column in ("ndcg", "logger", "labels"))
        share = (serves - logger).mean() / (labels - logger).mean()
        if users in FITTING:
            claims.append(
                _above(
                    f"{users} users: at least 90 % of the gap to labels after {end:,} clicks",
                    serves - logger - GAP * (labels - logger),
                    f"{share:.0%} of the gap; above 90 % of it by ",
                )
            )
        claims.append(_above(f"{users} users: better than the logger after {end:,} clicks", serves - logger, ""))
        for name, words in ((SERVES, "the policy that serves"), (CANDIDATE, "the candidate")):
            for clicks in checkpoints:
                difference = of(users, clicks, name) - of(users, clicks, "pdgd")
                claims.append(_above(f"{users} users: {words}, ahead of PDGD after {clicks:,} clicks", difference, ""))
    return claims


def _above(claim: str, differences: np.ndarray, words: str) -> Claim:
    interval = t_interval(differences)
    ours = f"{words}{interval} over {interval.num_pairs} runs on {len(DATASETS)} sets"
    return Claim(claim=claim, paper=BAR, ours=ours, low=interval.low, high=interval.high, above=0.0)
