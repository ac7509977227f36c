import re

import matplotlib.figure
import pytest

from rankpolicy.reports.readable_labels import round_numbers, use_readable_log_ticks


@pytest.mark.parametrize(
    ("low", "high"), [(0.15, 1.1), (0.55, 1.05), (0.97, 1.01), (1, 5000), (1, 1e7), (1e-6, 3), (0.02, 0.3), (7, 9)]
)
def test_ticks_are_plain_round_numbers(low, high):
    figure = matplotlib.figure.Figure()
    axes = figure.add_subplot()
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    use_readable_log_ticks(axes.yaxis)
    figure.draw_without_rendering()
    labels = [
        text.get_text() for text in (*axes.get_yticklabels(), *axes.get_yticklabels(minor=True)) if text.get_text()
    ]
    assert 3 <= len(labels) <= 12
    assert all(re.fullmatch(r"[0-9.,]+", label) for label in labels)
    assert [float(label.replace(",", "")) for label in labels] == pytest.approx(round_numbers(low, high))


def test_fractions_are_written_as_people_write_them():
    assert round_numbers(0.18, 1.05) == [0.2, 0.4, 0.6, 0.8, 1.0]
