"""Agreement with trec_eval, through ir-measures, where the conventions coincide: linear gain, an empty query is 0."""

import ir_measures
import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from ir_measures import AP, RR, P, R, Success, nDCG

from rankpolicy.metrics import all_items, parse_metric
from rankpolicy.types import Conventions

SAME = {
    "ndcg": nDCG,
    "ndcg@5": nDCG @ 5,
    "ap": AP,
    "ap@5": AP @ 5,
    "rr": RR,
    "p@5": P @ 5,
    "p@20": P @ 20,
    "recall@5": R @ 5,
    "success@1": Success @ 1,
    "success@3": Success @ 3,
}


@settings(max_examples=40, deadline=None)
@given(labels=st.lists(st.integers(0, 4), min_size=1, max_size=12), seed=st.integers(0, 10_000))
def test_same_values_as_trec_eval(labels: list[int], seed: int) -> None:
    # Distinct scores: trec_eval breaks ties by the name of the item.
    ranking = np.random.default_rng(seed).permutation(len(labels))
    qrels = [ir_measures.Qrel("q", str(item), label) for item, label in enumerate(labels)]
    run = [ir_measures.ScoredDoc("q", str(item), -float(position)) for position, item in enumerate(ranking)]
    theirs = ir_measures.calc_aggregate(list(SAME.values()), qrels, run)
    given_labels = torch.tensor([labels], dtype=torch.float64)
    for name, measure in SAME.items():
        ours = parse_metric(name, Conventions(gain="linear"))
        value = ours(torch.from_numpy(ranking)[None], given_labels, all_items(1, len(labels))).item()
        assert value == pytest.approx(theirs[measure], abs=1e-6), name


def test_same_values_from_a_higher_grade() -> None:
    labels, ranking = [2, 1, 0, 3, 1], [1, 3, 2, 0, 4]
    qrels = [ir_measures.Qrel("q", str(item), label) for item, label in enumerate(labels)]
    run = [ir_measures.ScoredDoc("q", str(item), -float(position)) for position, item in enumerate(ranking)]
    for name, measure in {"ap": AP(rel=2), "rr": RR(rel=2), "p@3": P(rel=2) @ 3, "recall@3": R(rel=2) @ 3}.items():
        ours = parse_metric(name, Conventions(relevant_from=2))
        value = ours(torch.tensor([ranking]), torch.tensor([labels], dtype=torch.float64), all_items(1, 5)).item()
        assert value == pytest.approx(ir_measures.calc_aggregate([measure], qrels, run)[measure], abs=1e-6), name
