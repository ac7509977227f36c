"""Table 2: answer selection on InsuranceQA V2 with the supervised loss, the reward, and both; given pools and random ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rankpolicy.data import read_insuranceqa
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.models import MCAN
from reproductions.banditrank.comparing import above
from reproductions.banditrank.question_answering import (
    NUM_SEEDS,
    PAPER_SETTINGS,
    Fit,
    Measured,
    Study,
    mean_row,
    run_fits,
    smoke_settings,
)
from reproductions.statements import Claim
from reproductions.target import Outcome, Row, Setup

FOLDER = "insuranceqa_v2"
METRICS = ("p@1", "map", "mrr")
NUM_SMOKE_QUESTIONS = 6
# Training lists hold the correct answers and wrong ones up to this many; validation and test lists hold 100.
MAX_TRAINING_ITEMS = 10
NUM_VALID_QUESTIONS = 300
# "a pool of candidate answers with negative answers randomly sampled from the whole dataset"; V2's own pools come from a search engine.
RANDOM, GIVEN = "random pools", "given pools"
POOLS = {RANDOM: "random", GIVEN: "pool"}

# "We randomly initialized the embedding matrix with 100 dimensional vectors sampled from standard normal distribution and fixed them during
# training"; "two highway prediction layers were set to 200"; "A dropout of 0.2"; Adam's betas (0.9, 0.999). Not as there: LSTM layers of
# 100 in place of 300 and a learning rate of 3e-4 in place of 1e-4, to learn in few epochs; whole lists for every γ (the paper: M' = 5 for
# γ = 1, 20 for γ = 0.75), so that γ alone differs. A tenth of the reward: it is earned by a list of 10, and the cross entropy it is mixed
# with is a mean over 10 items. Advantages over the other lists' mean and B = 100 in place of the greedy list and B = 20: far less noise.
SETTINGS: dict[str, Any] = PAPER_SETTINGS | {
    "reward": "0.05*ap + 0.05*rr",
    "num_samples": 100,
    "control": "leave_one_out",
    "model": MCAN(embedding_size=100, recurrent=100, hidden=(200, 200), dropout=0.2, max_tokens=100),
    "max_positions": 20,
    "learning_rate": 3e-4,
    "batch_queries": 16,
    "epochs": 5,
    "patience": None,
}
SUPERVISED, HYBRID, REWARD_ONLY = "γ = 0, supervised only", "γ = 0.75", "γ = 1, reward only"
OF_SAMPLED_LISTS = ("num_samples", "control", "epsilon", "max_positions")
METHODS: dict[str, dict[str, Any]] = {
    HYBRID: SETTINGS | {"gamma": 0.75},
    SUPERVISED: {name: SETTINGS[name] for name in SETTINGS if name not in OF_SAMPLED_LISTS} | {"gamma": 0.0},
    REWARD_ONLY: SETTINGS | {"gamma": 1.0},
}
# On the two test sets of InsuranceQA V1, which V2 replaced; the paper has no row for γ = 0.
PAPER: dict[str, dict[str, float]] = {
    HYBRID: {"paper p@1, test-1": 0.8572, "paper p@1, test-2": 0.8522},
    REWARD_ONLY: {"paper p@1, test-1": 0.8494, "paper p@1, test-2": 0.8283},
}
# What is said to be above what, and the paper's words.
ORDER: tuple[tuple[str, str, str], ...] = (
    (HYBRID, REWARD_ONLY, "0.8572 against 0.8494 on test-1, 0.8522 against 0.8283 on test-2"),
    (HYBRID, SUPERVISED, "no row for γ = 0; all supervised competitors below, the best 0.756 and 0.734"),
    (
        REWARD_ONLY,
        SUPERVISED,
        "γ = 1 achieved the second best P@1 measure: above all supervised competitors; no row for γ = 0",
    ),
)

Seeds = Mapping[str, Sequence[Measured]]  # by method


def run(setup: Setup) -> Outcome:
    num_seeds = 1 if setup.is_smoke else NUM_SEEDS
    settings = {row: how | {"device": setup.device} for row, how in METHODS.items()}
    if setup.is_smoke:
        settings = {row: smoke_settings(how) for row, how in settings.items()}
    rows: list[Row] = []
    claims: list[Claim] = []
    for pools in POOLS:
        setup.report(f"{pools}:")
        fits = [Fit(row, setup.seed + number) for number in range(num_seeds) for row in settings]
        train, valid, test = _parts(setup, pools)
        measured = run_fits(setup, Study(train, valid, test, settings, METRICS), fits)
        rows += [
            {"pools": pools} | mean_row(row, measured[row], METRICS) | (PAPER.get(row, {}) if pools == RANDOM else {})
            for row in METHODS
        ]
        claims += _claims(measured, pools)
    return Outcome(rows=tuple(rows), claims=tuple(claims))


def _parts(setup: Setup, pools: str) -> list[RankingDataset]:
    """Questions for training, validation and test; lists are drawn once, the same for all rows and seeds."""
    if setup.is_smoke:
        few = _read(setup, pools, "valid", 0)
        return [
            few[start : start + NUM_SMOKE_QUESTIONS] for start in range(0, 3 * NUM_SMOKE_QUESTIONS, NUM_SMOKE_QUESTIONS)
        ]
    train, valid, test = (_read(setup, pools, part, number) for number, part in enumerate(("train", "valid", "test")))
    return [train, valid[:NUM_VALID_QUESTIONS], test]


def _read(setup: Setup, pools: str, part: str, number: int) -> RankingDataset:
    return read_insuranceqa(
        setup.folder(FOLDER),
        part,
        wrong_answers=POOLS[pools],
        max_items=MAX_TRAINING_ITEMS if part == "train" else None,
        random_state=1000 * setup.seed + number,
    )


def _claims(measured: Seeds, pools: str) -> list[Claim]:
    """Which γ is above which: the test questions are paired, each with its mean over the seeds."""
    return [
        above(
            f"{pools}: P@1 of {ours} above {theirs}",
            [one.test for one in measured[ours]],
            [one.test for one in measured[theirs]],
            metric="p@1",
            paper=paper,
            run="seeds",
            unit="questions",
        )
        for ours, theirs, paper in ORDER
    ]
