"""What every policy must do, over all of them."""

import dataclasses
import inspect
from itertools import permutations

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch.nn.functional import pad

from rankpolicy import policies
from rankpolicy.metrics import rank_by_score
from rankpolicy.policies import Affinity, Mixture, PlackettLuce, RandomSwaps, TopShuffle
from rankpolicy.types import RankingPolicy, RankPolicyError

SCORES = torch.tensor([[1.0, -0.5, 0.3, 0.0], [0.2, 2.0, -1.0, 0.4]], dtype=torch.float64)
MASK = torch.tensor([[True, True, True, True], [True, True, False, True]])
WEIGHTS = torch.tensor([1.0, 0.5, 0.25, 0.1], dtype=torch.float64)


def mixture_of_three(scores, mask):
    rankings = torch.stack([rank_by_score(keys, mask) for keys in (scores, -scores, scores.cos())])
    shares = torch.tensor([0.5, 0.3, 0.2], dtype=scores.dtype)
    return Mixture(rankings, shares[:, None].expand(-1, len(scores)), mask)


def arrays_of(policy):
    """The same policy over numpy arrays."""
    held = {field.name: getattr(policy, field.name) for field in dataclasses.fields(policy)}
    return type(policy)(
        **{name: value.numpy() if isinstance(value, torch.Tensor) else value for name, value in held.items()}
    )


POLICIES = {
    "plackett-luce": PlackettLuce,
    "affinity": lambda scores, mask: Affinity(scores, mask, epsilon=0.3),
    "affinity without chance": lambda scores, mask: Affinity(scores, mask, epsilon=0.0),
    "affinity by chance": lambda scores, mask: Affinity(scores, mask, epsilon=1.0),
    "affinity of two positions": lambda scores, mask: Affinity(scores, mask, epsilon=0.3, max_positions=2),
    "affinity of two positions without chance": lambda scores, mask: Affinity(scores, mask, 0.0, max_positions=2),
    "mixture": mixture_of_three,
    "top shuffle": lambda scores, mask: TopShuffle(scores, mask, depth=3),
    "whole shuffle": TopShuffle,
    "swaps": RandomSwaps,
    "swaps of the first": lambda scores, mask: RandomSwaps(scores, mask, depth=3, pairs="first"),
    "swaps of neighbours": lambda scores, mask: RandomSwaps(scores, mask, pairs="adjacent"),
}
IS_SAMPLED = {"affinity", "affinity of two positions"}  # exposures that are estimated from lists


@pytest.fixture(params=POLICIES)
def name(request):
    return request.param


def all_lists(policy, query):
    """All lists (list, position) of the policy's length that one query can have, padded items last."""
    depth = policy.sample(1).shape[-1]
    items = policy.mask[query].nonzero().squeeze(-1).tolist()
    padding = (~policy.mask[query]).nonzero().squeeze(-1).tolist()
    lists = {(*order, *padding)[:depth] for order in permutations(items)}
    return torch.tensor(sorted(lists))


def of_query(policy_of, query):
    return policy_of(SCORES[query : query + 1], MASK[query : query + 1])


def test_every_policy_is_here():
    made = {type(policy_of(SCORES, MASK)) for policy_of in POLICIES.values()}
    assert made == {getattr(policies, name) for name in policies.__all__}


def test_has_the_face_of_a_policy(name):
    policy = POLICIES[name](SCORES, MASK)
    assert isinstance(policy, RankingPolicy)
    for method in ("sample", "log_prob", "mode", "exposure"):
        asked = inspect.signature(getattr(RankingPolicy, method)).parameters
        given = inspect.signature(getattr(type(policy), method)).parameters
        assert list(given)[: len(asked)] == list(asked)
        assert all(given[each].default == asked[each].default for each in asked)
        assert all(given[each].kind == inspect.Parameter.KEYWORD_ONLY for each in list(given)[len(asked) :])


@pytest.mark.parametrize("query", [0, 1])
def test_probabilities_sum_to_one(name, query):
    policy = of_query(POLICIES[name], query)
    total = policy.log_prob(all_lists(policy, 0)[:, None]).exp().sum()
    assert total.item() == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("query", [0, 1])
