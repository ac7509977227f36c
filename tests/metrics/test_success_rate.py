import torch

from rankpolicy.metrics import all_items, success
from rankpolicy.types import Conventions

LABELS = torch.tensor([[0.0, 1.0, 3.0, 2.0]], dtype=torch.float64)
RANKING = torch.tensor([[0, 3, 2, 1]])  # labels 0, 2, 3, 1 in ranking order
MASK = all_items(1, 4)


def test_golden_values() -> None:
    assert [success(RANKING, LABELS, MASK, cutoff=cutoff).item() for cutoff in (1, 2, 9, None)] == [0, 1, 1, 1]


def test_relevant_from() -> None:
    strict = Conventions(relevant_from=3)
    assert [success(RANKING, LABELS, MASK, cutoff=cutoff, conventions=strict).item() for cutoff in (2, 3)] == [0, 1]


def test_a_query_without_relevant_items_follows_the_convention() -> None:
    values = [success(RANKING, 0 * LABELS, MASK, conventions=Conventions(empty=empty)).item() for empty in (0, 1)]
    assert values == [0, 1]
