"""What every metric must do, over the dict that lists them."""

import pytest
import torch
from torch import Tensor

from rankpolicy.metrics import METRICS
from rankpolicy.types import Conventions

CUTOFFS = [None, 1, 3, 50]
WITHIN_ONE = sorted(set(METRICS) - {"dcg", "avg_rank"})
ZERO_BY_NATURE = ("dcg", "rbp")


def examples(num_queries: int = 6, num_items: int = 7) -> tuple[Tensor, Tensor, Tensor]:
    """Two rankings of each of six queries of one to seven items."""
    generator = torch.Generator().manual_seed(11)
    labels = torch.randint(0, 5, (num_queries, num_items), generator=generator).double()
    mask = torch.arange(num_items) < torch.tensor([7, 6, 5, 4, 2, 1])[:num_queries, None]
    rankings = torch.argsort(torch.rand(2, num_queries, num_items, generator=generator) - 2 * mask.double(), -1)
    return rankings, labels, mask


@pytest.fixture(params=METRICS)
def metric(request: pytest.FixtureRequest):
    return METRICS[request.param]


@pytest.mark.parametrize("cutoff", CUTOFFS)
def test_padding_changes_nothing(metric, cutoff: int | None) -> None:
    rankings, labels, mask = examples()
    padded_rankings = torch.cat([rankings, torch.arange(7, 10).expand(2, 6, 3)], -1)
    padded_labels = torch.nn.functional.pad(labels, (0, 3), value=4.0)
    padded_mask = torch.nn.functional.pad(mask, (0, 3))
    torch.testing.assert_close(
        metric(padded_rankings, padded_labels, padded_mask, cutoff=cutoff),
        metric(rankings, labels, mask, cutoff=cutoff),
    )


@pytest.mark.parametrize("cutoff", CUTOFFS)
def test_a_batch_is_its_queries_and_samples_one_by_one(metric, cutoff: int | None) -> None:
    rankings, labels, mask = examples()
    together = metric(rankings, labels, mask, cutoff=cutoff)
    assert together.shape == (2, 6)
    for sample in range(2):
        for query in range(6):
            n = int(mask[query].sum())
            alone = metric(
                rankings[sample, query : query + 1, :n], labels[query, None, :n], mask[query, None, :n], cutoff=cutoff
            )
            torch.testing.assert_close(alone, together[sample, query : query + 1])


@pytest.mark.parametrize("cutoff", CUTOFFS)
def test_names_of_items_do_not_matter(metric, cutoff: int | None) -> None:
    rankings, labels, mask = examples()
    new_name = torch.randperm(7, generator=torch.Generator().manual_seed(5))
    old_name = torch.argsort(new_name)
    torch.testing.assert_close(
        metric(new_name[rankings], labels[:, old_name], mask[:, old_name], cutoff=cutoff),
        metric(rankings, labels, mask, cutoff=cutoff),
    )


def test_a_prefix_counts_like_a_cutoff_there(metric) -> None:
    rankings, labels, mask = examples()
    torch.testing.assert_close(
        metric(rankings[..., :3], labels, mask, cutoff=3), metric(rankings, labels, mask, cutoff=3)
    )


@pytest.mark.parametrize("empty", [0, 1, "skip"])
@pytest.mark.parametrize("name", METRICS)
def test_empty_queries_follow_the_convention(name: str, empty: object) -> None:
    rankings, labels, mask = examples()
    values = METRICS[name](rankings, torch.zeros_like(labels), mask, conventions=Conventions(empty=empty))
    if empty == "skip":
        assert values.isnan().all()
    else:
        assert (values == (0 if name in ZERO_BY_NATURE else empty)).all()


@pytest.mark.parametrize("cutoff", CUTOFFS)
@pytest.mark.parametrize("gain", ["exp2", "linear"])
def test_values_are_finite_and_labels_set_the_dtype(metric, gain: str, cutoff: int | None) -> None:
    rankings, labels, mask = examples()
    for given, dtype in ((labels, torch.float64), (labels.float(), torch.float32), (labels.long(), torch.float32)):
        values = metric(rankings, given, mask, cutoff=cutoff, conventions=Conventions(gain=gain))
        assert values.isfinite().all()
        assert values.dtype == dtype


@pytest.mark.parametrize("cutoff", CUTOFFS)
@pytest.mark.parametrize("name", WITHIN_ONE)
def test_values_lie_between_zero_and_one(name: str, cutoff: int | None) -> None:
    values = METRICS[name](*examples(), cutoff=cutoff)
    assert ((values >= 0) & (values <= 1 + 1e-12)).all()


@pytest.mark.parametrize("name", METRICS)
def test_the_order_of_labels_is_best(name: str) -> None:
    rankings, labels, mask = examples()
    best = torch.argsort(labels.masked_fill(~mask, -1), -1, descending=True)
    gap = METRICS[name](best, labels, mask) - METRICS[name](rankings, labels, mask)
    assert ((-gap if name == "avg_rank" else gap) >= -1e-12).all()
