"""Every metric against its definition written out with loops, on short lists."""

import inspect
import math
from itertools import pairwise, permutations

import pytest
import torch

from rankpolicy import RankPolicyError
from rankpolicy.fairness import (
    FAIRNESS_METRICS,
    awrf,
    disparate_treatment,
    ee_d,
    ee_l,
    ee_r,
    exposure_difference,
    exposure_ratio,
    max_skew,
    measure_fairness,
    min_skew,
    ndkl,
    position_bias,
    rkl,
    rnd,
    skew,
    target_exposure,
)
from tests.enumeration import all_rankings

GROUPS = torch.tensor([[0, 1, 0, 1, 0]])
LABELS = torch.tensor([[2.0, 0.0, 1.0, 1.0, 0.0]])
MASK = torch.ones(1, 5, dtype=torch.bool)
EXPOSURE = torch.tensor([[0.9, 0.4, 0.6, 0.7, 0.3]])
BIAS = position_bias(5)


def in_bits(p, q):
    return sum(a * math.log2(a / b) for a, b in zip(p, q, strict=True) if a > 0)


def test_exposure_of_groups():
    first, second = (0.9 + 0.6 + 0.3) / 3, (0.4 + 0.7) / 2
    assert exposure_difference(EXPOSURE, GROUPS, MASK).item() == pytest.approx(first - second)
    assert exposure_ratio(EXPOSURE, GROUPS, MASK).item() == pytest.approx(second / first)
    per_merit = first / 1.0, second / 0.5
    expected = min(per_merit) / max(per_merit)
    assert disparate_treatment(EXPOSURE, LABELS, GROUPS, MASK).item() == pytest.approx(expected)


def test_target_exposure_is_the_mean_over_best_rankings():
    best = [
        ranking for ranking in permutations(range(5)) if all(LABELS[0, a] >= LABELS[0, b] for a, b in pairwise(ranking))
    ]
    assert len(best) == 4
    expected = [sum(BIAS[ranking.index(item)].item() for ranking in best) / len(best) for item in range(5)]
    assert target_exposure(LABELS, MASK, BIAS)[0].tolist() == pytest.approx(expected)
    cut = [sum((BIAS[0].item() if ranking.index(item) < 1 else 0.0) for ranking in best) / 4 for item in range(5)]
    assert target_exposure(LABELS, MASK, BIAS[:1])[0].tolist() == pytest.approx(cut)


def test_expected_exposure():
    target = target_exposure(LABELS, MASK, BIAS)[0].tolist()
    shown = EXPOSURE[0].tolist()
    assert ee_d(EXPOSURE, MASK).item() == pytest.approx(sum(e * e for e in shown))
    relevance = sum(e * t for e, t in zip(shown, target, strict=True))
    assert ee_r(EXPOSURE, LABELS, MASK, bias=BIAS).item() == pytest.approx(relevance)
    loss = sum((e - t) ** 2 for e, t in zip(shown, target, strict=True))
    assert ee_l(EXPOSURE, LABELS, MASK, bias=BIAS).item() == pytest.approx(loss)
    assert ee_l(target_exposure(LABELS, MASK, BIAS), LABELS, MASK, bias=BIAS).item() == 0


@pytest.mark.parametrize("target", [None, (0.5, 0.5), (1.0, 0.0)])
def test_awrf(target):
    total = EXPOSURE.sum().item()
    attention = (0.9 + 0.6 + 0.3) / total, (0.4 + 0.7) / total
    wanted = target or (3 / 5, 2 / 5)
    middle = [(a + t) / 2 for a, t in zip(attention, wanted, strict=True)]
    expected = 1 - (in_bits(attention, middle) + in_bits(wanted, middle)) / 2
    shares = None if target is None else torch.tensor(target)
    assert awrf(EXPOSURE, GROUPS, MASK, target=shares).item() == pytest.approx(expected, abs=1e-6)
    with pytest.raises(RankPolicyError, match="summing to 1"):
        awrf(EXPOSURE, GROUPS, MASK, target=torch.tensor([0.5, 0.6]))


