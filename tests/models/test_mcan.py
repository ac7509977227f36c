import pytest
import torch

from rankpolicy import RankPolicyError
from rankpolicy.data.texts.text_pairs import TextPairs, TokenTable
from rankpolicy.models import MCAN
from rankpolicy.models.mcan import COMPRESSIONS, Cast, FactorizationCompression, MCANNetwork

QUERIES = [[1, 2], [3, 4, 5, 1]]
ITEMS = [[2, 6, 7], [1], [5, 5, 3, 2, 1, 8]]


def pairs(query_of_pair=(0, 0, 1, 1), item_of_pair=(0, 1, 2, 0), queries=QUERIES, items=ITEMS):
    return TextPairs(
        TokenTable.of(queries), TokenTable.of(items), torch.tensor(query_of_pair), torch.tensor(item_of_pair)
    )


def network(compression="sum", head="highway"):
    torch.manual_seed(0)
    vectors = torch.randn(9, 3)
    vectors[0] = 0
    return MCANNetwork(vectors, recurrent=4, hidden=(5, 5), compression=compression, head=head).eval()


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_pair_scores_the_same_alone_and_among_longer_ones(compression):
    model = network(compression)
    together = model(pairs())
    alone = torch.cat([model(pairs()[row : row + 1]) for row in range(4)])
    assert together.shape == (4,)
    torch.testing.assert_close(together, alone)


def test_the_vector_of_padding_is_never_read():
    model = network()
    before = model(pairs())
    with torch.no_grad():
        model.words.weight[0] = 1e3
    torch.testing.assert_close(model(pairs()), before)


def test_texts_that_are_repeated_change_nothing():
    # The same three pairs, once with shared texts and once with a copy of the query's text for each pair.
    shared = pairs((0, 0, 0), (0, 1, 2))
    copied = pairs((0, 1, 2), (0, 1, 2), queries=[QUERIES[0]] * 3)
    torch.testing.assert_close(network()(shared), network()(copied))


def by_hand(model, query, item):
    """The score of one pair, word by word from the formulas of the docstring."""
    q, a = (model.encoder(model.words(torch.tensor(text))) for text in (query, item))

    def relu_cross(x):
        return torch.relu(model.cross(x))

    def summary(words, others):
        similarity = torch.stack([torch.stack([relu_cross(x) @ relu_cross(y) for y in others]) for x in words])
        by_max = similarity.max(1).values.softmax(0) @ words
        by_mean = similarity.mean(1).softmax(0) @ words
        inputs = []
        for i, x in enumerate(words):
            aligned = similarity[i].softmax(0) @ others
            own = torch.stack([model.intra(x) @ y for y in words]).softmax(0) @ words
            hints = [
                hint
                for attended in (by_max, by_mean, aligned, own)
                for hint in ((attended + x).sum(), (attended * x).sum(), (attended - x).sum())
            ]
            inputs.append(torch.cat([x, torch.stack(hints)]))
        states = model.lstm(torch.stack(inputs)[None])[0][0]
        return torch.cat([states.mean(0), states.max(0).values])

    h_q, h_a = summary(q, a), summary(a, q)
    return model.head(torch.cat([h_q, h_a, h_q * h_a, h_q - h_a])[None])[0]


@pytest.mark.parametrize("head", ["highway", "plain"])
def test_scores_follow_the_formulas(head):
    model = network("sum", head)
    expected = torch.stack([by_hand(model, QUERIES[q], ITEMS[a]) for q, a in ((0, 0), (0, 1), (1, 2), (1, 0))])
    torch.testing.assert_close(model(pairs()), expected)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_every_weight_but_the_word_vectors_learns(compression):
    model = network(compression).train()
    model(pairs()).square().sum().backward()
    for name, weight in model.named_parameters():
        if name == "words.weight":
            assert weight.grad is None
        else:
            assert weight.grad.isfinite().all(), name
            # relu may close a neural hint, never all weights of another part.
            assert "casts" in name or weight.grad.abs().sum() > 0, name


def test_a_cast_is_sum_product_and_difference():
    hints = Cast(2, "sum")(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 5.0]]))
    assert hints.tolist() == [[11.0, 13.0, -5.0]]


def test_a_factorization_machine_crosses_all_pairs():
    machine = FactorizationCompression(3, num_factors=2)
    x = torch.tensor([2.0, -1.0, 3.0])
    crossed = sum(machine.factors[i] @ machine.factors[j] * x[i] * x[j] for i in range(3) for j in range(i + 1, 3))
    torch.testing.assert_close(machine(x), machine.linear(x)[0] + crossed)


def test_neural_compression_is_a_rectified_weighted_sum():
    compress = COMPRESSIONS["neural"](2, None)
    with torch.no_grad():
        compress.linear.weight.copy_(torch.tensor([[1.0, -2.0]]))
        compress.linear.bias.fill_(0.5)
    assert compress(torch.tensor([[3.0, 1.0], [0.0, 1.0]])).tolist() == [1.5, 0.0]


def test_an_unknown_compression_is_refused():
    with pytest.raises(RankPolicyError, match=r"Unknown compression 'som'\. Did you mean 'sum'"):
        MCAN(compression="som")


def test_a_plain_head_is_relu_layers_and_a_weighted_sum():
    head = network(head="plain").head
    first, second = (layer for layer in head.hidden if isinstance(layer, torch.nn.Linear))
    joined = torch.randn(2, 32, generator=torch.Generator().manual_seed(0))
    expected = torch.relu(torch.relu(joined @ first.weight.T + first.bias) @ second.weight.T + second.bias)
    torch.testing.assert_close(head(joined), (expected @ head.output.weight.T + head.output.bias)[:, 0])
    assert MCAN(head="plain", hidden=(8, 4)).hidden == (8, 4)  # widths of a plain head may differ
    with pytest.raises(RankPolicyError, match="all equal"):
        MCAN(hidden=(8, 4))
    with pytest.raises(RankPolicyError, match="dropout_after_projection=True would not be read"):
        MCAN(head="plain", dropout_after_projection=True)


@pytest.mark.parametrize("drops", [False, True])
def test_dropout_follows_the_projection_of_the_head_only_where_it_is_asked_to(drops):
    model = MCANNetwork(torch.zeros(3, 3), recurrent=2, hidden=(4,), dropout=0.5, drops_projection=drops)
    assert model.head.dropout.threshold == (128 if drops else 0)
