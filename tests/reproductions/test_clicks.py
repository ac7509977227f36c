"""clicks/clara2 goes through its code on some queries; its numbers prove nothing, but its parts are checked by hand."""

import itertools
import json
import os

import numpy as np
import pytest

from rankpolicy.cli.main import run
from rankpolicy.clicks import CLICK_MODELS, log_from_lists, pair_counts
from reproductions.clicks import clara2, clara2_clicked
from reproductions.clicks.clara2_bias import WAYS, BiasCurves, bias_claims
from reproductions.clicks.clara2_held_out import LESS_PERPLEXED, LIKELIER, PERPLEXITY, held_out
from reproductions.clicks.clara2_log import GRADES, LOG, QUERIES, GradedLog, read_graded_log
from reproductions.clicks.graded_ndcg import GradedQuery, concordance, expected_ndcg, graded_queries
from reproductions.statements import Verdict

pytest.importorskip("numba")


@pytest.mark.skipif(
    "RANKPOLICY_DATA" not in os.environ, reason="RANKPOLICY_DATA does not name the folder of the public datasets"
)
def test_smoke(tmp_path):
    pytest.importorskip("zstandard")
    assert run(["reproduce", "clicks/clara2", "--smoke", "--out", str(tmp_path)]) == 0
    outcome = json.loads((tmp_path / "reproduce.json").read_text())
    parts = [row["part"] for row in outcome["rows"]]
    # Baselines, models, models with another prior, attraction alone, and two estimates per way.
    assert parts.count("relevance") == 4 + 11 + 9 + 2 + 2 * len(WAYS)
    assert parts.count("position bias") == len(WAYS)
    assert parts.count("held-out clicks") == len(CLICK_MODELS)
    assert all(0 < row["ndcg"] < 1 for row in outcome["rows"] if row["part"] == "relevance")


@pytest.mark.skipif(
    "RANKPOLICY_DATA" not in os.environ, reason="RANKPOLICY_DATA does not name the folder of the public datasets"
)
def test_smoke_of_the_clicked_urls(tmp_path):
    pytest.importorskip("zstandard")
    assert run(["reproduce", "clicks/clara2-clicked", "--smoke", "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "reproduce.json").read_text())["rows"]
    assert all(0 < row["pairs_as_graded"] < 1 and 0 < row["ndcg"] < 1 for row in rows)
    by_name = {row["method"]: row for row in rows}
    assert by_name[clara2.RAW]["minus_raw"] == 0


def test_concordance_counts_near_pairs_of_different_grades_and_ties_as_half():
    query = GradedQuery(np.array([0, 1, 2, 3]), np.array([7.0, 3.0, 3.0, 1.0]))
    ranks = np.array([1.0, 1.2, 1.4, 9.0])
    # Near pairs of different gains: (0, 1) in order, (0, 2) a tie; (1, 2) has equal gains, 3 is far from all.
    found = concordance(np.array([0.5, 0.1, 0.5, 0.9]), {0: query}, ranks, nearer_than=0.5)
    assert found.tolist() == [0.75]
    alone = {0: GradedQuery(np.array([0, 3]), np.array([7.0, 1.0]))}
    assert np.isnan(concordance(np.ones(4), alone, ranks, nearer_than=0.5)).all()


def test_urls_without_clicks_are_tied_below_the_clicked_ones():
    relevance, clicks = np.array([0.9, 0.2, 0.8, 0.1]), np.array([0.0, 3.0, 0.0, 1.0])
    tied = clara2_clicked.unclicked_tied(relevance, clicks)
    assert tied[0] == tied[2]
    assert np.argsort(-tied, kind="stable").tolist() == [1, 3, 0, 2]


def test_the_four_hypotheses_can_hold_and_fail():
    names = (clara2.RAW, clara2.SMOOTHED, clara2_clicked.MODEL, clara2.weighted_by("all-pairs"))
    noise = np.linspace(-0.01, 0.01, 8)
    better = {name: 0.5 + 0.1 * place + noise * place for place, name in enumerate(names)}
    claims = clara2_clicked.claims(better, better)
    assert [claim.holds for claim in claims] == [True] * 4
    worse = {name: 1 - values for name, values in better.items()}
    assert {claim.verdict for claim in clara2_clicked.claims(worse, worse)} == {Verdict.CONTRADICTED}


@pytest.mark.parametrize("cutoff", [None, 2])
def test_expected_ndcg_is_the_mean_over_all_orders_of_equal_items(cutoff):
    scores, gains = np.array([0.2, 0.5, 0.2, 0.2, 0.5, 0.9]), np.array([3.0, 0.0, 7.0, 1.0, 15.0, 3.0])
    discounts = 1 / np.log2(np.arange(2, 8))
    orders = [
        order
        for order in itertools.permutations(range(6))
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order))
    ]
    assert len(orders) == 2 * 6
    best = np.sort(gains)[::-1][:cutoff] @ discounts[:cutoff]
    mean = np.mean([gains[list(order)][:cutoff] @ discounts[:cutoff] for order in orders]) / best
    assert expected_ndcg(scores, gains, cutoff=cutoff) == pytest.approx(mean)


