"""Ties are measured in expectation over all orders of the tied items: exact values against enumeration, kernels against the reference."""

import itertools
import random

import ir_measures
import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from ir_measures import AP, RR, P, R, Success, nDCG
from sklearn.metrics import ndcg_score

import rankpolicy as rp
from rankpolicy.data.arrays import from_arrays
from rankpolicy.evaluation import evaluate, evaluate_scores
from rankpolicy.evaluation.measure import values_by_reference
from rankpolicy.metrics import METRICS, all_items, as_reward, parse_metric
from rankpolicy.metrics.ties import expected_value
from rankpolicy.types import Conventions, RankPolicyError

TEXTS = [f"{name}{at}" for name in METRICS for at in ("", "@1", "@2", "@3", "@9")]


def over_all_orders(metric, scores: list[int], labels: list[int]) -> float:
    """The mean of the metric over all rankings by descending score."""
    by_score = [[item for item, other in enumerate(scores) if other == score] for score in sorted(set(scores))[::-1]]
    orders = itertools.product(*(itertools.permutations(group) for group in by_score))
    rankings = torch.tensor([[list(itertools.chain(*order))] for order in orders])
    return metric(rankings, torch.tensor([labels]).double(), all_items(1, len(labels))).double().mean().item()


@settings(max_examples=25, deadline=None)
@given(
    items=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4)), min_size=1, max_size=6),
    empty=st.sampled_from([0, 1]),
    gain=st.sampled_from(["exp2", "linear"]),
)
def test_reference_and_kernels_give_the_mean_over_all_orders(items, empty, gain) -> None:
    scores, labels = map(list, zip(*items, strict=True))
    conventions = Conventions(empty=empty, gain=gain)
    metrics = [parse_metric(text, conventions) for text in [*TEXTS, "mean(ap, rr@2)", "1 - 0.5*err@3"]]
    dataset = from_arrays(np.zeros((len(labels), 1)), labels, group=[len(labels)])
    expected = [over_all_orders(metric, scores, labels) for metric in metrics]
    np.testing.assert_allclose(evaluate_scores(np.array(scores, float), dataset, metrics)[0], expected, atol=1e-9)
    by_torch = [values_by_reference(np.array(scores, float), dataset, metric)[0] for metric in metrics]
    np.testing.assert_allclose(by_torch, expected, atol=1e-9)


@pytest.mark.parametrize("name", ["ndcg", "ndcg@10", "ap", "rr", "p@5", "recall@5", "err@10"])
def test_a_constant_scorer_is_worth_a_random_one_and_rows_sorted_by_label_do_not_help(name: str) -> None:
    labels = np.tile(np.sort(np.random.default_rng(0).integers(0, 5, 40))[::-1], 300)
    dataset = from_arrays(np.zeros((len(labels), 1)), labels, group=np.full(300, 40))
    constant = evaluate(np.zeros(len(labels)), dataset, [name]).means[name]
    drawn = evaluate(np.random.default_rng(1).random(len(labels)), dataset, [name])
    error = drawn[name].std() / np.sqrt(len(drawn))
    assert abs(constant - drawn.means[name]) < 4 * error
    assert constant < 0.99


@settings(max_examples=15, deadline=None)
@given(items=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=2, max_size=5))
def test_the_mean_over_item_ids_of_trec_eval(items) -> None:
    """trec_eval orders tied items by their ids; over all ways to hand out ids its mean is ours, and by the same ids it is the same."""
    scores, labels = map(list, zip(*items, strict=True))
    same = {
        "ndcg": nDCG,
        "ndcg@2": nDCG @ 2,
        "ap": AP,
        "rr": RR,
        "p@2": P @ 2,
        "recall@2": R @ 2,
        "success@1": Success @ 1,
    }
    linear, by_id = Conventions(gain="linear"), Conventions(gain="linear", ties="item_id")
    theirs = []
    for ids in itertools.permutations("abcde"[: len(labels)]):
        qrels = [ir_measures.Qrel("q", name, label) for name, label in zip(ids, labels, strict=True)]
        run = [ir_measures.ScoredDoc("q", name, float(score)) for name, score in zip(ids, scores, strict=True)]
        values = ir_measures.calc_aggregate(list(same.values()), qrels, run)
        dataset = from_arrays(np.zeros((len(labels), 1)), labels, group=[len(labels)], item_ids=ids)
        ours = evaluate(scores, dataset, list(same), conventions=by_id).means
        theirs.append([values[measure] for measure in same.values()])
        np.testing.assert_allclose(list(ours.values()), theirs[-1], atol=1e-6)
    expected = evaluate(scores, dataset, list(same), conventions=linear).means
    np.testing.assert_allclose(list(expected.values()), np.mean(theirs, axis=0), atol=1e-6)


