"""The quality benchmark: kept cells are not fitted again, and its summary is what a reader computes from them."""

import numpy as np
import pytest

from benchmarks.quality import cells, results, sets, tables
from benchmarks.quality.cells import Cell, Place, cells_of, fit_missing
from benchmarks.quality.methods import METHODS, OURS, SEEDED

OTHER = "LambdaMART, best of nine"


def test_cells_of_a_set_with_seeds():
    found = cells_of(["mq2007"], [OURS, "PGRank"], num_folds=2)
    assert [(cell.fold, cell.method, cell.seed) for cell in found] == [
        (0, OURS, 0), (0, OURS, 1), (0, "PGRank", 0), (1, OURS, 0), (1, OURS, 1), (1, "PGRank", 0),
    ]  # fmt: skip
    assert set(SEEDED) <= set(METHODS)
    assert set(sets.NUM_FOLDS) == set(sets.SETS)
    assert len({cell.file(cells.Path()) for cell in cells_of(list(sets.SETS), list(METHODS))}) == len(
        cells_of(list(sets.SETS), list(METHODS))
    )


def test_only_missing_cells_are_fitted(tmp_path, monkeypatch):
    place = Place(data=tmp_path, stage="dev", folder=tmp_path / "dev")
    fitted = []

    def scores(train, valid, test, seed):
        fitted.append(seed)
        return np.arange(test.num_items, dtype=float)

    monkeypatch.setitem(METHODS, "PGRank", scores)
    wanted = cells_of(["generated: few queries"], ["PGRank"])
    fit_missing(wanted[:1], place, jobs=1)
    before = results.kept(wanted[0], place.folder)[0]
    fit_missing(wanted, place, jobs=1)
    assert fitted == [0, 0]
    np.testing.assert_array_equal(results.kept(wanted[0], place.folder)[0], before)
    assert not list(place.folder.glob("*partial*"))


def test_summary_by_hand(tmp_path):
    values = {
        ("wikiqa", OURS, 0): [[0.5, 0.4], [0.7, 0.6], [np.nan, np.nan]],
        ("wikiqa", OTHER, 0): [[0.4, 0.5], [0.4, 0.5], [np.nan, np.nan]],
        ("home depot", OURS, 0): [[0.2, 0.2], [0.4, 0.4]],
        ("home depot", OURS, 1): [[0.4, 0.4], [0.6, 0.6]],
        ("home depot", OTHER, 0): [[0.5, 0.3], [0.5, 0.5]],
        ("home depot", OTHER, 1): [[0.5, 0.3], [0.5, 0.5]],
    }
    kept = [Cell(set=name, fold=fold, method=method, seed=0) for name, method, fold in values]
    for cell, table in zip(kept, values.values(), strict=True):
        np.savez(cell.file(tmp_path), values=np.array(table), seconds=2.0)
    result = results.summary(*results.values_of(kept, tmp_path, "test"))
    assert result["num_queries"] == {"wikiqa": 2, "home depot": 2}  # the splits of home depot share their test queries
    assert result["means"][OURS]["home depot"] == {"ndcg@10": 0.4, "map": 0.4}
    ahead = result["ahead"][OTHER]["ndcg@10"]
    assert ahead["sets"]["wikiqa"] == pytest.approx(
        [0.2, 0.1]
    )  # .1 and .3: their deviation is .1414, divided by sqrt(2)
    assert ahead["sets"]["home depot"] == pytest.approx([-0.1, 0.1])  # -.2 and 0
    assert ahead["pooled"] == pytest.approx([0.05, np.sqrt(0.02) / 2])
    assert ahead["behind_by_two_standard_errors"] == []
    assert result["cpu_seconds"] == {OURS: 6.0, OTHER: 6.0}
    assert result["mean_rank"] == {OURS: 1.25, OTHER: 1.25}  # each is second once; MAP is level on both sets
    assert "| LambdaMART, best of nine | +0.0500 ± 0.0707 | " in tables.markdown(result)


def test_groups_of_sets_have_differences_of_their_own():
    shared = {"wikiqa": [0.02, 0.003], "mq2007": [0.0, 0.004], "generated: wide": [0.05, 0.001]}
    result = {"ahead": {tables.RIVAL: {"ndcg@10": {"sets": shared}}}}
    text = tables.groups_table(result)
    # real: mean .01, over queries 1.96 * .005 / 2 = .0049; over sets t(1) = 12.706 times .01
    assert "| real | 2 | +0.0100 [+0.0051, +0.0149] | ± 0.1271 |" in text
    assert "| generated, additive | 1 | +0.0500 [+0.0480, +0.0520] |  |" in text
    assert "| all | 3 | " in text


def test_the_loss_of_trees_is_paired_by_query_and_pooled_over_sets():
    from benchmarks.quality.distillation import loss, markdown, pooled

    first = loss(np.array([[0.5, 0.4, 2.0], [0.7, 0.6, 2.0], [0.9, 1.0, 2.0]]))  # differences .1, .1, -.1
    assert (first["loss"], first["error"], first["seconds"]) == (0.03333, 0.06667, 2.0)
    second = first | {"loss": -0.01333, "error": 0.05}
    both = pooled({"a": first, "b": second})
    assert (both["loss"], both["error"]) == (0.01, 0.04167)  # the mean; half the root of the sum of squares
    table = markdown({"losses": {"T": {"a": first, "b": second}}, "pooled": {"T": both}})
    assert "| T | a | 0.7000 | 0.6667 | +0.0333 [-0.0973, +0.1640] |" in table
    assert "| **T** | **all, same weight** | | | +0.0100 [-0.0717, +0.0917] |" in table
