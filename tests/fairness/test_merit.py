import math

import pytest
import torch

from rankpolicy import RankPolicyError
from rankpolicy.fairness import MERITS, merit_of

LABELS = torch.tensor([[0.0, 0.5, 1.0, 3.0]])


def test_golden_values():
    assert merit_of(LABELS).tolist() == [[0, 0.5, 1, 3]]
    assert merit_of(LABELS, "exp2").tolist() == [pytest.approx([0, math.sqrt(2) - 1, 1, 7])]
    assert merit_of(LABELS, "binary").tolist() == [[0, 0, 1, 1]]
    assert merit_of(LABELS, "log1p").tolist() == [pytest.approx([0, math.log(1.5), math.log(2), math.log(4)])]
    assert merit_of(LABELS, "sqrt").tolist() == [pytest.approx([0, math.sqrt(0.5), 1, math.sqrt(3)])]
    assert merit_of(LABELS, "square").tolist() == [pytest.approx([0, 0.25, 1, 9])]
    assert merit_of(LABELS, lambda labels: labels + 1).tolist() == [[1, 1.5, 2, 4]]


@pytest.mark.parametrize("merit", MERITS)
def test_merit_rises_with_labels_from_zero(merit):
    values = merit_of(torch.arange(5)[None], merit)[0]
    assert values[0] == 0
    assert (values.diff() >= 0).all()
    assert values.dtype == torch.get_default_dtype()


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf])
def test_a_merit_that_cannot_be_is_located(wrong):
    with pytest.raises(RankPolicyError, match="query 0, item 2 has label 1 and merit"):
        merit_of(LABELS, lambda labels: labels.masked_fill(labels == 1, wrong))


def test_unknown_names_and_shapes():
    with pytest.raises(RankPolicyError, match="Did you mean 'exp2'"):
        merit_of(LABELS, "exp")
    with pytest.raises(RankPolicyError, match="keep the shape"):
        merit_of(LABELS, lambda labels: labels.sum(-1))
