import pytest
import torch
from torch import nn

from rankpolicy.data.texts.text_pairs import SideTensors, TextPairs, TokenTable
from rankpolicy.models import MODELS
from rankpolicy.models.text_and_side import TextAndSide, TextAndSideModel

CROSS_MODELS = [name for name in MODELS if issubclass(MODELS[name], TextAndSideModel)]

VECTORS = torch.tensor([[0.0, 0.0], [1.0, 2.0], [3.0, 4.0], [5.0, -6.0], [7.0, 0.0]])
QUERIES = [[1, 2], [3], []]
ITEMS = [[4], [1, 1, 2, 3], [], [2, 4]]
SIDE = SideTensors(
    torch.tensor([[0.5], [-1.0], [2.0], [0.0], [1.0]]), torch.tensor([[0, 1], [1, 2], [2, 0], [0, 0], [2, 3]])
)


def pairs(side=SIDE, queries=QUERIES, items=ITEMS, query_of_pair=(0, 0, 1, 2, 1), item_of_pair=(0, 1, 1, 2, 3)):
    return TextPairs(
        TokenTable.of(queries), TokenTable.of(items), torch.tensor(query_of_pair), torch.tensor(item_of_pair), side
    )


def network(name="matching-cross", *, has_side=True):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        core = MODELS[name](hidden=(8, 8), dropout=0).new_core(2, 1 + 2 * 3 if has_side else 0)
        return TextAndSide(core, VECTORS.clone(), [3, 4] if has_side else [], 3, 1 if has_side else 0).eval()


def test_texts_are_the_means_of_their_tokens():
    query, item, side = network(has_side=False).vectors(pairs(side=None))
    assert query.tolist() == [[2, 3], [2, 3], [5, -6], [0, 0], [5, -6]]
    assert item.tolist() == [[7, 0], [2.5, 0.5], [2.5, 0.5], [0, 0], [5, 2]]
    assert side.shape == (5, 0)


def test_side_information_is_numbers_then_a_vector_a_category():
    model = network()
    side = model.vectors(pairs())[2]
    first, second = (column.weight for column in model.categories)
    # The last pair: number 1, codes 2 and 3.
    torch.testing.assert_close(side[4], torch.cat([torch.tensor([1.0]), first[2], second[3]]))
    assert side.shape == (5, 7)


def test_the_score_is_that_of_the_core():
    model = network()
    torch.testing.assert_close(model(pairs()), model.core(*model.vectors(pairs())))


@pytest.mark.parametrize("name", CROSS_MODELS)
@pytest.mark.parametrize("has_side", [False, True])
def test_a_pair_scores_the_same_alone_and_among_longer_ones(name, has_side):
    model, given = network(name, has_side=has_side), pairs(SIDE if has_side else None)
    together = model(given)
    alone = torch.cat([model(given[row : row + 1]) for row in range(5)])
    torch.testing.assert_close(together, alone)


def test_texts_that_are_repeated_change_nothing():
    shared = pairs(SIDE[:3], query_of_pair=(0, 0, 0), item_of_pair=(0, 1, 3))
    copied = pairs(SIDE[:3], queries=[QUERIES[0]] * 3, query_of_pair=(0, 1, 2), item_of_pair=(0, 1, 3))
    torch.testing.assert_close(network()(shared), network()(copied))


def test_the_vector_of_no_token_is_never_read():
    model = network()
    before = model(pairs())
    with torch.no_grad():
        model.words.weight[0] = 1e3
    torch.testing.assert_close(model(pairs()), before)


def test_no_tokens_at_all_still_give_scores():
    scores = network()(pairs(queries=[[], [], []], items=[[], [], [], []]))
    assert scores.isfinite().all()


@pytest.mark.parametrize("name", CROSS_MODELS)
def test_words_of_both_texts_and_categories_that_occur_learn(name):
    model = network(name).train()
    model(pairs(query_of_pair=(0, 0, 1, 1, 1))).square().sum().backward()
    assert model.words.weight.grad.isfinite().all()
    assert model.words.weight.grad[1:].abs().sum(1).gt(0).all()
    assert model.words.weight.grad[0].tolist() == [0, 0]
    for column, codes in zip(model.categories, SIDE.categories.T, strict=True):
        occurs = torch.isin(torch.arange(len(column.weight)), codes)
        assert (column.weight.grad.abs().sum(1) > 0).tolist() == occurs.tolist()


def test_the_gradient_of_a_shared_table_is_that_of_both_texts():
    model = TextAndSide(MODELS["match"](hidden=()).new_core(2, 0), VECTORS.clone(), [], 1, 0)
    nn.init.ones_(model.core.net.output.weight)
    given = pairs(None, query_of_pair=(0,), item_of_pair=(1,))
    model(given).sum().backward()
    # query = (w1 + w2) / 2 = (2, 3), item = (2 w1 + w2 + w3) / 4 = (2.5, 0.5); score = query . item
    assert model.words.weight.grad.tolist() == [[0, 0], [2.25, 1.75], [1.75, 1.0], [0.5, 0.75], [0, 0]]


def test_the_table_of_words_has_the_name_that_saved_rankers_look_for():
    assert "words.weight" in network().state_dict()


def test_side_information_the_network_was_not_built_for_is_refused():
    with pytest.raises(AssertionError, match="as many numbers"):
        network(has_side=False)(pairs())
    with pytest.raises(AssertionError, match="as many numbers"):
        network()(pairs(side=None))
