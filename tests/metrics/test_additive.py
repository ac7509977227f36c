import pytest
import torch

from rankpolicy.metrics import METRICS, additive_form, parse_metric
from rankpolicy.types import Conventions, RankPolicyError

ADDITIVE = [name for name, metric in METRICS.items() if metric.additive is not None]
GENERATOR = torch.Generator().manual_seed(3)
LABELS = torch.randint(0, 4, (5, 8), generator=GENERATOR).double()
LABELS[0] = 0
MASK = torch.arange(8) < torch.tensor([8, 8, 5, 3, 1])[:, None]
SERVED = (LABELS * MASK).amax(-1) > 0
RANKINGS = torch.argsort(torch.rand(4, 5, 8, generator=GENERATOR) - MASK.double(), -1)


def added_up(form: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    rank_weights, item_values = form
    return (rank_weights * item_values.expand(4, 5, 8).gather(-1, RANKINGS)).sum(-1)


@pytest.mark.parametrize("cutoff", [None, 3, 20])
@pytest.mark.parametrize("gain", ["exp2", "linear"])
@pytest.mark.parametrize("metric", ADDITIVE)
def test_rank_weights_times_item_values_are_the_metric(metric: str, gain: str, cutoff: int | None) -> None:
    conventions = Conventions(gain=gain)
    form = additive_form(metric, LABELS, MASK, cutoff=cutoff, conventions=conventions)
    assert form is not None
    expected = METRICS[metric](RANKINGS, LABELS, MASK, cutoff=cutoff, conventions=conventions)
    torch.testing.assert_close(added_up(form), expected)


@pytest.mark.parametrize("empty", [1, "skip"])
def test_an_empty_query_has_item_values_of_zero(empty: object) -> None:
    form = additive_form("ndcg", LABELS, MASK, conventions=Conventions(empty=empty))
    assert form is not None
    assert (form.item_values[~SERVED] == 0).all()


@pytest.mark.parametrize("metric", sorted(set(METRICS) - set(ADDITIVE)))
def test_other_metrics_have_no_such_form(metric: str) -> None:
    assert additive_form(metric, LABELS, MASK) is None


def test_a_weighted_sum_is_the_sum_of_its_forms() -> None:
    reward = parse_metric("0.7*ndcg@3 - 2*avg_rank + rbp(persistence=0.5)")
    total = sum(added_up(form) for form in reward.additive_forms(LABELS, MASK))
    torch.testing.assert_close(total, reward(RANKINGS, LABELS, MASK))


@pytest.mark.parametrize("text", ["ap + ndcg", "ndcg*p@3", "1 - ndcg"])
def test_other_rewards_are_refused_with_a_way_out(text: str) -> None:
    with pytest.raises(RankPolicyError, match="estimator='reinforce'"):
        parse_metric(text).additive_forms(LABELS, MASK)
