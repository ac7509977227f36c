"""What networks of texts and side columns read, fitted, saved and restored."""

import json

import numpy as np
import polars
import pytest
import torch

from rankpolicy.data import from_click_table, from_texts
from rankpolicy.models import MODELS
from rankpolicy.models.inputs.words_and_side import MatchInputs
from rankpolicy.models.text_and_side import TextAndSideModel
from rankpolicy.types import RankPolicyError
from tests.tiny_encoder import write_tiny_encoder

TABLE = polars.DataFrame(
    {
        "query_text": ["red tea", "red tea", "blue box", "blue box", "red tea"],
        "item_text": ["red pot", "xylograph", "blue box", "red pot", "blue box"],
        "clicked": [1, 0, 1, 0, 0],
        "user": ["ann", "ann", "bob", "bob", "cid"],
        "age": [1.0, 3.0, None, 5.0, 3.0],
        "kind": ["pots", "hermit", "boxes", "pots", "boxes"],
    }
)


CROSS_MODELS = [name for name in MODELS if issubclass(MODELS[name], TextAndSideModel)]


def new_model(name="matching-cross", **changes):
    given = {"embeddings", "encoder"} & set(changes)
    size = {} if given else {"embedding_size": 6}
    return MODELS[name](**size | {"hidden": (5,), "min_users": 2} | changes)


def fit(model, train):
    return model.fit_inputs(train, scaling="none", device="cpu")


def fitted(**changes):
    return fit(new_model(**changes), from_click_table(TABLE))


def assert_same_pairs(one, other):
    for name in ("queries", "items"):
        for part in ("tokens", "starts", "lengths"):
            assert torch.equal(getattr(getattr(one, name), part), getattr(getattr(other, name), part))
    assert torch.equal(one.query_of_pair, other.query_of_pair)
    assert torch.equal(one.item_of_pair, other.item_of_pair)
    assert torch.equal(one.side.numbers, other.side.numbers)
    assert torch.equal(one.side.categories, other.side.categories)


def test_pairs_hold_tokens_numbers_and_codes():
    inputs = fitted(ngrams=())
    assert inputs.vocabulary.words == ("blue", "box", "pot", "red", "tea")
    assert (inputs.num_numbers, inputs.num_categories) == (2, [4])
    pairs = inputs.read(from_click_table(TABLE))
    # Equal query texts are one text; "xylograph" was seen by one user, so its text has no token.
    assert pairs.query_of_pair.tolist() == [0, 0, 1, 1, 0]
    assert pairs.queries.padded(torch.arange(2))[0].tolist() == [[4, 5], [1, 2]]
    assert pairs.items.lengths.tolist() == [2, 0, 2]
    assert pairs.side.categories[:, 0].tolist() == [3, 1, 2, 3, 2]
    np.testing.assert_allclose(pairs.side.numbers[:, 0], np.array([-2, 0, 0, 2, 0]) / np.sqrt(2), atol=1e-6)
    assert pairs.side.numbers[:, 1].tolist() == [0, 0, 1, 0, 0]


def test_what_was_saved_reads_the_same_and_holds_nothing_of_rare_words_and_categories():
    inputs = fitted()
    files = inputs.files()
    saved = b"".join(files.values()).decode()
    json.loads(saved)
    for private in ("xylograph", "xyl", "ylo", "ann", "hermit"):
        assert private not in saved
    restored = new_model().restore_inputs(files, scaling="none", num_features=0)
    new = from_click_table(
        polars.DataFrame(
            {
                "query_text": ["red zebra"] * 2,
                "item_text": ["zebra", "potter"],
                "age": [None, 9.0],
                "kind": ["new", None],
            }
        ),
        needs_clicks=False,
    )
    for dataset in (from_click_table(TABLE), new):
        assert_same_pairs(inputs.read(dataset), restored.read(dataset))
    assert inputs.word_vectors().shape == restored.word_vectors().shape == (len(inputs.vocabulary), 6)


@pytest.mark.parametrize("model", CROSS_MODELS)
def test_a_network_scores_texts_without_any_known_token(model):
    inputs = fitted()
    network = new_model(model).new_network(inputs, generator=torch.Generator().manual_seed(0)).eval()
    assert isinstance(inputs, MatchInputs)
    with pytest.warns(UserWarning, match="no side column age, kind"):
        pairs = inputs.read(from_texts(["qqq"], [["zzz", "yyy", "red"]]))
    assert len(pairs.queries.tokens) == 0
    assert pairs.queries.padded(torch.tensor([0]))[0].shape == (1, 0)
    scores = network(pairs)
    assert scores.isfinite().all()
    assert scores[0] == scores[1]


