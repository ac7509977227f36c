"""What every metric must do and declare, over the table that lists them (kernels: tests/evaluation/test_metric_kernels.py)."""

import inspect
import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

import rankpolicy.metrics
from rankpolicy.data.arrays import from_arrays
from rankpolicy.evaluation import evaluate
from rankpolicy.kernels import codes
from rankpolicy.metrics import METRICS, all_items, metric_named, parse_metric, ranks_of
from rankpolicy.metrics.ranked import judged_items
from rankpolicy.types import Conventions, RankPolicyError
from tests.undocumented import undocumented

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
    assert ((-gap if METRICS[name].lower_is_better else gap) >= -1e-12).all()


@pytest.mark.parametrize("name", METRICS)
def test_the_declared_direction_is_that_of_the_values(name: str) -> None:
    labels, mask = torch.tensor([[3.0, 0.0, 0.0]]), all_items(1, 3)
    first, last = (METRICS[name](torch.tensor([order]), labels, mask, cutoff=2) for order in ([0, 1, 2], [1, 2, 0]))
    assert (last > first).item() if METRICS[name].lower_is_better else (first > last).item()


def test_names_and_codes_are_told_once() -> None:
    names = [name for metric in METRICS.values() for name in (metric.name, *metric.aliases)]
    assert len(names) == len(set(names))
    assert [metric.name for metric in METRICS.values()] == list(METRICS)
    assert all(metric_named(alias) is metric for metric in METRICS.values() for alias in metric.aliases)
    declared = [metric.kernel_code for metric in METRICS.values() if metric.kernel_code is not None]
    assert sorted(declared) == sorted(codes.METRIC_CODES)


@pytest.mark.parametrize("name", METRICS)
def test_the_function_is_public_and_documented(name: str) -> None:
    function = getattr(rankpolicy.metrics, name)
    assert function is METRICS[name].function
    assert name in rankpolicy.metrics.__all__
    assert list(undocumented(function, name)) == []


def every_ranking() -> tuple[Tensor, Tensor, Tensor]:
    """All rankings of four items, for queries with several grades, one relevant item and none, and one with a padded item."""
    labels = torch.tensor([[2.0, 0.0, 1.0, 3.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [1.0, 3.0, 2.0, 4.0]])
    mask = torch.tensor([[True] * 4, [True] * 4, [True] * 4, [True, True, True, False]])
    rankings = torch.tensor(list(itertools.permutations(range(4))))[:, None].expand(-1, 4, -1)
    # Padded items come last in every ranking.
    return torch.argsort(torch.where(mask, ranks_of(rankings), 99), -1), labels.double(), mask


@pytest.mark.parametrize("gain", ["exp2", "linear"])
@pytest.mark.parametrize("cutoff", CUTOFFS)
@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.additive is not None])
def test_the_additive_form_is_the_metric(name: str, cutoff: int | None, gain: str) -> None:
    rankings, labels, mask = every_ranking()
    conventions = Conventions(gain=gain)
    form = METRICS[name].additive(judged_items(labels, mask), cutoff=cutoff, conventions=conventions)
    values = (form.rank_weights * form.item_values.expand(rankings.shape).gather(-1, rankings)).sum(-1)
    torch.testing.assert_close(values, METRICS[name](rankings, labels, mask, cutoff=cutoff, conventions=conventions))


@pytest.mark.parametrize("cutoff", CUTOFFS)
@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.has_cascade])
def test_the_cascade_form_is_the_metric_and_swaps_change_it_as_it_says(name: str, cutoff: int | None) -> None:
    rankings, labels, mask = every_ranking()
    form = METRICS[name].cascade_form(judged_items(labels, mask), cutoff=cutoff, conventions=Conventions(), options={})
    placed, keep, add = (part.expand(rankings.shape).gather(-1, rankings) for part in form[1:4])
    factor, factors = torch.ones(rankings.shape[:-1], dtype=torch.float64), []
    for k in range(4):
        factors.append(factor)
        factor = keep[..., k] * factor + add[..., k]
    values = form.constant + (form.rank_weights * placed * torch.stack(factors, -1)).sum(-1)
    expected = METRICS[name](rankings, labels, mask, cutoff=cutoff)
    torch.testing.assert_close(values, expected)
    for k in range(3):
        swapped = rankings.clone()
        swapped[..., [k, k + 1]] = rankings[..., [k + 1, k]]
        gap = expected - METRICS[name](swapped, labels, mask, cutoff=cutoff)
        slope = form.rank_weights[k] - form.rank_weights[k + 1]
        both_real = mask.expand(rankings.shape).gather(-1, rankings)[..., k + 1]
        said = slope * factors[k] * (placed[..., k] - placed[..., k + 1])
        torch.testing.assert_close(said[both_real], gap[both_real])


