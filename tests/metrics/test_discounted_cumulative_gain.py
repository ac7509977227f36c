from math import log2

import pytest
import torch

from rankpolicy.metrics import all_items, dcg
from rankpolicy.types import Conventions

LABELS = torch.tensor([[0.0, 1.0, 3.0, 2.0]], dtype=torch.float64)
RANKING = torch.tensor([[3, 0, 2, 1]])  # labels 2, 0, 3, 1 in ranking order
MASK = all_items(1, 4)


def test_golden_values() -> None:
    assert dcg(RANKING, LABELS, MASK).item() == pytest.approx(3 + 0 + 7 / 2 + 1 / log2(5))
    assert dcg(RANKING, LABELS, MASK, cutoff=2).item() == pytest.approx(3)


def test_linear_gain_is_the_label() -> None:
    values = dcg(RANKING, LABELS, MASK, conventions=Conventions(gain="linear"))
    assert values.item() == pytest.approx(2 + 3 / 2 + 1 / log2(5))


@pytest.mark.parametrize(("empty", "expected"), [(0, 0.0), (1, 0.0), ("skip", float("nan"))])
def test_a_query_without_gain_has_none_unless_skipped(empty: object, expected: float) -> None:
    values = dcg(RANKING, torch.zeros(1, 4), MASK, conventions=Conventions(empty=empty))
    assert values.item() == pytest.approx(expected, nan_ok=True)
