import pytest
import torch

from rankpolicy.metrics import all_items, err
from rankpolicy.types import Conventions, RankPolicyError

LABELS = torch.tensor([[0.0, 1.0, 3.0, 2.0]], dtype=torch.float64)
RANKING = torch.tensor([[3, 0, 2, 1]])  # labels 2, 0, 3, 1 in ranking order
MASK = all_items(1, 4)


def test_golden_values() -> None:
    after_first = 13 / 16
    expected = 3 / 16 + after_first * (7 / 16) / 3 + after_first * (9 / 16) * (1 / 16) / 4
    assert err(RANKING, LABELS, MASK).item() == pytest.approx(expected)
    assert err(RANKING, LABELS, MASK, cutoff=2).item() == pytest.approx(3 / 16)


def test_gain_does_not_matter_and_max_label_does() -> None:
    linear = err(RANKING, LABELS, MASK, cutoff=1, conventions=Conventions(gain="linear", max_label=3))
    assert linear.item() == pytest.approx(3 / 8)


def test_labels_beyond_the_scale_are_refused() -> None:
    with pytest.raises(RankPolicyError, match=r"up to max_label, 2; got 3. Raise it: Conventions\(max_label=3\)"):
        err(RANKING, LABELS, MASK, conventions=Conventions(max_label=2))


def test_labels_of_padded_items_do_not_count() -> None:
    mask = torch.tensor([[True, True, False, True]])
    assert err(torch.tensor([[3, 0, 1, 2]]), LABELS * 1.5, mask).item() > 0