def test_ndcg_as_scikit_learn_measures_ties() -> None:
    generator = np.random.default_rng(0)
    labels, scores = generator.integers(0, 4, (20, 12)), generator.integers(0, 4, (20, 12)).astype(float)
    labels[:, 0] = 1
    dataset = from_arrays(np.zeros((240, 1)), labels.ravel(), group=[12] * 20)
    ours = evaluate(scores.ravel(), dataset, ["ndcg@5"], conventions=Conventions(gain="linear")).means["ndcg@5"]
    assert ours == pytest.approx(ndcg_score(labels, scores, k=5))


def test_the_worst_order_is_that_of_ascending_labels() -> None:
    dataset = from_arrays(np.zeros((4, 1)), [3, 1, 0, 2], group=[4])
    worst = Conventions(ties="worst")
    table = evaluate([1, 1, 1, 0], dataset, ["ndcg", "rr"], conventions=worst)
    assert table.means == evaluate([0.1, 0.2, 0.3, 0.0], dataset, ["ndcg", "rr"]).means
    assert str(table).endswith("ties=worst")


def test_products_and_own_functions_are_averaged_over_random_orders() -> None:
    labels, scores = (
        torch.tensor([[1.0, 0.0, 0.0, 2.0]] * 2),
        torch.tensor([[0.0, 0.0, 0.0, 1.0], [4.0, 3.0, 2.0, 1.0]]),
    )
    mask = all_items(2, 4)
    own = as_reward(lambda rankings, labels, mask: (rankings[..., 1] == 0).float(), Conventions())
    second, untied = expected_value(own, scores, labels, mask).tolist()
    assert second == pytest.approx(1 / 3, abs=0.2)
    assert untied == 0
    product = parse_metric("ap*ap")
    exact = over_all_orders(product, scores[0].tolist(), labels[0].tolist())
    assert expected_value(product, scores, labels, mask)[0].item() == pytest.approx(exact, abs=0.05)
    assert expected_value(product, scores, labels, mask)[1].item() == pytest.approx(
        over_all_orders(product, scores[1].tolist(), labels[1].tolist())
    )


def test_early_stopping_is_not_flattered_by_ties() -> None:
    """Validation rows sorted by label, features that say nothing: no tree can be worth 1."""
    generator = np.random.default_rng(0)
    train = from_arrays(generator.integers(0, 2, (400, 2)), generator.integers(0, 3, 400), group=[20] * 20)
    labels = np.tile(np.repeat([2, 1, 0], [2, 4, 14]), 10)
    valid = from_arrays(np.zeros((200, 2)), labels, group=[20] * 10)
    trees = rp.LambdaMART(num_trees=5, min_items_in_leaf=1).fit(train, valid=valid)
    network = rp.ListNet(epochs=3).fit(train, valid=valid)
    random_value = evaluate(np.zeros(200), valid, ["ndcg@10"]).means["ndcg@10"]
    assert trees.best_score_ == pytest.approx(random_value)
    assert network.best_score_ == pytest.approx(random_value)
    assert random_value < 0.6


def test_long_lists_of_few_different_scores() -> None:
    generator = np.random.default_rng(0)
    sizes = np.array([700, 300, 40, 1])
    labels, scores = generator.integers(0, 5, sizes.sum()), generator.integers(0, 5, sizes.sum()).astype(float)
    dataset = from_arrays(np.zeros((sizes.sum(), 1)), labels, group=sizes)
    metrics = [parse_metric(text) for text in ("ndcg@10", "ap", "rr", "err", "err@10", "p@10", "avg_rank", "success@1")]
    by_torch = np.column_stack([values_by_reference(scores, dataset, metric) for metric in metrics])
    np.testing.assert_allclose(evaluate_scores(scores, dataset, metrics), by_torch, atol=1e-9)


def test_ties_must_be_a_known_rule_and_ids_must_be_there() -> None:
    with pytest.raises(RankPolicyError, match="ties must be 'expected', 'worst' or 'item_id'; got 'given'"):
        Conventions(ties="given")
    dataset = from_arrays(np.zeros((2, 1)), [1, 0], group=[2])
    with pytest.raises(RankPolicyError, match="the data has no item ids"):
        evaluate([0, 0], dataset, "ap", conventions=Conventions(ties="item_id"))


def test_the_order_of_rows_does_not_change_a_value() -> None:
    labels, scores = [0, 1, 2, 3, 0, 1], [1, 1, 0, 1, 0, 0]
    order = list(range(6))
    values = set()
    for seed in range(5):
        random.Random(seed).shuffle(order)
        dataset = from_arrays(np.zeros((6, 1)), [labels[row] for row in order], group=[6])
        values.add(round(evaluate([scores[row] for row in order], dataset, "err").means["err"], 12))
    assert len(values) == 1
