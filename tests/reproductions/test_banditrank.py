"""The web search targets go through their code with little data; their numbers prove nothing, but each claim can fail."""

import json
import os

import numpy as np
import pytest

from rankpolicy.cli.main import run
from rankpolicy.evaluation import MetricTable
from reproductions.banditrank import figure1, table6

FILES = {
    "table6": {"rows.csv", "reproduce.json", "run.json"},
    "figure1": {"rows.csv", "reproduce.json", "run.json", "curves.png", "curves.svg"},
}


@pytest.mark.skipif(
    "RANKPOLICY_DATA" not in os.environ, reason="RANKPOLICY_DATA does not name the folder of the public datasets"
)
@pytest.mark.parametrize(("target", "num_rows"), [("table6", 8), ("figure1", 6)])
def test_smoke(target, num_rows, tmp_path):
    assert run(["reproduce", f"banditrank/{target}", "--smoke", "--out", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == FILES[target]
    outcome = json.loads((tmp_path / "reproduce.json").read_text())
    assert len(outcome["rows"]) == num_rows
    assert all(0 < row["map" if target == "table6" else "last epoch"] < 1 for row in outcome["rows"])


def the_paper_s_order():
    """Tables of two splits with three queries each in which every method has the means that the paper gives it."""
    return {
        method: [
            MetricTable(
                query_ids=np.array(queries),
                names=table6.METRICS,
                values=np.array(
                    [[paper.get(metric, 0.5) + shift for metric in table6.METRICS] for shift in (-0.1, 0.0, 0.1)]
                ),
            )
            for queries in (["a", "b", "c"], ["c", "d", "e"])
        ]
        for method, paper in table6.PAPER.items()
    }


def claims_of(tables):
    return {claim.claim: claim.holds for claim in table6._claims(table6._means(tables), table6._p_values(tables))}


def test_table6_claims_hold_for_the_published_numbers():
    claims = claims_of(the_paper_s_order())
    assert len(claims) == 10
    assert all(claims.values())


@pytest.mark.parametrize("metric", table6.CLAIMED)
@pytest.mark.parametrize(
    ("other", "how"),
    [
        (table6.LAMBDA_MART, "at least"),
        (table6.LIST_NET, "above"),
        (table6.ADA_RANK, "above"),
        (table6.ASCENT, "above"),
        (table6.REWARD_ONLY, "above"),
    ],
)
def test_a_competitor_that_does_better_makes_its_claim_fail(other, how, metric):
    tables = the_paper_s_order()
    for table in tables[other]:
        table[metric][:] = 0.9
    claims = claims_of(tables)
    assert [claim for claim, holds in claims.items() if not holds] == [f"{table6.HYBRID} {how} {other} ({metric})"]


def test_a_tie_with_lambdamart_is_at_least_as_good_and_a_tie_with_others_is_not_above():
    tables = the_paper_s_order()
    for other in (table6.LAMBDA_MART, table6.ASCENT):
        for table, ours in zip(tables[other], tables[table6.HYBRID], strict=True):
            table["map"][:] = ours["map"]
    failed = [claim for claim, holds in claims_of(tables).items() if not holds]
    assert failed == [f"{table6.HYBRID} above {table6.ASCENT} (map)"]


def test_a_query_of_two_splits_counts_once():
    first, second = (
        MetricTable(query_ids=np.array(queries), names=("map",), values=np.array(values))
        for queries, values in ((["a", "c"], [[0.2], [0.4]]), (["c", "b"], [[0.8], [1.0]]))
    )
    once = table6._once_a_query([first, second])
    assert once.query_ids.tolist() == ["a", "b", "c"]
    assert once["map"].tolist() == pytest.approx([0.2, 1.0, 0.6])


def test_stars_are_for_differences_from_the_best_method():
    means = {"best": dict.fromkeys(table6.METRICS, 0.6), "other": dict.fromkeys(table6.METRICS, 0.5)}
    pair = frozenset(means)
    p_values = {(pair, metric, test): 1.0 for metric in table6.METRICS for test in table6.STARS}
    p_values |= {(pair, "map", "t-test"): 0.01, (pair, "map", "wilcoxon"): 0.04, (pair, "mrr", "wilcoxon"): 0.049}
    assert table6._stars("other", means, p_values) == "map*+ mrr+"
    assert table6._stars("best", means, p_values) == ""


def test_figure1_compares_the_first_epochs_only():
    rising = np.array([[0.3, 0.4, 0.5, 0.5, 0.5, 0.5], [0.4, 0.5, 0.5, 0.5, 0.5, 0.5]])
    late = np.array([[0.1, 0.2, 0.3, 0.4, 0.5, 0.9], [0.4, 0.5, 0.5, 0.5, 0.5, 0.9]])
    curves = {"R1": rising, "R2": late, "R3": late, "R4": late, "R5": rising, "R6": late}
    assert [claim.holds for claim in figure1._claims(curves)] == [True, True, False, False]
    assert figure1._claims(curves)[0].ours == "0.4600 against 0.3900, higher on 1 of 2 splits"
