import pytest
import torch

from rankpolicy.metrics import all_items, ap
from rankpolicy.types import Conventions

LABELS = torch.tensor([[0.0, 1.0, 3.0, 2.0]], dtype=torch.float64)
RANKING = torch.tensor([[3, 0, 2, 1]])  # labels 2, 0, 3, 1 in ranking order
MASK = all_items(1, 4)


def test_golden_values() -> None:
    assert ap(RANKING, LABELS, MASK).item() == pytest.approx((1 / 1 + 2 / 3 + 3 / 4) / 3)


def test_a_cutoff_divides_by_all_relevant_items() -> None:
    assert ap(RANKING, LABELS, MASK, cutoff=3).item() == pytest.approx((1 / 1 + 2 / 3) / 3)


def test_relevant_from() -> None:
    values = ap(RANKING, LABELS, MASK, conventions=Conventions(relevant_from=3))
    assert values.item() == pytest.approx(1 / 3)
