"""Attention over the items of a query: hand-computed values, the order of the items, other queries, and tasks that need it."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

import rankpolicy as rp
from rankpolicy.data.rows import QueryRows, RowsWithDeviations, ScaledRows, joined, with_deviations
from rankpolicy.data.scaling import fit_scaling
from rankpolicy.evaluation import evaluate_scores
from rankpolicy.metrics import as_reward
from rankpolicy.models.list_transformer import AttentionBlock, SimilarQueries, grouped_by_length

CPU = torch.device("cpu")


def random_rows(sizes, seed=0, num_features=5):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    generator = torch.Generator().manual_seed(seed)
    return QueryRows.of(torch.randn(int(offsets[-1]), num_features, generator=generator), offsets), offsets


def network_of(**settings):
    model = rp.models.ListTransformer(**settings)
    return model.new_network_of(5, generator=torch.Generator().manual_seed(3)).eval()


def test_attention_by_hand():
    """Width 1, one head, no feed-forward: x + sum over items of softmax(q_i k_j) v_j, with q = k = n and v = 2 n, n the normalised x."""
    block = AttentionBlock(2, 1, dropout=0.0, generator=None)
    with torch.no_grad():
        block.query_key_value.weight.copy_(torch.cat([torch.eye(2), torch.eye(2), 2 * torch.eye(2)]))
        block.heads_output.weight.copy_(torch.eye(2))
        for layer in (block.query_key_value, block.heads_output, block.wide, block.narrow):
            layer.bias.zero_()
        block.narrow.weight.zero_()
    items = torch.tensor([[3.0, 1.0], [0.0, 4.0], [5.0, 7.0]])
    # LayerNorm makes (1, -1), (-1, 1), (-1, 1) of them; the first two are one query, the third is alone.
    weight = math.exp(2 / math.sqrt(2)) / (math.exp(2 / math.sqrt(2)) + math.exp(-2 / math.sqrt(2)))
    attended = 2 * (weight - (1 - weight))
    expected = items + torch.tensor([[attended, -attended], [-attended, attended], [-2.0, 2.0]])
    for groups in ([SimilarQueries.of(np.array([2, 1]), CPU)], [SimilarQueries.of(np.array([n]), CPU) for n in (2, 1)]):
        torch.testing.assert_close(block(items, groups).detach(), expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("sizes", [[4, 4, 4], [7, 2, 1, 30], [60, 3, 17, 5, 33, 1]])
def test_scores_follow_the_items_and_do_not_know_of_other_queries(sizes):
    rows, offsets = random_rows(sizes)
    network = network_of(width=16, num_heads=4, num_blocks=3)
    rng = np.random.default_rng(0)
    order = np.concatenate([start + rng.permutation(size) for start, size in zip(offsets[:-1], sizes, strict=True)])
    with torch.no_grad():
        scores = network(rows)
        permuted = network(QueryRows.of(rows.features[order], offsets))
        alone = [network(rows[torch.arange(start, start + size)]) for start, size in zip(offsets, sizes, strict=False)]
    torch.testing.assert_close(permuted, scores[order], atol=1e-5, rtol=0)
    torch.testing.assert_close(torch.cat(alone), scores, atol=1e-5, rtol=0)


def test_gradients_do_not_know_of_other_queries_either():
    rows, offsets = random_rows([40, 3, 17])
    network, gradients = network_of(width=8), []
    for parts in ([rows], [rows[torch.arange(start, end)] for start, end in pairwise(offsets)]):
        network.zero_grad()
        sum(network(part).square().sum() for part in parts).backward()
        gradients.append([weight.grad.clone() for weight in network.parameters()])
    torch.testing.assert_close(*gradients, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("sizes", [[5], [16, 1, 9], [40, 1, 17, 33, 64, 65, 2], [200, 3] * 20])
def test_groups_hold_every_item_once_and_at_most_half_of_a_long_one_is_padding(sizes):
    order, groups = grouped_by_length(np.array(sizes), CPU)
    assert sum(group.num_items for group in groups) == sum(sizes)
    assert sum(group.shape[0] for group in groups) == len(sizes)
    if order is not None:
        assert sorted(order.tolist()) == list(range(sum(sizes)))
    for group in groups:
        if group.shape[1] > 16:
            assert group.num_items * 2 >= group.shape[0] * group.shape[1]
        values = torch.arange(2.0 * group.num_items).view(-1, 2)
        assert torch.equal(group.flat(group.padded(values)), values)


def test_rows_of_queries_are_cut_joined_and_read_in_blocks_of_whole_queries(monkeypatch):
    from rankpolicy.data import rows as module

    rows, offsets = random_rows([3, 1, 4, 9, 2])
    monkeypatch.setattr(module, "_BLOCK_ITEMS", 5)
    blocks = list(rows.blocks())
    assert [block.sizes().tolist() for block in blocks] == [[3, 1], [4], [9], [2]]
    again = joined(blocks)
    assert torch.equal(again.features, rows.features)
    assert torch.equal(again.is_first, rows.is_first)
    # A query that is asked for twice in a row stays two queries.
    assert rows[torch.tensor([0, 1, 2, 0, 1, 2])].sizes().tolist() == [3, 3]
    data = rp.from_arrays(rows.features.numpy(), group=np.diff(offsets))
    scaling = fit_scaling("standardize", data)
    lazy = RowsWithDeviations(QueryRows.of(ScaledRows(data.features, scaling, CPU), offsets))
    scaled = torch.from_numpy(scaling.apply(data.features))
    means = torch.cat([part.mean(0).expand(len(part), -1) for part in scaled.split(np.diff(offsets).tolist())])
    expected = torch.cat([scaled, scaled - means], 1)
    torch.testing.assert_close(with_deviations(QueryRows.of(scaled, offsets)), expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(torch.cat(list(lazy.blocks())), expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(lazy[torch.arange(3, 8)], expected[3:8], atol=1e-5, rtol=0)


def test_a_width_that_heads_cannot_share_is_refused():
    with pytest.raises(rp.RankPolicyError, match=r"width must be a multiple of num_heads.*; got 10 and 4"):
        rp.models.ListTransformer(width=10, num_heads=4)


def nearest_to_the_mean(num_queries, seed):
    """One feature; the relevant item of a query is the one nearest to the query's mean, which differs from query to query."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(4, 9, num_queries)
    query = np.repeat(np.arange(num_queries), sizes)
    values = rng.uniform(-3, 3, num_queries)[query] + rng.normal(size=len(query))
    means = np.bincount(query, values) / sizes
    distances = np.abs(values - means[query])
    nearest = np.array([part.min() for part in np.split(distances, np.cumsum(sizes)[:-1])])
    return rp.from_arrays(values[:, None], distances == nearest[query], qid=query)


