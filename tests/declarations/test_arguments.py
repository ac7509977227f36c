"""Arguments of the wrong kind are refused in words: what must hold and what came."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import rankpolicy as rp
from rankpolicy.declarations.arguments import as_whole_numbers, checked_kinds

DATA = rp.make_web_search(6, items_per_query=(2, 4), num_features=8, random_state=0)
RANKER = rp.Regression(model="linear").fit(DATA)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rp.make_web_search(1.5), "num_queries must be a whole number"),
        (lambda: rp.data.k_fold(DATA, "a"), "num_folds must be a whole number; got 'a'"),
        (lambda: rp.split_queries(DATA, random_state="x"), "random_state must be a whole number or None; got 'x'"),
        (lambda: rp.split_queries(DATA, random_state=-1), "random_state must be a seed"),
        (lambda: RANKER.sample(DATA, num_samples=True), "num_samples must be a whole number"),
        (lambda: RANKER.exposure(DATA, rank_weights="abc"), "rank_weights must be numbers; got 'abc'"),
        (lambda: RANKER.save(""), "a path must be a text"),
        (lambda: rp.evaluate(RANKER, DATA, "ndcg@" + "9" * 30), "cutoff"),
        (lambda: rp.evaluate(RANKER, DATA, "mean(" * 2000), "at most 2000 characters"),
        (lambda: rp.PGRank(num_networks=True), "num_networks must be a whole number; got True"),
        (lambda: rp.fit_click_model("pbm", [1]), r"log must be a ClickLog; got \[1\] \(list\)"),
        (lambda: rp.evaluation.holm(["a"]), "p_values must be a list of numbers"),
        (lambda: rp.simulation.simulate("random", None, num_steps=1, num_runs=1), r"bandits must .*Write \['random'\]"),
    ],
)  # fmt: skip
def test_arguments_of_another_kind(call, message):
    with pytest.raises(rp.RankPolicyError, match=message):
        call()


def test_a_table_of_pyarrow_is_refused_in_words_and_a_sparse_matrix_taken():
    pyarrow = pytest.importorskip("pyarrow")
    sparse = pytest.importorskip("scipy.sparse")
    table = pyarrow.table({"qid": [1, 1], "label": [0.0, 1.0], "x": [0.5, 0.25]})
    with pytest.raises(rp.RankPolicyError, match=r"an Arrow table to polars\.from_arrow first"):
        rp.from_frame(table)
    dataset = rp.from_arrays(sparse.csr_matrix(DATA.features), DATA.labels, group=DATA.sizes)
    assert np.array_equal(dataset.features, DATA.features)


@checked_kinds
def _takes(
    count: int = 1,
    names: Sequence[str] = (),
    numbers: NDArray[np.float64] | None = None,
    table: Mapping[str, float] | None = None,
    things: Iterable[str] = (),
) -> Any:
    return count, numbers


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": True}, "count must be a whole number; got True"),
        ({"count": 2**70}, "at most 64 bits"),
        ({"names": "abc"}, r"names must be a list of texts; got 'abc'. Write \['abc'\]"),
        ({"names": [1]}, "names must be a list of texts"),
        ({"numbers": ["a"]}, "numbers must be an array of numbers or None"),
        ({"numbers": [[1], [2, 3]]}, "numbers must be an array of numbers or None"),
        ({"table": {"a": "b"}}, "table must be a mapping to numbers or None"),
        ({"things": {"a": 1}}, "things must be a list of texts"),
    ],
)
def test_kinds_follow_from_annotations(arguments, message):
    with pytest.raises(rp.RankPolicyError, match=message):
        _takes(**arguments)


def test_lists_become_arrays_and_arrays_of_one_number_numbers():
    count, numbers = _takes(np.array(3), numbers=[1, 2])
    assert (count, type(count)) == (3, int)
    assert isinstance(numbers, np.ndarray)


def test_whole_numbers():
    assert as_whole_numbers("steps", [1, 2]).dtype == np.int64
    for wrong in ([0.5], ["a"], np.array([2**63], np.uint64)):
        with pytest.raises(rp.RankPolicyError, match="steps must be"):
            as_whole_numbers("steps", wrong)
