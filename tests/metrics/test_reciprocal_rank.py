import pytest
import torch

from rankpolicy.metrics import all_items, rr
from rankpolicy.types import Conventions

LABELS = torch.tensor([[0.0, 1.0, 3.0, 2.0]], dtype=torch.float64)
RANKING = torch.tensor([[3, 0, 2, 1]])  # labels 2, 0, 3, 1 in ranking order
MASK = all_items(1, 4)


def test_golden_values() -> None:
    assert rr(RANKING, LABELS, MASK).item() == 1
    assert rr(torch.tensor([[0, 3, 2, 1]]), LABELS, MASK).item() == 0.5


def test_a_relevant_item_below_the_cutoff_earns_nothing() -> None:
    assert rr(torch.tensor([[0, 3, 2, 1]]), LABELS, MASK, cutoff=1).item() == 0


def test_relevant_from() -> None:
    assert rr(RANKING, LABELS, MASK, conventions=Conventions(relevant_from=3)).item() == pytest.approx(1 / 3)
