import re

import numpy as np

from rankpolicy.clicks import estimate_position_bias, log_from_lists
from rankpolicy.reports import figures
from rankpolicy.reports.bias_report import position_bias_figure


def test_a_line_and_intervals_a_method_beside_the_click_through():
    log = log_from_lists(
        ["q"] * 4,
        [["x", "y", "z"], ["x", "y"], ["y", "x"], ["y", "x"]],
        [[1, 1, 1], [1, 0], [0, 1], [1, 0]],
        counts=[9, 9, 8, 9],
    )
    biases = {name: estimate_position_bias(log, method=name, num_resamples=30) for name in ("all-pairs", "randomised")}
    axes = position_bias_figure(biases).axes[0]
    assert [line.get_label() for line in axes.lines] == ["click-through", "all-pairs", "randomised"]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), biases["randomised"].propensities)
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), biases["all-pairs"].propensities)
    # The third rank shows z alone, which nothing links to the first: no point, no interval.
    assert np.isnan(axes.lines[1].get_ydata()).tolist() == [False, False, True]
    assert [len(collection.get_segments()) for collection in axes.collections] == [2, 3]
    assert axes.get_yscale() == "log"
    axes.figure.draw_without_rendering()
    ticks = [
        text.get_text() for text in (*axes.get_yticklabels(), *axes.get_yticklabels(minor=True)) if text.get_text()
    ]
    assert len(ticks) >= 3
    assert all(re.fullmatch(r"[0-9.]+", text) for text in ticks)
    assert figures.file(position_bias_figure(biases), "png").startswith(b"\x89PNG")
