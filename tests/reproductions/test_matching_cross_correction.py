"""Biased clicks on MQ2007: the log is what it says, and every claim can fail."""

import json
import os

import numpy as np
import pytest

from rankpolicy.cli.main import run
from rankpolicy.clicks import pair_counts
from rankpolicy.data import from_arrays
from reproductions.matching_cross import web_search_clicks
from reproductions.matching_cross.correction_results import (
    ESTIMATED,
    KNOWN,
    LOGGING,
    NAIVE,
    ROBUST,
    TRUE,
    WRONG,
    Cell,
    Traffic,
    claims_of,
    share_of_gap,
)

FEW, MANY, UNBIASED = Traffic(1.0, 100_000), Traffic(1.0, 1_000_000), Traffic(0.0, 1_000_000)


@pytest.mark.skipif(
    "RANKPOLICY_DATA" not in os.environ, reason="RANKPOLICY_DATA does not name the folder of the public datasets"
)
def test_smoke(tmp_path):
    assert run(["reproduce", "matching-cross/correction", "--smoke", "--out", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        "rows.csv",
        "reproduce.json",
        "run.json",
        "clicks.png",
        "clicks.svg",
    }
    outcome = json.loads((tmp_path / "reproduce.json").read_text())
    assert len(outcome["rows"]) == 2 + 2 * 4 + 3
    assert all(0 < row["ndcg@10"] < 1 for row in outcome["rows"])
    assert len(outcome["claims"]) == 9


class TwoOrders:
    """Shows the items of every query as they stand, or the other way round."""

    def __init__(self, *, reverse):
        self.reverse = reverse

    def rank(self, dataset):
        rows = np.split(np.arange(dataset.num_items), dataset.offsets[1:-1])
        return [of_query[::-1] if self.reverse else of_query for of_query in rows]


@pytest.mark.parametrize("eta", [0.0, 1.0])
def test_clicks_follow_examination_and_labels(eta):
    labels = [2, 0, 1, 0, 1]
    dataset = from_arrays(np.zeros((5, 1)), labels, qid=["a", "a", "a", "b", "b"], item_ids=list("01234"))
    rankers = [TwoOrders(reverse=False), TwoOrders(reverse=True)]
    log = web_search_clicks.draw_clicks(dataset, rankers, num_clicks=200_000, eta=eta, seed=0)
    assert 200_000 <= log.num_clicks <= 205_000
    table, counts = pair_counts(log)
    items = [int(log.item_names[item]) for item in table.items]
    shown = {(item, position): counts.shown[pair, position] for pair, item in enumerate(items) for position in range(3)}
    # A fifth of the sessions show the reverse order: item 0 then stands at rank 3, item 3 (of a shorter list) at rank 2.
    sessions_of_a = shown[0, 0] + shown[0, 2]
    assert abs(sessions_of_a / log.num_sessions - 0.5) < 0.01
    assert abs(shown[0, 2] / sessions_of_a - 0.2) < 0.01
    assert abs(shown[3, 1] / (shown[3, 0] + shown[3, 1]) - 0.2) < 0.01
    chances = {0: 0.1, 1: 0.4, 2: 1.0}
    for pair, item in enumerate(items):
        for position in np.flatnonzero(counts.shown[pair]):
            chance, trials = chances[labels[item]] / (position + 1) ** eta, counts.shown[pair, position]
            error = np.sqrt(chance * (1 - chance) / trials)
            assert abs(counts.clicks[pair, position] / trials - chance) <= 4 * error


def test_items_below_the_last_shown_rank_are_not_in_the_log():
    num_items = web_search_clicks.NUM_SHOWN + 2
    dataset = from_arrays(np.zeros((num_items, 1)), group=[num_items], item_ids=np.arange(num_items))
    rankers = [TwoOrders(reverse=False), TwoOrders(reverse=False)]
    log = web_search_clicks.draw_clicks(dataset, rankers, num_clicks=100, eta=0.0, seed=0)
    assert (log.items == np.arange(web_search_clicks.NUM_SHOWN)).all()


def results(**changed):
    """NDCG of two runs in every cell, such that all claims hold; by name of a cell, what is to be changed."""
    means = {
        "true": (Cell(None, TRUE), 0.50),
        "logging": (Cell(None, LOGGING), 0.35),
        "few_naive": (Cell(FEW, NAIVE), 0.38),
        "few_known": (Cell(FEW, KNOWN), 0.46),
        "few_estimated": (Cell(FEW, ESTIMATED), 0.46),
        "few_robust": (Cell(FEW, ROBUST), 0.46),
        "naive": (Cell(MANY, NAIVE), 0.40),
        "known": (Cell(MANY, KNOWN), 0.496),
        "estimated": (Cell(MANY, ESTIMATED), 0.496),
        "robust": (Cell(MANY, ROBUST), 0.496),
        "unbiased_naive": (Cell(UNBIASED, NAIVE), 0.50),
        "unbiased_estimated": (Cell(UNBIASED, ESTIMATED), 0.50),
        "unbiased_wrong": (Cell(UNBIASED, WRONG), 0.45),
    }
    return {cell: np.array([-0.01, 0.01]) + changed.get(name, mean) for name, (cell, mean) in means.items()}


def test_claims_hold_at_their_bars():
    claims = claims_of(results())
    assert len(claims) == 9
    assert all(claim.holds for claim in claims)


@pytest.mark.parametrize(
    ("changed", "failed"),
    [
        ({"known": 0.494}, "IPS, known recovers 95%"),
        ({"estimated": 0.494}, "IPS, estimated recovers 95%"),
        ({"robust": 0.494}, "doubly robust, estimated recovers 95%"),
        ({"few_robust": 0.449}, "doubly robust is at least as good"),
        ({"unbiased_estimated": 0.511}, "correction gains less"),
        ({"unbiased_wrong": 0.50}, "a bias that is not there hurts"),
    ],
)
def test_each_claim_can_fail_alone(changed, failed):
    [claim] = [claim for claim in claims_of(results(**changed)) if not claim.holds]
    assert failed in claim.claim


def test_the_error_of_the_share_is_that_of_a_ratio_of_means():
    cells = {Cell(MANY, NAIVE): [0.3, 0.4], Cell(MANY, KNOWN): [0.4, 0.44], Cell(None, TRUE): [0.4, 0.5]}
    share = share_of_gap({cell: np.array(values) for cell, values in cells.items()}, Cell(MANY, KNOWN))
    # Gains 0.1 and 0.04 of gaps of 0.1: the share is 0.7, what is left over 0.03 and -0.03.
    assert share.value == pytest.approx(0.7)
    assert share.standard_error == pytest.approx(0.3)
    assert share.gap == pytest.approx(0.1)
