import re

import numpy as np

from rankpolicy.evaluation import MetricTable
from rankpolicy.reports import figures
from rankpolicy.reports.figures import PALETTE

IDS = np.array(["a", "b", "c", "d"])
VALUES = {"ours": np.array([0.1, 0.5, 0.9, np.nan]), "theirs": np.array([0.2, 0.5, 0.3, 1.0])}


def check_stands_alone(svg):
    assert svg.startswith("<svg")
    assert "http" not in svg
    assert "currentColor" in svg
    assert figures.INK not in svg
    assert 'style="min-width: ' in svg  # a narrow page scrolls it instead of shrinking its text
    assert "var(--c0, #0072b2)" in svg


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


def test_folds_that_learned_different_rewards_have_a_panel_for_each():
    histories = {
        "Fold1": {"training": {"map": [0.1, 0.2]}, "valid_0": {"ndcg@10": [0.3, 0.4]}},
        "Fold2": {"training": {"ndcg@10": [0.2, 0.3]}, "valid_0": {"ndcg@10": [0.5, 0.4]}},
    }
    svg = figures.learning_curves(histories, {"Fold1": 2, "Fold2": 1}, step="epoch")
    for label in ("training map", "training ndcg@10", "validation ndcg@10"):
        assert label in svg


def test_learning_curves_of_all_methods_share_one_axis():
    fast = [{"valid_0": {"ndcg@10": [0.3, 0.4]}}, {"valid_0": {"ndcg@10": [0.35, 0.4, 0.5]}}]
    slow = [{"valid_0": {"ndcg@10": [0.3 + 0.001 * tree for tree in range(200)]}}] * 2
    none = [{}, {}]
    svg = figures.validation_curves(
        {"ours": fast, "trees": slow, "closed": none}, {"ours": [2, 3], "trees": [9, 9], "closed": [0, 0]}
    )
    check_stands_alone(svg)
    for text in ("ours", "trees", "epoch or tree", "validation ndcg@10", ">100<"):
        assert text in svg
    assert svg.count("epoch or tree</text>") == 1
    assert "−" not in svg  # no powers of ten on the logarithmic axis
    assert figures.validation_curves({"closed": none}, {"closed": [0, 0]}) is None


def test_text_in_figures_has_the_colour_of_the_page():
    curve = figures.Curve(x=[0.1, 0.5], y=[0.5, 0.9], spread_of_x=None, spread_of_y=None, labels=["0", "100"])
    drawn = figures.tradeoff_curves({"a": curve}, [], x_name="x", y_name="y", label_name="strength")
    texts = re.findall(r"<text[^>]*>", figures.svg(drawn, "label"))
    assert texts
    for text in texts:
        assert not any(colour.lower() in text.lower() for colour in PALETTE)
        assert "opacity" not in text
