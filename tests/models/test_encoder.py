import pytest
import torch

from rankpolicy.data.texts.pretrained import PretrainedEncoder
from rankpolicy.data.texts.text_pairs import TextPairs, TokenTable
from rankpolicy.models.encoder import ENCODINGS, FineTunedEncoder
from tests.tiny_encoder import write_tiny_encoder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return PretrainedEncoder.from_folder(write_tiny_encoder(tmp_path_factory.mktemp("encoder")))


def pairs(encoder):
    queries, items = (
        TokenTable.of(encoder.token_numbers(texts, max_tokens=20))
        for texts in (["who is ?", "where"], ["the red ball is the blue ball", "box", "the box"])
    )
    return TextPairs(queries, items, torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 2, 0]))


def network(encoder, encoding):
    torch.manual_seed(0)
    return FineTunedEncoder(encoder.new_network(with_weights=True), 8, encoding=encoding, hidden=(5,)).eval()


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_pair_scores_the_same_alone_and_among_longer_ones(encoding, encoder):
    model = network(encoder, encoding)
    if encoding == "both":
        torch.nn.init.normal_(model.head.output.weight)
    alone = torch.cat([model(pairs(encoder)[row : row + 1]) for row in range(4)])
    torch.testing.assert_close(model(pairs(encoder)), alone, atol=1e-5, rtol=1e-4)


def test_apart_is_the_scaled_cosine_of_mean_states(encoder):
    model = network(encoder, "apart")
    query = model.encoder(input_ids=torch.tensor([[1, 5, 2]])).last_hidden_state.mean(1)
    item = model.encoder(input_ids=torch.tensor([[1, 7, 11, 2]])).last_hidden_state.mean(1)
    expected = 10 * torch.cosine_similarity(query, item) - 5
    torch.testing.assert_close(model(pairs(encoder))[2:3], expected)


def test_together_reads_query_and_item_as_one_text(encoder):
    model = network(encoder, "together")
    states = model.encoder(
        input_ids=torch.tensor([[1, 5, 2, 7, 11, 2]]), token_type_ids=torch.tensor([[0, 0, 0, 1, 1, 1]])
    ).last_hidden_state
    torch.testing.assert_close(model(pairs(encoder))[2:3], model.head(states.mean(1)))


def test_both_starts_from_the_cosine_and_learns_everything(encoder):
    model = network(encoder, "both")
    torch.testing.assert_close(model(pairs(encoder)), network(encoder, "apart")(pairs(encoder)))
    model.train()(pairs(encoder)).square().sum().backward()
    assert model.scale.grad.abs() > 0
    assert model.head.output.weight.grad.abs().sum() > 0
    assert all(weight.grad is not None for weight in model.parameters())


def test_many_texts_are_read_in_groups_and_put_back_in_order(encoder, monkeypatch):
    model = network(encoder, "together")
    whole = model(pairs(encoder))
    monkeypatch.setattr("rankpolicy.models.encoder._TEXTS_AT_A_TIME", 3)
    torch.testing.assert_close(model(pairs(encoder)), whole, atol=1e-5, rtol=1e-4)
