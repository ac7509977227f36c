import math

import pytest
import torch

from rankpolicy.metrics import all_items, ndcg, rank_by_score, ranks_of
from rankpolicy.types import RankPolicyError


def test_equal_scores_keep_item_order_and_padding_comes_last() -> None:
    scores = torch.tensor([[1.0, 2.0, 1.0, 2.0, 9.0], [-math.inf, 0.0, -0.0, 9.0, 9.0]])
    mask = torch.tensor([[True, True, True, True, False], [True, True, True, False, False]])
    assert rank_by_score(scores, mask).tolist() == [[1, 3, 0, 2, 4], [1, 2, 0, 3, 4]]


def test_ranks_are_the_inverse_of_rankings() -> None:
    rankings = torch.stack([torch.randperm(7, generator=torch.Generator().manual_seed(seed)) for seed in range(5)])
    assert torch.equal(torch.argsort(ranks_of(rankings), -1), rankings)


@pytest.mark.parametrize(
    ("rankings", "labels", "message"),
    [
        (torch.zeros(3, dtype=torch.long), torch.zeros(1, 3), r"rankings must have .*got \(3,\).*rankings\[None\]"),
        (torch.zeros(2, 3, dtype=torch.long), torch.zeros(1, 3), "with 1 queries; got"),
        (torch.zeros(1, 3, dtype=torch.long), torch.zeros(3), r"labels and mask must have one shape.*labels\[None\]"),
    ],
)
def test_wrong_shapes_are_named(rankings: torch.Tensor, labels: torch.Tensor, message: str) -> None:
    with pytest.raises(RankPolicyError, match=message):
        ndcg(rankings, labels, all_items(1, 3))


@pytest.mark.parametrize("cutoff", [0, -1, 2.5, True])
def test_a_cutoff_is_a_whole_number(cutoff: object) -> None:
    with pytest.raises(RankPolicyError, match="cutoff must be a whole number, 1 or more; got"):
        ndcg(torch.tensor([[0, 1]]), torch.ones(1, 2), all_items(1, 2), cutoff=cutoff)
