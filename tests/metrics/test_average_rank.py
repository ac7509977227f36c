import pytest
import torch

from rankpolicy.metrics import all_items, avg_rank
from rankpolicy.types import Conventions

LABELS = torch.tensor([[0.0, 1.0, 3.0, 2.0]], dtype=torch.float64)
RANKING = torch.tensor([[3, 0, 2, 1]])  # labels 2, 0, 3, 1 in ranking order
MASK = all_items(1, 4)


def test_golden_values() -> None:
    assert avg_rank(RANKING, LABELS, MASK).item() == pytest.approx((1 + 3 + 4) / 3)


def test_items_below_the_cutoff_rank_just_after_it() -> None:
    assert avg_rank(RANKING, LABELS, MASK, cutoff=2).item() == pytest.approx((1 + 3 + 3) / 3)


def test_items_that_a_prefix_leaves_out_rank_just_after_it() -> None:
    assert avg_rank(RANKING[:, :1], LABELS, MASK).item() == pytest.approx((1 + 2 + 2) / 3)


def test_relevant_from() -> None:
    assert avg_rank(RANKING, LABELS, MASK, conventions=Conventions(relevant_from=3)).item() == 3
