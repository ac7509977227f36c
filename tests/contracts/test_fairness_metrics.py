"""What every fairness metric and both disparities must do, over the table that lists the metrics."""

import numpy as np
import pytest
import torch
from torch.nn.functional import pad

from rankpolicy.fairness import (
    FAIRNESS_METRICS,
    group_disparity,
    individual_disparity,
    measure_fairness,
    merit_of,
    position_bias,
)
from rankpolicy.policies import PlackettLuce
from rankpolicy.types import RankPolicyError

NUM_ITEMS = 24
# What a metric gives when all items have the same label and the same exposure.
FAIR_EXPOSURE = {
    "awrf": 1.0,
    "disparate_treatment": 1.0,
    "ee_l": 0.0,
    "exposure_difference": 0.0,
    "exposure_ratio": 1.0,
}
OF_RANKINGS = {"max_skew", "min_skew", "ndkl", "rkl", "rnd"}


def examples(num_queries=3):
    generator = torch.Generator().manual_seed(8)
    shape = (num_queries, NUM_ITEMS)
    scores = torch.randn(shape, generator=generator, dtype=torch.float64)
    mask = torch.arange(NUM_ITEMS) < torch.tensor([24, 22, 20])[:num_queries, None]
    labels = 1 + torch.randint(0, 3, shape, generator=generator).double()
    groups = (torch.arange(NUM_ITEMS) % 3 == 0).long().repeat(num_queries, 1)
    policy = PlackettLuce(scores, mask)
    return {
        "exposure": policy.exposure(),
        "rankings": policy.mode(),
        "labels": labels,
        "merit": merit_of(labels, "exp2"),
        "groups": groups,
        "mask": mask,
        "bias": position_bias(NUM_ITEMS, dtype=torch.float64),
    }


def measure(name, given):
    return measure_fairness([name], **given)[name]


def disparities(given):
    exposure, merit, groups, mask = (given[each] for each in ("exposure", "merit", "groups", "mask"))
    forms = [group_disparity(exposure, merit, groups, mask, form=form) for form in ("means", "cross_multiplied")]
    return [individual_disparity(exposure, merit, mask), *forms]


@pytest.fixture(params=FAIRNESS_METRICS)
def name(request):
    return request.param


def test_there_is_one_value_per_query(name):
    values = measure(name, examples())
    assert values.shape == (3,)
    assert torch.isfinite(values).all()


def test_a_batch_is_its_queries_one_by_one(name):
    given = examples()
    together = measure(name, given)
    for query in range(3):
        alone = {key: array if key == "bias" else array[query : query + 1] for key, array in given.items()}
        torch.testing.assert_close(measure(name, alone), together[query : query + 1])


def test_padding_changes_nothing(name):
    given = examples()
    wide = {key: pad(given[key], (0, 3), value=1) for key in ("exposure", "labels", "merit", "groups")}
    wide["mask"] = pad(given["mask"], (0, 3))
    wide["rankings"] = torch.cat([given["rankings"], torch.arange(NUM_ITEMS, NUM_ITEMS + 3).expand(3, 3)], -1)
    wide["bias"] = position_bias(NUM_ITEMS + 3, dtype=torch.float64)
    torch.testing.assert_close(measure(name, wide), measure(name, given))


def test_names_of_items_do_not_matter(name):
    given = examples()
    new_name = torch.randperm(NUM_ITEMS, generator=torch.Generator().manual_seed(5))
    old_name = torch.argsort(new_name)
    renamed = {key: given[key][:, old_name] for key in ("exposure", "labels", "merit", "groups", "mask")}
    renamed |= {"rankings": new_name[given["rankings"]], "bias": given["bias"]}
    torch.testing.assert_close(measure(name, renamed), measure(name, given))


def test_names_of_two_groups_do_not_matter(name):
    given = examples()
    torch.testing.assert_close(measure(name, given | {"groups": 1 - given["groups"]}), measure(name, given))


@pytest.mark.parametrize("name", FAIR_EXPOSURE)
def test_equal_exposure_of_equal_items_is_fair(name):
    given = examples()
    scores = torch.zeros(3, NUM_ITEMS, dtype=torch.float64)
    uniform = {
        "exposure": PlackettLuce(scores, given["mask"]).exposure(),
        "labels": 0 * scores + 2,
        "merit": 0 * scores + 2,
    }
    torch.testing.assert_close(measure(name, given | uniform), torch.full((3,), FAIR_EXPOSURE[name]).double())