def test_random_vectors_have_the_size_asked_for_and_padding_is_zero():
    vectors = fitted().word_vectors()
    assert vectors.shape[1] == 6
    assert (vectors[0] == 0).all()
    assert (vectors[1:].abs().sum(1) > 0).all()


def test_word_vectors_of_a_file_are_taken_and_all_others_are_small(tmp_path):
    (tmp_path / "glove.txt").write_text("red 1 2 3\nother 9 9 9\nbox -1 -2 -3\n")
    inputs = fitted(embeddings=str(tmp_path / "glove.txt"))
    vectors, number_of = inputs.word_vectors(), inputs.vocabulary.number_of
    assert vectors[number_of["red"]].tolist() == [1, 2, 3]
    assert vectors[number_of["box"]].tolist() == [-1, -2, -3]
    rest = np.setdiff1d(np.arange(1, len(vectors)), [number_of["red"], number_of["box"]])
    # 0.1 times the mean 2.3 and the spread 5.0 of the file's numbers: 0.55 at root mean square.
    assert 0.3 < float(vectors[rest].square().mean().sqrt()) < 0.8
    assert (vectors[0] == 0).all()
    assert inputs.vector_size == 3


def test_word_vectors_of_a_pretrained_model_are_those_it_reads_the_pieces_with(tmp_path):
    from safetensors.torch import load_file

    folder = write_tiny_encoder(tmp_path / "tiny")
    inputs = fitted(encoder=str(folder))
    pieces = load_file(folder / "model.safetensors")["embeddings.word_embeddings.weight"]
    vectors, number_of = inputs.word_vectors(), inputs.vocabulary.number_of
    assert torch.equal(vectors[number_of["red"]], pieces[8])
    assert torch.equal(vectors[number_of["box"]], pieces[11])
    assert torch.equal(vectors[number_of["tea"]], pieces[3])  # [UNK]
    assert (vectors[0] == 0).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"embedding_size": 0}, "embedding_size must be at least 1; got 0"),
        ({"category_size": 0}, "category_size must be at least 1; got 0"),
        ({"max_tokens": 0}, "max_tokens must be at least 1; got 0"),
        ({"embeddings": "a.txt", "encoder": "b"}, "give embeddings= or encoder=, not both"),
    ],
)
def test_settings_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(RankPolicyError, match=message):
        fitted(**changes)


def test_a_vocabulary_that_is_empty_is_told():
    texts_alone = from_click_table(TABLE.drop("age", "kind"))
    with pytest.warns(
        UserWarning, match="no word or n-gram of the training data was seen by 4 users, so texts hold no information"
    ):
        fit(new_model(min_users=4), texts_alone)


def many_users(num_users):
    """Each user asks for tea and for a word of their own; the last session is one more of the first user."""
    return polars.DataFrame(
        {
            "query_text": [text for user in range(num_users) for text in ("tea", f"word{user}own")] + ["tea"],
            "item_text": ["pot"] * (2 * num_users + 1),
            "clicked": [1] * (2 * num_users + 1),
            "user": [f"user{user}" for user in range(num_users) for _ in range(2)] + ["user0"],
        }
    )


def test_by_default_five_users_must_have_seen_a_word_where_users_are_known():
    assert MODELS["matching-cross"]().min_users is None
    model = new_model(min_users=None, ngrams=())
    assert fit(model, from_click_table(many_users(5))).vocabulary.words == ("pot", "tea")
    assert "word0own" in fit(model, from_click_table(many_users(5).drop("user"))).vocabulary.words
    with pytest.raises(RankPolicyError, match="min_users=2 needs the user of each query"):
        fit(new_model(), from_click_table(many_users(5).drop("user")))


def test_queries_of_which_nothing_is_left_are_told(recwarn):
    fit(new_model(min_users=None, ngrams=()), from_click_table(many_users(5)))
    assert not recwarn.list
    own_words = many_users(5).filter(polars.col("query_text") != "tea")
    with pytest.warns(UserWarning, match="100 % of the training queries have no word or n-gram that 5 users have seen"):
        fit(new_model(min_users=None, ngrams=()), from_click_table(own_words))
