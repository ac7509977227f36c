"""Policies that make randomised traffic: propensities against enumeration, and position bias recovered from the lists they show."""

from itertools import permutations

import numpy as np
import pytest
import torch

import rankpolicy as rp
from rankpolicy.clicks.log.click_log import log_from_lists
from rankpolicy.policies import RandomSwaps, TopShuffle
from rankpolicy.types import RankPolicyError

SCORES = torch.tensor([[1.0, -0.5, 0.3, 0.0, 0.7], [0.2, 2.0, -1.0, 0.4, 9.0]], dtype=torch.float64)
MASK = torch.tensor([[True] * 5, [True, True, True, False, False]])
POLICIES = {
    "shuffle": lambda scores, mask: TopShuffle(scores, mask, depth=4),
    "swaps": lambda scores, mask: RandomSwaps(scores, mask, depth=4),
    "swaps of the first": lambda scores, mask: RandomSwaps(scores, mask, depth=4, pairs="first"),
    "swaps of neighbours": lambda scores, mask: RandomSwaps(scores, mask, depth=4, pairs="adjacent"),
}
BIAS = np.array([1.0, 0.6, 0.4, 0.3])


@pytest.fixture(params=POLICIES)
def policy(request):
    return POLICIES[request.param](SCORES, MASK)


def enumerated(base, depth, pairs):
    """{list: probability} of one query, from the definition: all orders of the top, or one pair swapped with probability 1/2."""
    top, rest = base[:depth], base[depth:]
    if pairs is None:
        orders = list(permutations(top))
        return {(*order, *rest): 1 / len(orders) for order in orders}
    found = {tuple(base): 0.5}
    for first, second in pairs:
        swapped = list(base)
        swapped[first], swapped[second] = swapped[second], swapped[first]
        found[tuple(swapped)] = 0.5 / len(pairs)
    return found


PAIRS = {
    "shuffle": {4: None, 3: None},
    "swaps": {4: [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], 3: [(0, 1), (0, 2), (1, 2)]},
    "swaps of the first": {4: [(0, 1), (0, 2), (0, 3)], 3: [(0, 1), (0, 2)]},
    "swaps of neighbours": {4: [(0, 1), (1, 2), (2, 3)], 3: [(0, 1), (1, 2)]},
}


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize(("query", "base", "depth"), [(0, [0, 4, 2, 3, 1], 4), (1, [1, 0, 2], 3)])
def test_probabilities_and_propensities_are_those_of_the_enumeration(name, query, base, depth):
    policy = POLICIES[name](SCORES, MASK)
    lists = enumerated(base, depth, PAIRS[name][depth])
    for order in permutations(base):
        whole = torch.tensor([*order, *([3, 4] if query else [])])
        rankings = policy.mode()
        rankings[query] = whole
        assert policy.log_prob(rankings)[query].exp().item() == pytest.approx(lists.get(order, 0.0), abs=1e-12)
        expected = [sum(share for other, share in lists.items() if other[p] == order[p]) for p in range(len(order))]
        found = policy.propensities(rankings)[query]
        np.testing.assert_allclose(found[: len(order)].numpy(), expected, atol=1e-12)
        assert (found[len(order) :] == 1).all()


