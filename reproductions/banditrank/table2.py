"""Table 2: answer selection on InsuranceQA V2 with the supervised loss, the reward, and both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankpolicy.data import read_insuranceqa
from rankpolicy.evaluation import MetricTable, compare_tables
from rankpolicy.models import MCAN
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
from reproductions.target import Claim, Outcome, Setup

FOLDER = "insuranceqa_v2"
METRICS = ("p@1", "map", "mrr")
NUM_SMOKE_QUESTIONS = 6
# Training lists hold the correct answers and wrong ones of the pool up to this many; test pools are whole.
MAX_TRAINING_ITEMS = 20
NUM_VALID_QUESTIONS = 500

# "We randomly initialized the embedding matrix with 100 dimensional vectors sampled from standard normal distribution and fixed them during
# training"; "two highway prediction layers were set to 200"; "A dropout of 0.2". Not as there: LSTM layers of 100 in place of 300 and a
# learning rate of 3e-4 in place of 1e-4, to learn in few epochs; M' = 20 for every γ (5 there for γ = 1), so that γ alone differs.
# A twentieth of the reward: it is earned by a list of 20, and the cross entropy it is mixed with is a mean over 20 items; against a sum
# over the list it would be whole. Advantages over the other lists' mean and B = 100 in place of the greedy list and B = 20: far less
# noise. The page says what each of these changed.
SETTINGS: dict[str, Any] = PAPER_SETTINGS | {
    "reward": "0.025*ap + 0.025*rr",
    "num_samples": 100,
    "control": "leave_one_out",
    "model": MCAN(embedding_size=100, recurrent=100, hidden=(200, 200), dropout=0.2, max_tokens=100),
    "max_positions": 20,
    "learning_rate": 3e-4,
    "batch_queries": 16,
    "epochs": 8,
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
IN_THE_PAPER = {
    SUPERVISED: "no such row; all supervised competitors below, the best 0.756 and 0.734",
    REWARD_ONLY: "0.8572 against 0.8494 on test-1, 0.8522 against 0.8283 on test-2",
}


def run(setup: Setup) -> Outcome:
    folder = setup.folder(FOLDER)
    train = read_insuranceqa(folder, "train", max_items=MAX_TRAINING_ITEMS, random_state=setup.seed)
    valid, test = read_insuranceqa(folder, "valid")[:NUM_VALID_QUESTIONS], read_insuranceqa(folder, "test")
    settings = {row: how | {"device": setup.device} for row, how in METHODS.items()}
    if setup.is_smoke:
        train, valid, test = (part[:NUM_SMOKE_QUESTIONS] for part in (train, valid, test))
        settings = {row: smoke_settings(how) for row, how in settings.items()}
    num_seeds = 1 if setup.is_smoke else NUM_SEEDS
    # All rows of one seed before the next: what a run that is cut short has measured can be compared.
    fits = [Fit(row, setup.seed + number) for number in range(num_seeds) for row in settings]
    measured = run_fits(setup, Study(train, valid, test, settings, METRICS), fits)
    rows = [mean_row(row, of_seeds, METRICS) | PAPER.get(row, {}) for row, of_seeds in measured.items()]
    return Outcome(rows=tuple(rows), claims=_claims(measured))


def _claims(measured: Mapping[str, Sequence[Measured]]) -> tuple[Claim, ...]:
    """The hybrid above each of its parts, in the mean over seeds; the t-test pairs questions, each with its mean over seeds."""
    means = {row: _mean_over_seeds([one.test for one in of_seeds]) for row, of_seeds in measured.items()}
    p_values = {(test.a, test.b): test.p for test in compare_tables(means, tests=["t-test"]) if test.metric == "p@1"}
    claims = []
    for other in (SUPERVISED, REWARD_ONLY):
        ours, theirs = ([one.test.means["p@1"] for one in measured[row]] for row in (HYBRID, other))
        num_higher = sum(mine > their for mine, their in zip(ours, theirs, strict=True))
        claims.append(
            Claim(
                claim=f"P@1 of {HYBRID} above {other}",
                paper=IN_THE_PAPER[other],
                ours=f"{np.mean(ours):.4f} against {np.mean(theirs):.4f}, higher with {num_higher} of {len(ours)} seeds, "
                f"t-test p = {p_values[HYBRID, other]:.2g}",
                holds=bool(np.mean(ours) > np.mean(theirs)),
            )
        )
    return tuple(claims)


def _mean_over_seeds(tables: Sequence[MetricTable]) -> MetricTable:
    return MetricTable(
        query_ids=tables[0].query_ids, names=tables[0].names, values=np.mean([table.values for table in tables], axis=0)
    )