@pytest.mark.parametrize("cutoff", [1, 2, 3, 5])
def test_skew_and_ndkl_of_all_rankings(cutoff):
    rankings = all_rankings(5)
    shares = 3 / 5, 2 / 5
    skews = skew(rankings, GROUPS, MASK, cutoff=cutoff)[:, 0]
    divergences = ndkl(rankings, GROUPS, MASK, cutoff=cutoff)[:, 0]
    for ranking, ours, divergence in zip(rankings[:, 0].tolist(), skews.tolist(), divergences.tolist(), strict=True):
        placed = [GROUPS[0, item].item() for item in ranking[:cutoff]]
        prefixes = [[placed[:p].count(g) / p for g in (0, 1)] for p in range(1, cutoff + 1)]
        expected = [math.log(s / t) if s else -math.inf for s, t in zip(prefixes[-1], shares, strict=True)]
        assert ours == pytest.approx(expected, abs=1e-6)
        weights = [1 / math.log2(1 + p) for p in range(1, cutoff + 1)]
        terms = [w * in_bits(prefix, shares) * math.log(2) for w, prefix in zip(weights, prefixes, strict=True)]
        assert divergence == pytest.approx(sum(terms) / sum(weights), abs=1e-6)
    assert torch.equal(min_skew(rankings, GROUPS, MASK, cutoff=cutoff)[:, 0], skews.amin(-1))
    assert torch.equal(max_skew(rankings, GROUPS, MASK, cutoff=cutoff)[:, 0], skews.amax(-1))


def test_prior_items_keep_skew_finite():
    skews = skew(torch.tensor([[0, 2, 4, 1, 3]]), GROUPS, MASK, cutoff=3, prior_items=1.0)
    assert skews.exp()[0].tolist() == pytest.approx([(3 + 0.6) / 4 / 0.6, (0 + 0.4) / 4 / 0.4])


@pytest.mark.parametrize(
    ("metric", "term"), [(rnd, lambda s, t: abs(s - t)), (rkl, lambda s, t: in_bits((s, 1 - s), (t, 1 - t)))]
)
@pytest.mark.parametrize("cutoff", [None, 4])
@pytest.mark.parametrize("members", [1, 2, 3, 5])
def test_rnd_and_rkl_of_all_rankings(members, cutoff, metric, term):
    num_items, step = 6, 2
    groups = (torch.arange(num_items) < members).long()[None]
    rankings = all_rankings(num_items)
    sums = []
    for ranking in rankings[:, 0].tolist():
        ends = range(step, (cutoff or num_items) + 1, step)
        shares = [sum(item < members for item in ranking[:end]) / end for end in ends]
        sums.append(sum(term(s, members / num_items) / math.log2(end) for s, end in zip(shares, ends, strict=True)))
    values = metric(rankings, groups, torch.ones(1, num_items, dtype=torch.bool), step=step, cutoff=cutoff)[:, 0]
    assert values.tolist() == pytest.approx([value / max(sums) for value in sums], abs=1e-6)


def test_rnd_needs_a_prefix_to_look_at():
    with pytest.raises(RankPolicyError, match="step must be 2 or more"):
        rnd(torch.arange(5)[None], GROUPS, MASK, step=1)
    assert rnd(torch.arange(5)[None], GROUPS, MASK, step=10).isnan().all()
    assert rnd(torch.arange(5)[None], 1 + 0 * GROUPS, MASK, step=2).isnan().all()


def test_padding_changes_nothing():
    mask = torch.cat([MASK, torch.zeros(1, 2, dtype=torch.bool)], 1)
    padded = {"exposure": EXPOSURE, "labels": LABELS, "merit": LABELS, "groups": GROUPS}
    wide = {name: torch.cat([values, 1 + 0 * values[:, :2]], 1) for name, values in padded.items()}
    ranking = torch.tensor([[3, 0, 1, 4, 2]])
    short = measure_fairness(list(FAIRNESS_METRICS), mask=MASK, bias=BIAS, rankings=ranking, **padded)
    longer = torch.cat([ranking, torch.tensor([[5, 6]])], 1)
    long = measure_fairness(list(FAIRNESS_METRICS), mask=mask, bias=position_bias(7), rankings=longer, **wide)
    for name, values in short.items():
        torch.testing.assert_close(long[name], values, equal_nan=True, msg=name)


def test_one_group_only_has_no_parity():
    one = torch.zeros_like(GROUPS)
    for metric in (exposure_difference, exposure_ratio):
        assert metric(EXPOSURE, one, MASK).isnan().all()
    assert disparate_treatment(EXPOSURE, 0 * LABELS, GROUPS, MASK).isnan().all()
    assert exposure_ratio(0 * EXPOSURE, GROUPS, MASK).tolist() == [1]


def test_errors_name_what_is_missing():
    with pytest.raises(RankPolicyError, match="Did you mean 'ndkl'"):
        measure_fairness(["ndlk"], mask=MASK)
    with pytest.raises(RankPolicyError, match="ndkl needs rankings, groups, mask; got mask, groups"):
        measure_fairness(["ndkl"], mask=MASK, groups=GROUPS)


@pytest.mark.parametrize("name", FAIRNESS_METRICS)
def test_members_name_their_source_and_arrays(name):
    function = FAIRNESS_METRICS[name]
    assert function.__name__ == name
    assert ">>>" in function.__doc__
    needed = [p.name for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    assert set(needed) <= {"exposure", "rankings", "labels", "merit", "groups", "mask", "bias"}
