import numpy as np
import pytest

from rankpolicy.evaluation import MetricTable, compare_tables, holm, paired_t_test
from rankpolicy.types import Conventions, RankPolicyError

GENERATOR = np.random.default_rng(0)
IDS = np.array([f"q{i}" for i in range(40)])


def table(shift: float = 0.0, **changes: object) -> MetricTable:
    values = GENERATOR.random((40, 2)) + shift
    return MetricTable(**{"query_ids": IDS, "names": ("ap", "rr"), "values": values, **changes})


def test_all_pairs_and_metrics_with_holm_over_each_test() -> None:
    tables = {"a": table(), "b": table(0.3), "c": table(0.1)}
    comparisons = compare_tables(tables, tests=["t-test", "fisher-randomization"])
    assert [(c.a, c.b, c.metric) for c in comparisons[:6]] == [
        (a, b, metric) for a, b in ("ab", "ac", "bc") for metric in ("ap", "rr")
    ]
    assert {c.test for c in comparisons[6:]} == {"fisher-randomization"}
    first = comparisons[0]
    assert first.difference == pytest.approx((tables["a"]["ap"] - tables["b"]["ap"]).mean())
    assert first.p == pytest.approx(paired_t_test(tables["a"]["ap"], tables["b"]["ap"]))
    assert [c.p_holm for c in comparisons[:6]] == pytest.approx(holm([c.p for c in comparisons[:6]]))


def test_equal_tables_do_not_differ() -> None:
    same = table()
    assert all(c.p == c.p_holm == 1 and c.difference == 0 for c in compare_tables({"a": same, "b": same}))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (table(query_ids=IDS[::-1]), "same queries in the same order; 'a' has 40 and 'b' has 40 queries, 40 of them"),
        (table(names=("ap", "p")), "same metrics and conventions; 'a' has ap, rr"),
        (table(conventions=Conventions(empty=1)), "same metrics and conventions"),
    ],
)
def test_tables_must_be_comparable(other: MetricTable, message: str) -> None:
    with pytest.raises(RankPolicyError, match=message):
        compare_tables({"a": table(), "b": other})


def test_bad_requests_are_explained() -> None:
    with pytest.raises(RankPolicyError, match="at least two tables; got 1"):
        compare_tables({"a": table()})
    with pytest.raises(RankPolicyError, match=r"Unknown test 'u'\. Known: t-test"):
        compare_tables({"a": table(), "b": table()}, tests=["u"])
