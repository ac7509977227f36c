import pytest
import torch

from rankpolicy.metrics import all_items, ap, as_reward, ndcg, parse_metric, rbp, reward_to_maximise, rr
from rankpolicy.types import Conventions, RankPolicyError

LABELS = torch.tensor([[0.0, 1.0, 3.0], [0.0, 0.0, 0.0]])
RANKINGS = torch.tensor([[[2, 0, 1], [0, 1, 2]], [[0, 1, 2], [0, 1, 2]]])
GIVEN = (RANKINGS, LABELS, all_items(2, 3))


def test_values_are_sums_of_products() -> None:
    torch.testing.assert_close(parse_metric("mean(ap, rr)")(*GIVEN), (ap(*GIVEN) + rr(*GIVEN)) / 2)
    expected = 0.5 * ndcg(*GIVEN, cutoff=2) * ap(*GIVEN) + 1 - rbp(*GIVEN, persistence=0.5)
    torch.testing.assert_close(parse_metric("0.5*ndcg@2*ap + 1 - rbp(persistence=0.5)")(*GIVEN), expected)


def test_conventions_reach_every_metric() -> None:
    values = parse_metric("mean(ap, ndcg)", Conventions(empty="skip"))(*GIVEN)
    assert values.isnan().tolist() == [[False, True], [False, True]]


@pytest.mark.parametrize(
    ("text", "cutoff", "is_linear", "is_additive"),
    [
        ("ndcg@10", 10, True, True),
        ("ndcg@10 + p@5", 10, True, True),
        ("ndcg@10 + p", None, True, True),
        ("ndcg@10 + ap@5", 10, True, False),
        ("ndcg@10*p@5", 10, False, False),
        ("1 - ndcg@10", 10, False, False),
    ],
)
def test_what_an_expression_tells_of_itself(text: str, cutoff: int | None, is_linear: bool, is_additive: bool) -> None:
    reward = parse_metric(text)
    assert (reward.cutoff, reward.is_linear, reward.is_additive) == (cutoff, is_linear, is_additive)


def test_equal_meaning_is_equality() -> None:
    assert parse_metric("map*rr") == parse_metric("mrr * ap")
    assert hash(parse_metric("ap + rr")) == hash(parse_metric("rr+ap"))
    assert parse_metric("ap") != parse_metric("ap", Conventions(empty=1))


def test_an_own_function_must_give_one_value_a_ranking() -> None:
    def first_item(rankings: torch.Tensor, labels: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return (rankings[..., 0] == 0).float()

    assert as_reward(first_item)(*GIVEN).tolist() == [[0, 1], [1, 1]]
    assert as_reward(first_item).name == "first_item"
    with pytest.raises(RankPolicyError, match=r"one value per ranking, shape \(2, 2\); got \(2, 2, 3\)"):
        as_reward(lambda rankings, labels, mask: rankings.float())(*GIVEN)
    for arrays in (GIVEN, [torch.as_tensor(given) for given in GIVEN]):
        with pytest.raises(RankPolicyError, match="one value per ranking; got NoneType"):
            as_reward(lambda rankings, labels, mask: None)(*arrays)


@pytest.mark.parametrize(
    ("text", "expected"), [("avg_rank@5", True), ("ndcg + 0.1*avg_rank", True), ("ndcg - avg_rank", False)]
)
def test_average_ranks_are_better_when_lower(text: str, expected: bool) -> None:
    assert parse_metric(text).lower_is_better is expected
    if expected:
        with pytest.raises(RankPolicyError, match="a reward must rise as rankings get better"):
            reward_to_maximise(text)
    else:
        assert reward_to_maximise(text) == parse_metric(text)