def test_samples_have_the_stated_frequencies(name, query):
    policy, num_samples = of_query(POLICIES[name], query), 8000
    lists = all_lists(policy, 0)
    drawn = policy.sample(num_samples, generator=torch.Generator().manual_seed(3))[:, 0]
    observed = (drawn[:, None] == lists).all(-1).sum(0)
    expected = num_samples * policy.log_prob(lists[:, None])[:, 0].exp()
    assert observed.sum() == num_samples
    occurs = expected > 0
    assert (observed[~occurs] == 0).all()
    assert chisquare(observed[occurs].numpy(), expected[occurs].numpy()).pvalue > 1e-3


@pytest.mark.parametrize("cutoff", [None, 1, 2])
@pytest.mark.parametrize("rank_weights", [None, WEIGHTS, WEIGHTS[:2], torch.tensor([0.0, -1.0, 2.0]).double()])
@pytest.mark.parametrize("query", [0, 1])
def test_exposure_is_that_of_all_lists(name, query, rank_weights, cutoff):
    policy = of_query(POLICIES[name], query)
    lists = all_lists(policy, 0)
    weights = 1 / torch.arange(2, 6).double().log2() if rank_weights is None else pad(rank_weights, (0, 4))[:4]
    weights = weights * (torch.arange(4) < (cutoff or 4))
    of_lists = torch.zeros(len(lists), 4, dtype=torch.float64).scatter(
        -1, lists, weights[: lists.shape[-1]].expand(lists.shape)
    )
    expected = (policy.log_prob(lists[:, None]).exp() * of_lists).sum(0) * MASK[query]
    if name not in IS_SAMPLED:
        found = policy.exposure(rank_weights, cutoff=cutoff)
        torch.testing.assert_close(found[0], expected, atol=1e-6, rtol=0)
        return
    generators = (torch.Generator().manual_seed(seed) for seed in range(16))
    runs = torch.cat(
        [policy.exposure(rank_weights, cutoff=cutoff, num_samples=100, generator=each) for each in generators]
    )
    assert ((runs.mean(0) - expected).abs() <= 4 * runs.std(0) / 4 + 1e-9).all()
    torch.testing.assert_close(policy.exposure(rank_weights, cutoff=cutoff)[0], expected, atol=0.05, rtol=0)
    torch.testing.assert_close(runs.sum(-1), expected.sum().expand(16))


def test_the_mode_is_the_most_probable_list(name):
    policy = POLICIES[name](SCORES, MASK)
    depth = policy.sample(1).shape[-1]
    for query in range(2):
        alone = of_query(POLICIES[name], query)
        best = alone.log_prob(all_lists(alone, 0)[:, None]).max()
        assert policy.log_prob(policy.mode()[:, :depth])[query].item() == pytest.approx(best.item(), abs=1e-9)


def test_padding_and_batch_change_nothing(name):
    wide = POLICIES[name](pad(SCORES, (0, 3), value=50.0), pad(MASK, (0, 3)))
    together = POLICIES[name](SCORES, MASK)
    tolerance = {"atol": 0.03, "rtol": 0.0} if name in IS_SAMPLED else {}
    rankings = together.mode()
    wide_rankings = torch.cat([rankings, torch.arange(4, 7).expand(2, 3)], -1)
    assert torch.equal(wide.mode()[0, :4], rankings[0])
    assert torch.equal(wide.mode()[1, :3], rankings[1, :3])
    torch.testing.assert_close(wide.log_prob(wide_rankings), together.log_prob(rankings))
    torch.testing.assert_close(wide.exposure()[:, :4], together.exposure(), **tolerance)
    assert (wide.exposure()[:, 4:] == 0).all()
    for query in range(2):
        alone = of_query(POLICIES[name], query)
        torch.testing.assert_close(alone.log_prob(rankings[query : query + 1])[0], together.log_prob(rankings)[query])
        torch.testing.assert_close(alone.exposure()[0], together.exposure()[query], **tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1e4, -1e4])
def test_extreme_scores_stay_finite(name, scale, dtype):
    scores = (SCORES.sign() + torch.tensor([0.0, 0.1, 0.2, 0.3])).to(dtype) * scale
    policy = POLICIES[name](scores, MASK)
    drawn = policy.sample(20, generator=torch.Generator().manual_seed(0))
    assert torch.isfinite(policy.log_prob(drawn)).all()
    exposure = policy.exposure()
    assert torch.isfinite(exposure).all()
    assert exposure.dtype == dtype
    assert (policy.mode().sort(-1).values == torch.arange(4)).all()