def same_kind_as_another(num_queries, seed):
    """Items of eight kinds, as one feature per kind; relevant are the two of a query that are of one kind, whichever it is."""
    rng = np.random.default_rng(seed)
    kinds = [rng.permutation(8)[:5] for _ in range(num_queries)]
    kinds = np.concatenate([rng.permutation([first, *others]) for (first, *others) in ([k[0], *k] for k in kinds)])
    labels = [np.bincount(own)[own] > 1 for own in kinds.reshape(num_queries, 6)]
    return rp.from_arrays(np.eye(8)[kinds], np.concatenate(labels), group=np.full(num_queries, 6))


@pytest.mark.parametrize(("task", "seed"), [(nearest_to_the_mean, 0), (same_kind_as_another, 1)])
def test_labels_that_depend_on_the_other_items_are_learned_where_a_network_of_single_items_stays_at_chance(task, seed):
    train, valid, test = (task(*each) for each in ((200, 0), (50, 1), (300, 2)))
    models = {
        "single": rp.models.MLP(),
        "mean": rp.models.MLP(query_context="mean"),
        "items": rp.models.ListTransformer(width=32, dropout=0.1),
    }
    # Of equal scores the mean over all orders is taken: chance.
    chance = evaluate_scores(np.zeros(test.num_items), test, [as_reward("ndcg@10")])[:, 0]
    gains = {}
    for name, model in models.items():
        ranker = rp.ListNet(model=model, epochs=20, learning_rate=3e-3, random_state=seed)
        ranker.fit(train, valid=valid, progress=False)
        gains[name] = (rp.evaluate(ranker, test, ["ndcg@10"])["ndcg@10"] - chance).mean()
    assert abs(gains["single"]) < 0.06
    assert gains["mean"] > 0.2
    assert gains["items"] > 0.2
