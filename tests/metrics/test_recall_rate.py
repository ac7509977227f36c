import pytest
import torch

from rankpolicy.metrics import all_items, recall
from rankpolicy.types import Conventions

LABELS = torch.tensor([[0.0, 1.0, 3.0, 2.0]], dtype=torch.float64)
RANKING = torch.tensor([[3, 0, 2, 1]])  # labels 2, 0, 3, 1 in ranking order
MASK = all_items(1, 4)


def test_golden_values() -> None:
    assert recall(RANKING, LABELS, MASK, cutoff=2).item() == pytest.approx(1 / 3)
    assert recall(RANKING, LABELS, MASK).item() == 1


def test_a_prefix_is_divided_by_all_relevant_items() -> None:
    assert recall(RANKING[:, :3], LABELS, MASK).item() == pytest.approx(2 / 3)


def test_relevant_from() -> None:
    assert recall(RANKING, LABELS, MASK, cutoff=1, conventions=Conventions(relevant_from=2)).item() == 0.5
