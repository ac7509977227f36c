"""Ways to match two texts, each by hand."""

import pytest
import torch
from torch import nn

from rankpolicy.models.matches import MATCHES, PairTokens

VECTORS = torch.tensor([[9.0, 9.0], [1.0, 2.0], [3.0, 4.0], [5.0, -6.0]])
QUERY, ITEM = torch.tensor([[2.0, 1.0]]), torch.tensor([[3.0, -1.0]])


def tokens(query, item):
    words = nn.Embedding.from_pretrained(VECTORS.clone(), freeze=False, padding_idx=0)
    return PairTokens(torch.tensor([query]), torch.tensor([item]), words)


def test_the_product_is_value_by_value():
    assert MATCHES["product"](2)(QUERY, ITEM, None).tolist() == [[6.0, -1.0]]


def test_the_item_goes_through_a_matrix_that_starts_near_nothing():
    match = MATCHES["bilinear"](2)
    assert (match(QUERY, ITEM, None) - QUERY * ITEM).abs().max() < 0.5
    with torch.no_grad():
        match.weights.weight.copy_(torch.tensor([[0.0, 1.0], [2.0, 0.0]]))
    # item + W item = (3 - 1, -1 + 6)
    assert match(QUERY, ITEM, None).tolist() == [[4.0, 5.0]]


def test_the_cosine_stands_beside_the_product():
    match = MATCHES["product-cosine"](2)
    found = match(QUERY, ITEM, None)
    torch.testing.assert_close(found, torch.tensor([[6.0, -1.0, 5 / (5 * 10) ** 0.5]]))
    assert match(torch.zeros(1, 2), ITEM, None).tolist() == [[0.0, 0.0, 0.0]]


def test_the_query_attends_to_the_tokens_that_are_like_it():
    found = MATCHES["attention"](2)(QUERY, ITEM, tokens([1], [1, 2, 0]))
    logits = torch.tensor([4.0, 10.0]) / 2**0.5  # (2, 1) . (1, 2) and (2, 1) . (3, 4)
    seen = logits.softmax(0) @ VECTORS[1:3]
    torch.testing.assert_close(found, QUERY * seen, rtol=1e-5, atol=1e-5)


def test_what_is_found_is_the_part_of_the_query_that_the_item_has():
    given = tokens([1, 2, 2, 0], [3, 2, 0])
    # Token 2 twice of three tokens: 2 / 3 of (3, 4).
    torch.testing.assert_close(MATCHES["found"](2)(QUERY, ITEM, given), torch.tensor([[2.0, 8 / 3, 2 / 3]]))
    both = MATCHES["product-found"](2)(QUERY, ITEM, given)
    torch.testing.assert_close(both, torch.tensor([[6.0, -1.0, 2.0, 8 / 3, 2 / 3]]))


@pytest.mark.parametrize("name", MATCHES)
def test_texts_without_tokens_match_nothing_and_pass_finite_gradients(name):
    match = MATCHES[name](2)
    given = tokens([0], [0])
    query, item = torch.zeros(1, 2, requires_grad=True), torch.zeros(1, 2, requires_grad=True)
    found = match(query, item, given)
    assert found.shape == (1, match.size)
    assert found.abs().max() == 0
    found.sum().backward()
    for tensor in (query, item, given.words.weight):
        assert tensor.grad is None or tensor.grad.isfinite().all()


@pytest.mark.parametrize("name", MATCHES)
def test_padding_changes_nothing(name):
    match = MATCHES[name](2)
    short, long = match(QUERY, ITEM, tokens([1, 2], [2])), match(QUERY, ITEM, tokens([1, 2, 0, 0], [2, 0, 0]))
    torch.testing.assert_close(short, long)