def test_shown_lists_say_what_a_log_has_to_keep(policy):
    shown = policy.show(generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(shown.propensities, policy.propensities(shown.rankings))
    torch.testing.assert_close(shown.list_propensities, policy.log_prob(shown.rankings).exp())
    columns = shown.log_columns()
    assert columns["session"].tolist() == [0] * 5 + [1] * 3
    assert columns["position"].tolist() == [0, 1, 2, 3, 4, 0, 1, 2]
    assert columns["item"].tolist() == [*shown.rankings[0].tolist(), *shown.rankings[1, :3].tolist()]
    assert (columns["propensity"] > 0).all()
    if isinstance(policy, RandomSwaps):
        first, second = shown.swaps.T
        assert ((first >= 0) & (first < second) & (second < torch.tensor([4, 3]))).all()
        moved = shown.rankings != policy.mode()
        assert all(set(np.flatnonzero(row)) <= set(pair.tolist()) for row, pair in zip(moved, shown.swaps, strict=True))
    else:
        assert (shown.swaps == -1).all()
    with pytest.raises(RankPolicyError, match="cutoff must be at least depth, 4"):
        policy.show(cutoff=3)


def test_log_columns_with_clicks_are_a_click_log(tmp_path):
    polars = pytest.importorskip("polars")
    columns = TopShuffle(SCORES, MASK).show(generator=torch.Generator().manual_seed(1)).log_columns()
    polars.DataFrame(columns | {"clicked": columns["position"] == 1}).write_csv(tmp_path / "log.csv")
    log = rp.read_click_log(tmp_path / "log.csv", columns={})
    assert log.num_sessions == 2
    assert log.clicks.tolist() == [[0, 1, 0, 0, 0], [0, 1, 0, 0, 0]]


def test_lists_of_one_item_stay():
    scores, mask = torch.zeros(2, 3), torch.tensor([[True, False, False], [True, True, False]])
    for policy in (RandomSwaps(scores, mask), TopShuffle(scores, mask)):
        shown = policy.show(generator=torch.Generator().manual_seed(0))
        assert shown.list_propensities[0] == 1
        assert shown.swaps[0].tolist() == [-1, -1]
    only_one = RandomSwaps(scores[:1], mask[:1]).sample(5)
    assert (only_one == torch.arange(3)).all()


def traffic(policy_of, *, num_queries=60, num_rounds=400):
    """Lists of a ranker that puts relevant items on top, with clicks of the position-based model; the log and the swaps."""
    generator, draws = np.random.default_rng(5), torch.Generator().manual_seed(6)
    relevance = generator.uniform(0.1, 0.9, (num_queries, 4))
    scores = torch.from_numpy(relevance + generator.normal(0, 0.1, relevance.shape))
    policy = policy_of(scores, torch.ones(num_queries, 4, dtype=torch.bool))
    lists, swaps = [], []
    for _ in range(num_rounds):
        shown = policy.show(generator=draws)
        lists.append(shown.rankings.numpy())
        swaps.append(shown.swaps.numpy())
    queries, items = np.tile(np.arange(num_queries), num_rounds), np.concatenate(lists)
    clicks = generator.random(items.shape) < BIAS * relevance[queries[:, None], items]
    return log_from_lists(queries, items, clicks.astype(int)), np.concatenate(swaps)


@pytest.mark.parametrize("name", POLICIES)
def test_position_bias_is_recovered_from_the_traffic(name):
    log, swaps = traffic(POLICIES[name])
    method = {"method": "randomised"} if name == "shuffle" else {"method": "swaps", "swaps": swaps}
    bias = rp.estimate_position_bias(log, **method, level=0.99, num_resamples=200)
    low, high = bias.intervals.T
    assert ((low[1:] <= BIAS[1:]) & (BIAS[1:] <= high[1:])).all()
    assert (high[1:] - low[1:] < 0.12).all()


def test_without_randomisation_relevance_is_taken_for_bias():
    log, _ = traffic(lambda scores, mask: TopShuffle(scores, mask, depth=1))
    bias = rp.estimate_position_bias(log, method="randomised", level=0.99, num_resamples=100)
    assert (bias.intervals[1:, 1] < BIAS[1:]).all()


def test_settings_are_checked():
    for make, text in [
        (lambda: TopShuffle(SCORES, MASK, depth=0), "depth must be at least 1; got 0"),
        (lambda: RandomSwaps(SCORES, MASK, depth=1), "depth must be at least 2"),
        (lambda: RandomSwaps(SCORES, MASK, pairs="neighbours"), "Unknown pairs 'neighbours'"),
        (lambda: TopShuffle(SCORES[0], MASK[0]), r"must both be \(query, item\)"),
    ]:
        with pytest.raises(RankPolicyError, match=text):
            make()
