import re

import numpy as np
import pytest

from rankpolicy.cli.tradeoff import tradeoff_csv
from rankpolicy.data import make_fair_synthetic
from rankpolicy.experiments.tradeoff_curves import SeedValue, Tradeoff, TradeoffPoint, UtilityDisparity
from rankpolicy.fairness import GroupExposure
from rankpolicy.reports import RunRecord, figures
from rankpolicy.reports.tradeoff_report import points_to_show, tradeoff_figure, tradeoff_page

TEST = make_fair_synthetic(8, 5, random_state=1)


def point(method, utility, disparity, *, strength=None, num_seeds=2, notes=()):
    values = tuple(
        SeedValue(seed=seed, utility=utility + 0.01 * seed, disparity=disparity) for seed in range(num_seeds)
    )
    exposure = np.linspace(0.3, 1.0, TEST.num_items)
    return TradeoffPoint(
        method=method, strength=strength, max_disparity=None, per_seed=values, exposure=exposure, notes=notes
    )


def tradeoff_of(num_seeds):
    ours = [point("fair", 0.9 - 0.1 * n, 0.3 - 0.1 * n, strength=float(n), num_seeds=num_seeds) for n in range(3)]
    theirs = [point("<plain>", 0.8, 0.25, num_seeds=num_seeds, notes=("slow & odd",))]
    return Tradeoff(
        curves={"fair": tuple(ours), "<plain>": tuple(theirs)},
        settings={"fair": {"reward": "ndcg"}, "<plain>": {}},
        reward="ndcg",
        fairness=GroupExposure(),
        uniform=UtilityDisparity(0.5, 0.0),
        num_queries=(8,) * num_seeds,
        left_out=({"a group is absent": 2},) * num_seeds,
        reference=UtilityDisparity(0.5, 0.5),
    )


@pytest.mark.parametrize("num_seeds", [1, 2])
def test_the_page_has_every_section_and_loads_nothing(num_seeds):
    facts = {"path": "data.txt", "sha256": "ab" * 32, "queries": 30, "items": 99}
    run = RunRecord(
        command="rankpolicy tradeoff <x>", seed=7, data={"train": facts}, started="2020", duration_seconds=1.0
    )
    page = tradeoff_page(tradeoff_of(num_seeds), TEST, run, title="T", lead="L")
    for section in ("Utility against disparity", "Exposure and merit", "Points", "What was measured"):
        assert f"<h2>{section}</h2>" in page
    assert not re.search(r"https?://|<script|<link|url\(h", page)
    assert page.count("<svg") == 2
    assert ("± one standard deviation over 2 seeds" in page) == (num_seeds == 2)
    assert f"a group is absent: {2 * num_seeds}" in page
    for text in (
        "&lt;plain&gt;",
        "slow &amp; odd",
        "rankpolicy tradeoff &lt;x&gt;",
        "utility 0.5000, disparity 0.50000",
    ):
        assert text in page


def test_the_figure_names_axes_methods_and_strengths_and_marks_the_front():
    svg = figures.svg(tradeoff_figure(tradeoff_of(2)), "label")
    for text in (
        "group disparity of exposure",
        "expected ndcg",
        "fair",
        "&lt;plain&gt;",
        "Pareto front",
        ">0<",
        ">1<",
        ">2<",
    ):
        assert text in svg
    assert figures.file(tradeoff_figure(tradeoff_of(2)), "png").startswith(b"\x89PNG")
    assert b'xmlns="http://www.w3.org/2000/svg"' in figures.file(tradeoff_figure(tradeoff_of(1)), "svg")


def test_labels_do_not_lie_on_one_another():
    near = {"a": figures.Curve(x=[0.1, 0.1001, 0.1002, 0.5], y=[0.5, 0.5001, 0.5002, 0.9], spread_of_x=None,
                               spread_of_y=None, labels=["0", "1", "10", "100"])}  # fmt: skip
    figure = figures.tradeoff_curves(near, [], x_name="x", y_name="y", label_name="strength")
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert len(boxes) >= 2
    for place, box in enumerate(boxes):
        assert box.count_overlaps(boxes[:place]) == 0


def test_exposure_panels_name_groups_and_points():
    chosen = points_to_show(tradeoff_of(1).curves["fair"])
    assert list(chosen) == ["least fair: strength 0", "between: strength 1", "fairest: strength 2"]
    assert list(points_to_show(tradeoff_of(1).curves["<plain>"])) == ["<plain>"]
    panels = {title: each.exposure for title, each in chosen.items()}
    svg = figures.svg(figures.exposure_by_merit(panels, TEST.labels.astype(float), TEST.groups), "label")
    for text in (*chosen, "mean of group", "merit", "exposure"):
        assert text in svg
    assert "mean of group" not in figures.svg(
        figures.exposure_by_merit(panels, TEST.labels.astype(float), None), "label"
    )


def test_csv_has_a_line_a_point():
    lines = tradeoff_csv(tradeoff_of(1)).splitlines()
    assert lines[0] == "method,strength,max_disparity,utility,disparity,utility_spread,disparity_spread,is_pareto"
    assert lines[1] == "fair,0.0,,0.9,0.3,,,True"
    assert lines[-1] == "<plain>,,,0.8,0.25,,,False"