def test_the_same_seed_draws_the_same_and_torchs_own_generator_rests(name):
    policy, before = POLICIES[name](SCORES, MASK), torch.get_rng_state()
    first, second = (policy.sample(30, generator=torch.Generator().manual_seed(7)) for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(policy.exposure(), policy.exposure())
    assert torch.equal(torch.get_rng_state(), before)


def test_wrong_rank_weights_are_named(name):
    with pytest.raises(RankPolicyError, match=r"rank_weights must be a vector \(position,\)"):
        POLICIES[name](SCORES, MASK).exposure(WEIGHTS[None])


@pytest.mark.parametrize("cutoff", [None, 2])
def test_arrays_give_the_numbers_of_tensors(name, cutoff):
    policy = POLICIES[name](SCORES, MASK)
    of_arrays, rankings = arrays_of(policy), policy.sample(7, generator=torch.Generator().manual_seed(1))
    for method, argument in (
        ("log_prob", rankings),
        ("propensities", rankings),
        ("exposure", WEIGHTS[:3]),
        ("exposure", None),
        ("mode", ...),
    ):
        if (method == "exposure" and name in IS_SAMPLED) or not hasattr(policy, method):
            continue
        arguments, options = (argument,) if argument is not ... else (), {}
        if method in ("log_prob", "exposure"):
            options["cutoff"] = cutoff
        expected = getattr(policy, method)(*arguments, **options)
        got = getattr(of_arrays, method)(*(x.numpy() if x is not None else x for x in arguments), **options)
        assert isinstance(got, np.ndarray)
        np.testing.assert_allclose(got, expected.numpy(), rtol=1e-12, atol=1e-12)
        assert got.dtype == expected.numpy().dtype


@pytest.mark.parametrize("query", [0, 1])
def test_samples_of_arrays_have_the_stated_frequencies(name, query):
    policy, num_samples = of_query(POLICIES[name], query), 8000
    lists, of_arrays = all_lists(policy, 0), arrays_of(policy)
    drawn = of_arrays.sample(num_samples, generator=np.random.default_rng(3))[:, 0]
    observed = (drawn[:, None] == lists.numpy()).all(-1).sum(0)
    expected = num_samples * np.exp(of_arrays.log_prob(lists[:, None].numpy())[:, 0])
    assert observed.sum() == num_samples
    assert (observed[expected == 0] == 0).all()
    assert chisquare(observed[expected > 0], expected[expected > 0]).pvalue > 1e-3
    again = of_arrays.sample(num_samples, generator=np.random.default_rng(3))[:, 0]
    np.testing.assert_array_equal(drawn, again)


def test_estimated_exposures_of_arrays_are_near_those_of_tensors():
    for name in IS_SAMPLED:
        policy = POLICIES[name](SCORES, MASK)
        np.testing.assert_allclose(arrays_of(policy).exposure(), policy.exposure().numpy(), atol=0.05)


def test_each_kind_of_array_draws_from_its_own_generator(name):
    policy = POLICIES[name](SCORES, MASK)
    with pytest.raises(RankPolicyError, match=r"generator must be a torch\.Generator for tensors"):
        policy.sample(1, generator=np.random.default_rng(0))
    with pytest.raises(RankPolicyError, match=r"generator must be a numpy\.random\.Generator for numpy arrays"):
        arrays_of(policy).sample(1, generator=torch.Generator())


@pytest.mark.parametrize("policy_of", [TopShuffle, RandomSwaps])
def test_shown_arrays_are_logged_as_tensors_are(policy_of):
    shown = arrays_of(policy_of(SCORES, MASK)).show(generator=np.random.default_rng(0))
    columns = shown.log_columns()
    assert columns["item"].tolist() == shown.rankings[MASK.sum(-1).numpy()[:, None] > np.arange(4)].tolist()
    policy = policy_of(SCORES, MASK)
    np.testing.assert_allclose(
        columns["list_propensity"],
        policy.log_prob(torch.from_numpy(shown.rankings)).exp().numpy()[columns["query"]],
        rtol=1e-12,
    )
