import pytest
import torch

from rankpolicy.metrics import all_items, rbp
from rankpolicy.types import Conventions, RankPolicyError

LABELS = torch.tensor([[0.0, 1.0, 3.0, 2.0]], dtype=torch.float64)
RANKING = torch.tensor([[3, 0, 2, 1]])  # labels 2, 0, 3, 1 in ranking order
MASK = all_items(1, 4)


def test_golden_values() -> None:
    assert rbp(RANKING, LABELS, MASK).item() == pytest.approx(0.2 * (1 + 0.8**2 + 0.8**3))
    assert rbp(RANKING, LABELS, MASK, cutoff=2).item() == pytest.approx(0.2)


def test_persistence() -> None:
    assert rbp(RANKING, LABELS, MASK, persistence=0.5).item() == pytest.approx(0.5 * (1 + 0.25 + 0.125))
    with pytest.raises(RankPolicyError, match="persistence must be at least 0 and below 1; got 1"):
        rbp(RANKING, LABELS, MASK, persistence=1.0)


def test_an_empty_query_is_skipped_on_demand() -> None:
    assert rbp(RANKING, LABELS * 0, MASK, conventions=Conventions(empty=1)).item() == 0
    assert rbp(RANKING, LABELS * 0, MASK, conventions=Conventions(empty="skip")).isnan().item()
