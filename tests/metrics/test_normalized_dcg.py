from math import log2

import pytest
import torch

from rankpolicy.metrics import all_items, ndcg
from rankpolicy.types import Conventions

LABELS = torch.tensor([[0.0, 1.0, 3.0, 2.0]], dtype=torch.float64)
RANKING = torch.tensor([[3, 0, 2, 1]])  # labels 2, 0, 3, 1 in ranking order
MASK = all_items(1, 4)


def test_golden_values() -> None:
    ideal = 7 + 3 / log2(3) + 1 / 2
    assert ndcg(RANKING, LABELS, MASK).item() == pytest.approx((3 + 7 / 2 + 1 / log2(5)) / ideal)
    assert ndcg(RANKING, LABELS, MASK, cutoff=2).item() == pytest.approx(3 / (7 + 3 / log2(3)))


def test_linear_gain() -> None:
    values = ndcg(RANKING, LABELS, MASK, cutoff=1, conventions=Conventions(gain="linear"))
    assert values.item() == pytest.approx(2 / 3)


def test_the_ideal_of_a_prefix_knows_every_item() -> None:
    ideal = 7 + 3 / log2(3) + 1 / 2
    assert ndcg(RANKING[:, :1], LABELS, MASK).item() == pytest.approx(3 / ideal)


def test_labels_of_padded_items_do_not_count() -> None:
    mask = torch.tensor([[True, True, False, True]])
    values = ndcg(torch.tensor([[3, 0, 1, 2]]), LABELS, mask)
    assert values.item() == pytest.approx((3 + 1 / 2) / (3 + 1 / log2(3)))