def test_scored_queries_have_clicks_and_two_grades():
    queries = np.array([0, 0, 0, 1, 1, 2, 2], np.int32)
    grades = np.array([2, np.nan, 3, 2, 2, 1, 4.0])
    clicks = np.array([0, 1, 0, 1, 0, 0, 0.0])
    found = graded_queries(queries, grades, clicks)
    assert list(found) == [0]  # 1 has one grade, 2 no click
    assert found[0].pairs.tolist() == [0, 2]
    assert found[0].gains.tolist() == [3, 7]


def test_log_and_grades_are_joined_by_the_map_of_queries(tmp_path):
    (tmp_path / LOG).write_text(
        "1\t0\tC\ta\t\t\n"  # before its page: left out
        "1\t1\tQ\t7\t0.0\ta\tb\n1\t2\tC\tb\t\t\n2\t0\tQ\t8\t0.0\ta\tc\n1\t3\tQ\t8\t0.0\tc\ta\n"
    )
    (tmp_path / GRADES).write_text("query\turl\trelevance\n70\ta\t2\n80\ta\t5\n80\tc\t3\n7\tb\t1\n")
    (tmp_path / QUERIES).write_text("log\tgrades\tm\tn\n7\t70\t2\t1\n8\t80\t2\t2\n")
    graded = read_graded_log(tmp_path)
    assert graded.sessions.tolist() == [0, 1, 0]
    assert (graded.log.num_skipped_rows, graded.log.num_clicks) == (1, 1)
    names = [
        (graded.pairs.query_names[q], graded.pairs.item_names[i])
        for q, i in zip(graded.pairs.queries, graded.pairs.items, strict=True)
    ]
    by_name = dict(zip(names, graded.grades, strict=True))
    assert (by_name["7_0.0", "a"], by_name["8_0.0", "a"], by_name["8_0.0", "c"]) == (2, 5, 3)
    assert np.isnan(by_name["7_0.0", "b"])
    assert len(read_graded_log(tmp_path, most_queries=1).log) == 1


def small_log():
    """x at ranks 1, 2, y at 2, 1, in sessions of two pages."""
    lists = [["x", "y"], ["y", "x"]] * 6
    log = log_from_lists(["q"] * 12, lists, [[1, 0], [1, 1], [0, 1], [0, 0], [1, 0], [0, 0]] * 2)
    pairs, counts = pair_counts(log)
    return GradedLog(log=log, sessions=np.arange(12) // 2, pairs=pairs, counts=counts, grades=np.array([2.0, 3.0]))


def test_inverse_propensities_by_hand():
    graded = small_log()
    half = BiasCurves(propensities=np.array([1.0, 0.5]), resampled=np.array([[1.0, 0.5]] * 3))
    found = clara2.relevances(graded, dict.fromkeys(WAYS, half))
    # x at rank 1: clicked 4 of 6; at rank 2: 2 of 6. y at rank 1: 2 of 6; at rank 2: 2 of 6.
    assert found[clara2.RAW].tolist() == pytest.approx([6 / 12, 4 / 12])
    assert found["inverse propensities, em"].tolist() == pytest.approx([(4 + 2 / 0.5) / 12, (2 + 2 / 0.5) / 12])
    assert found["clicks over expected examinations, em"].tolist() == pytest.approx([6 / 9, 4 / 9])
    assert found[clara2.LOGGED].tolist() == pytest.approx([-0.5, -0.5])


def test_unknown_propensities_are_those_of_the_rank_above():
    curve = BiasCurves(propensities=np.array([1.0, np.nan, 0.4, np.nan, np.nan]), resampled=np.ones((1, 5)))
    assert curve.filled().tolist() == [1.0, 1.0, 0.4, 0.4, 0.4]


def test_bias_claims_can_fail():
    resampled = np.array([[1.0, 0.5, 0.3], [1.0, 0.52, 0.3], [1.0, 0.48, 0.3]] * 20)
    flat = BiasCurves(propensities=resampled[0], resampled=resampled)
    steep = BiasCurves(propensities=resampled[0] ** 2, resampled=resampled**2)
    claims = bias_claims(dict.fromkeys(WAYS, flat) | {"randomised": steep})
    assert all(claim.holds for claim in claims)
    claims = bias_claims(dict.fromkeys(WAYS, steep) | {"randomised": flat, "em": flat})
    assert not any(claim.holds for claim in claims if "less position bias" in claim.claim)
    assert not claims[-1].holds


def test_pages_of_a_session_are_in_one_fold_and_models_are_measured_on_the_other():
    graded = small_log()
    folds = held_out(graded, num_folds=3, seed=0, report=lambda text: None)
    assert set(folds) == set(CLICK_MODELS) >= {name for pair in (*LIKELIER, *LESS_PERPLEXED) for name in pair}
    assert all(of[PERPLEXITY].shape == (3,) for of in folds.values())
    # gctr: (clicks of the other folds + 1) / (marks + 2), checked for the first fold.
    fold_of_page = (np.random.default_rng(0).permutation(6) % 3)[graded.sessions]
    clicks = graded.log.clicks
    rate = (clicks[fold_of_page != 0].sum() + 1) / (clicks[fold_of_page != 0].size + 2)
    test = clicks[fold_of_page == 0]
    expected = np.where(test == 1, np.log(rate), np.log(1 - rate)).sum() / len(test)
    assert folds["gctr"]["log_likelihood_per_page"][0] == pytest.approx(expected)
