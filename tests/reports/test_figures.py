import numpy as np

from rankpolicy import MetricTable
from rankpolicy.reports import figures

IDS = np.array(["a", "b", "c", "d"])
VALUES = {"ours": np.array([0.1, 0.5, 0.9, np.nan]), "theirs": np.array([0.2, 0.5, 0.3, 1.0])}


def check_stands_alone(svg):
    assert svg.startswith("<svg")
    assert "http" not in svg
    assert "currentColor" in svg
    assert figures.INK not in svg


def test_learning_curves_name_their_axes():
    history = {"training": {"reward": [0.1, 0.2]}, "valid_0": {"ndcg@10": [0.3, 0.4]}}
    svg = figures.learning_curves({"Fold1": history, "Fold2": history}, {"Fold1": 2, "Fold2": 1}, step="epoch")
    check_stands_alone(svg)
    for text in ("epoch", "training reward", "validation ndcg@10", "Fold1", "Fold2"):
        assert text in svg


def test_intervals_name_methods_and_metrics():
    tables = {
        name: MetricTable(query_ids=IDS, names=("map", "ndcg@5", "mrr"), values=np.tile(values[:, None], 3))
        for name, values in VALUES.items()
    }
    svg = figures.metric_intervals(tables)
    check_stands_alone(svg)
    for text in ("ours", "theirs", "map, mean over queries", "mrr, mean over queries"):
        assert text in svg


def test_the_scatter_counts_wins_and_ties_of_counted_queries():
    svg = figures.query_scatter(VALUES, metric="map")
    check_stands_alone(svg)
    assert "theirs better 1 · equal 1 · ours better 1" in svg
    assert "map of ours" in svg


def test_the_same_numbers_give_the_same_figure():
    assert figures.query_scatter(VALUES, metric="map") == figures.query_scatter(VALUES, metric="map")