@pytest.mark.parametrize("name", METRICS)
def test_what_is_read_from_labels_is_what_is_declared(name: str) -> None:
    metric = METRICS[name]
    rankings, labels, mask = every_ranking()
    values = metric(rankings, labels, mask)
    same_relevance = torch.where(labels >= 1, labels.clamp(max=1) + 2, labels / 2)
    if metric.reads == "relevance":
        torch.testing.assert_close(metric(rankings, same_relevance, mask), values)
    else:
        assert not torch.allclose(metric(rankings, same_relevance, mask), values)
    if metric.reads == "gains":
        assert metric(rankings, 1000 * labels, mask, conventions=Conventions(gain="linear")).isfinite().all()


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.reads == "gains"])
def test_gains_out_of_range_are_refused_where_rankings_are_measured(name: str) -> None:
    dataset = from_arrays(np.zeros((2, 1)), [0, 1024], group=[2])
    for refuse in (
        lambda: parse_metric(name).check_labels(dataset.labels),
        lambda: evaluate([1.0, 2.0], dataset, name),
    ):
        with pytest.raises(RankPolicyError, match="labels must be at most 1000; the highest is 1024"):
            refuse()


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.reads == "grades"])
def test_labels_that_cannot_be_read_are_refused_everywhere(name: str) -> None:
    dataset = from_arrays(np.zeros((2, 1)), [0, 9], group=[2])
    labels, mask = torch.tensor([[0.0, 9.0]], dtype=torch.float64), all_items(1, 2)
    reward = parse_metric(f"ndcg + 0.5*{name}")
    message = f"{name} needs labels"
    for refuse in (
        lambda: METRICS[name](torch.tensor([[0, 1]]), labels, mask),
        lambda: reward.check_labels(labels),
        lambda: reward.check_labels(dataset.labels),
        lambda: evaluate([1.0, 2.0], dataset, [reward]),
        lambda: METRICS[name].cascade_form(
            judged_items(labels, mask), cutoff=None, conventions=Conventions(), options={}
        ),
    ):
        with pytest.raises(RankPolicyError, match=message):
            refuse()


OPTIONS = [(name, option) for name, metric in METRICS.items() for option in metric.options]


@pytest.mark.parametrize(("name", "option"), OPTIONS)
def test_an_option_out_of_its_range_is_refused(name: str, option: str) -> None:
    declared = METRICS[name].options[option]
    assert declared.help
    bounds = (declared.at_least, declared.above, declared.at_most, declared.below)
    wrong = [shifted for bound in bounds if bound is not None for shifted in (bound, bound - 1, bound + 1)]
    wrong = [value for value in wrong if not declared.allows(value)]
    assert wrong, "an option has a range"
    for value in wrong:
        with pytest.raises(RankPolicyError, match=f"{option} must be {declared.range_in_words()}; got"):
            METRICS[name].function(*examples(), **{option: value})
        if value >= 0:
            with pytest.raises(RankPolicyError, match=f"{option} must be {declared.range_in_words()}; got"):
                parse_metric(f"{name}({option}={value})")


@pytest.mark.parametrize(("name", "option"), OPTIONS)
def test_an_option_has_its_default_in_every_form(name: str, option: str) -> None:
    metric = METRICS[name]
    default = inspect.signature(metric.function).parameters[option].default
    assert metric.options[option].allows(default)
    for form in (metric.additive, metric.cascade):
        assert form is None or inspect.signature(form).parameters[option].default == default


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(RankPolicyError, match=r"Unknown option of rbp: 'persistance'. Did you mean 'persistence'"):
        METRICS["rbp"].check_option("persistance", 0.5)
