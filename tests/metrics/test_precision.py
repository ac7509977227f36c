import pytest
import torch

from rankpolicy.metrics import all_items, p
from rankpolicy.types import Conventions

LABELS = torch.tensor([[0.0, 1.0, 3.0, 2.0]], dtype=torch.float64)
RANKING = torch.tensor([[3, 0, 2, 1]])  # labels 2, 0, 3, 1 in ranking order
MASK = all_items(1, 4)


def test_golden_values() -> None:
    assert p(RANKING, LABELS, MASK).item() == pytest.approx(3 / 4)
    assert p(RANKING, LABELS, MASK, cutoff=2).item() == pytest.approx(1 / 2)


def test_a_short_list_is_divided_by_the_cutoff() -> None:
    assert p(RANKING, LABELS, MASK, cutoff=10).item() == pytest.approx(3 / 10)


def test_without_cutoff_padded_items_are_not_counted() -> None:
    mask = torch.tensor([[True, True, False, False]])
    assert p(torch.tensor([[0, 1, 2, 3]]), LABELS, mask, conventions=Conventions()).item() == pytest.approx(1 / 2)
