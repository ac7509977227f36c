import pytest
import torch

import rankpolicy as rp
from rankpolicy.data.texts.pretrained import PretrainedEncoder
from rankpolicy.data.texts.token_features import TextFeatures
from tests.tiny_encoder import write_tiny_encoder

TEXTS = ["who is the red ball ?", "the box", "who is the red ball ?", "where"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_tiny_encoder(tmp_path_factory.mktemp("encoder"))


def rows(table, text):
    start = int(table.starts[text])
    return table.tokens[start : start + int(table.lengths[text])]


def test_features_are_the_last_layers_of_each_token_side_by_side(folder):
    table = TextFeatures(folder, num_layers=2).of(TEXTS)
    assert table.lengths.tolist() == [8, 4, 8, 3]
    network = PretrainedEncoder.from_folder(folder).new_network(with_weights=True).eval()
    with torch.no_grad():
        states = network(input_ids=torch.tensor([[1, 7, 11, 2]]), output_hidden_states=True).hidden_states
    expected = torch.cat(states[-2:], -1)[0]
    torch.testing.assert_close(rows(table, 1).float(), expected, atol=2e-3, rtol=2e-3)
    torch.testing.assert_close(rows(table, 0), rows(table, 2))


def test_two_texts_read_together_are_two_segments(folder):
    table = TextFeatures(folder, num_layers=1).of([("where ?", "the box")])
    network = PretrainedEncoder.from_folder(folder).new_network(with_weights=True).eval()
    with torch.no_grad():
        expected = network(
            input_ids=torch.tensor([[1, 5, 12, 2, 7, 11, 2]]), token_type_ids=torch.tensor([[0, 0, 0, 0, 1, 1, 1]])
        ).last_hidden_state[0]
    torch.testing.assert_close(rows(table, 0).float(), expected, atol=2e-3, rtol=2e-3)


def test_a_text_is_computed_once_and_then_read_from_the_cache(folder, tmp_path, monkeypatch):
    first = TextFeatures(folder, num_layers=2, cache=tmp_path).of(TEXTS)
    more = TextFeatures(folder, num_layers=2, cache=tmp_path).of(["the ball", *TEXTS])
    torch.testing.assert_close(rows(more, 2), rows(first, 1))

    def refuse(self, *, with_weights):
        raise AssertionError("nothing is left to compute")

    monkeypatch.setattr(PretrainedEncoder, "new_network", refuse)
    again = TextFeatures(folder, num_layers=2, cache=tmp_path).of(["the ball", *TEXTS])
    torch.testing.assert_close(again.tokens, more.tokens)
    with pytest.raises(AssertionError, match="nothing is left"):  # another setting has features of its own
        TextFeatures(folder, num_layers=1, cache=tmp_path).of(TEXTS)


def test_another_model_does_not_read_the_cache_of_the_first(folder, tmp_path):
    other = write_tiny_encoder(tmp_path / "other", seed=1)
    one, two = (TextFeatures(each, num_layers=1, cache=tmp_path / "cache").of(["the box"]) for each in (folder, other))
    assert (one.tokens - two.tokens).abs().max() > 0.01


def test_a_damaged_cache_is_named(folder, tmp_path):
    features = TextFeatures(folder, num_layers=1, cache=tmp_path)
    features.of(["the box"])
    (path,) = features.cache.glob("*.safetensors")
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(rp.RankPolicyError, match=rf"{path.name} is not a file of text features"):
        features.of(["the box"])


def test_long_texts_are_cut(folder):
    assert TextFeatures(folder, num_layers=1, max_tokens=5).of(["the " * 30]).lengths.tolist() == [5]
    assert TextFeatures(folder, num_layers=1, max_tokens=200).of(["the " * 60]).lengths.tolist() == [40]


def test_what_is_not_a_model_is_refused(folder, tmp_path):
    with pytest.raises(rp.RankPolicyError, match=r"must be the folder of a Hugging Face model .* has no config.json"):
        TextFeatures(tmp_path)
    with pytest.raises(rp.RankPolicyError, match="num_layers must be from 1 to the 2 layers of the model; got 4"):
        TextFeatures(folder).of(["the box"])