@pytest.mark.parametrize("name", sorted(OF_RANKINGS))
def test_alternating_groups_are_fairer_than_one_group_first(name):
    groups = (torch.arange(NUM_ITEMS) % 2)[None]
    mask = torch.ones(1, NUM_ITEMS, dtype=torch.bool)
    alternating = torch.arange(NUM_ITEMS)[None]
    one_first = torch.argsort(groups, stable=True)
    options = {"cutoff": 12} if name.endswith("skew") else {}
    fair, unfair = (FAIRNESS_METRICS[name](each, groups, mask, **options).item() for each in (alternating, one_first))
    assert abs(fair) < abs(unfair)


def test_a_uniform_policy_has_no_disparity_whatever_the_merits():
    given = examples()
    uniform = PlackettLuce(torch.zeros(3, NUM_ITEMS, dtype=torch.float64), given["mask"]).exposure()
    for disparity in disparities(given | {"exposure": uniform}):
        torch.testing.assert_close(disparity.values, torch.zeros(3).double(), atol=1e-9, rtol=0)


def test_disparities_follow_their_definition():
    given = examples()
    individual, means, cross = disparities(given)
    for query in range(3):
        n = int(given["mask"][query].sum())
        e, m, g = (given[each][query, :n].tolist() for each in ("exposure", "merit", "groups"))
        pairs = [(i, j) for i in range(n) for j in range(n) if i != j and m[i] >= m[j] > 0]
        expected = sum(max(0.0, e[i] / m[i] - e[j] / m[j]) for i, j in pairs) / len(pairs)
        assert individual.values[query].item() == pytest.approx(expected)
        E, M = ([sum(x[i] for i in range(n) if g[i] == k) / g.count(k) for k in (0, 1)] for x in (e, m))
        a, b = (0, 1) if M[0] >= M[1] else (1, 0)
        assert means.values[query].item() == pytest.approx(max(0.0, E[a] / M[a] - E[b] / M[b]))
        assert cross.values[query].item() == pytest.approx(max(0.0, M[b] * E[a] - M[a] * E[b]))


def test_disparities_do_not_depend_on_the_names_of_groups_and_items():
    given = examples()
    order = torch.randperm(NUM_ITEMS, generator=torch.Generator().manual_seed(6))
    renamed = {key: given[key][:, order] for key in ("exposure", "merit", "mask")} | {
        "groups": 1 - given["groups"][:, order]
    }
    for first, second in zip(disparities(given), disparities(renamed), strict=True):
        torch.testing.assert_close(second.values, first.values)
        torch.testing.assert_close(second.gradient, first.gradient[:, order])


def test_the_gradient_of_a_disparity_is_that_of_finite_differences():
    given, step = examples(), 1e-6
    for index, disparity in enumerate(disparities(given)):
        for item in (0, 5, 19):
            moved = given["exposure"].clone()
            moved[:, item] += step
            slope = (disparities(given | {"exposure": moved})[index].values - disparity.values) / step
            torch.testing.assert_close(slope, disparity.gradient[:, item], atol=1e-5, rtol=1e-4)


def test_unknown_names_are_refused():
    with pytest.raises(RankPolicyError, match=r"Unknown fairness metric 'awfr'\. Did you mean 'awrf'"):
        measure("awfr", examples())


def arrays(given):
    return {key: tensor.numpy() for key, tensor in given.items()}


def test_arrays_give_the_numbers_of_tensors(name):
    given = examples()
    got = measure(name, arrays(given))
    assert isinstance(got, np.ndarray)
    # Shares of groups in single rankings are counted in float32 tensors.
    np.testing.assert_allclose(got, measure(name, given).numpy(), rtol=1e-5 if name in OF_RANKINGS else 1e-12)


def test_disparities_of_arrays_are_those_of_tensors():
    given = examples()
    for of_arrays, of_tensors in zip(disparities(arrays(given)), disparities(given), strict=True):
        assert of_arrays.left_out == of_tensors.left_out
        assert of_arrays.mean == pytest.approx(of_tensors.mean, rel=1e-12)
        for field in ("values", "gradient", "is_counted"):
            got = getattr(of_arrays, field)
            assert isinstance(got, np.ndarray)
            np.testing.assert_allclose(got, getattr(of_tensors, field).numpy(), rtol=1e-12, atol=1e-14)


def test_one_tensor_among_arrays_makes_all_tensors(name):
    given, needed = examples(), arrays(examples())
    mixed = needed | {key: given[key] for key in ("exposure", "rankings")}
    torch.testing.assert_close(measure(name, mixed), measure(name, given))
