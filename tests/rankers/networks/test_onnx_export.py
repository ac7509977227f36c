"""Networks of texts and side information as ONNX files: the scores of onnxruntime are torch's."""

import logging

import numpy as np
import pytest
import torch

import rankpolicy as rp
from rankpolicy.data import from_texts
from rankpolicy.data.padding import Padding
from rankpolicy.data.texts.text_pairs import SideTensors, TextPairs, TokenTable
from rankpolicy.models import MODELS, Average, Match
from rankpolicy.models.mlp import MLPNetwork
from rankpolicy.models.text_and_side import TextAndSide
from rankpolicy.rankers.networks import onnx_export
from rankpolicy.rankers.networks.onnx_export import AXES, export_onnx, padded_inputs

NUM_WORDS, SIZE = 30, 4


def network(name, num_categories=(), num_numbers=0, **settings):
    core = MODELS[name](hidden=(8, 8), dropout=0.5, **settings).new_core(SIZE, num_numbers + 3 * len(num_categories))
    return TextAndSide(core, torch.randn(NUM_WORDS, SIZE), num_categories, 3, num_numbers)


def drawn_pairs(sizes, num_categories, num_numbers, *, seed):
    """Pairs of queries with these numbers of items; some texts have no tokens."""
    rng = np.random.default_rng(seed)
    num_items = sum(sizes)

    def texts(count):
        return TokenTable.of([rng.integers(1, NUM_WORDS, rng.integers(0, 7)).tolist() for _ in range(count)])

    codes = [rng.integers(0, count, num_items) for count in num_categories]
    side = SideTensors(
        torch.from_numpy(rng.normal(size=(num_items, num_numbers)).astype(np.float32)),
        torch.from_numpy(np.stack(codes, 1) if codes else np.zeros((num_items, 0), np.int64)),
    )
    query_of_pair = torch.from_numpy(
        np.repeat(rng.permutation(len(sizes)), sizes)
    )  # texts are in an order of their own
    return TextPairs(texts(len(sizes)), texts(num_items), query_of_pair, torch.arange(num_items), side)


@pytest.fixture(scope="module")
def onnxruntime():
    pytest.importorskip("onnx")
    pytest.importorskip("onnxscript")
    return pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def exported(onnxruntime, tmp_path_factory):
    """Two networks with side information, as one file; and the function that runs it."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        networks = Average([network("matching-cross", (3, 5), 2), network("cross-network", (3, 5), 2)])
    path = tmp_path_factory.mktemp("onnx") / "search.onnx"
    export_onnx(networks.train(), path)
    assert all(module.training for module in networks.modules()), "export must leave the network as it is"
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return networks, path, session


@pytest.mark.parametrize("match", ["product-found", "attention"])
def test_matches_that_read_tokens_score_the_same_in_the_file(onnxruntime, tmp_path, match):
    with torch.random.fork_rng():
        torch.manual_seed(1)
        given = network("deep-matching-cross", (3,), 1, match=match).eval()
    export_onnx(given, tmp_path / "search.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "search.onnx", providers=["CPUExecutionProvider"])
    pairs = drawn_pairs([2, 4, 1], (3,), 1, seed=5)
    padding = Padding.of_sizes(np.array([2, 4, 1]))
    (scores,) = session.run(["scores"], padded_inputs(pairs, padding))
    with torch.no_grad():
        ours = given(pairs).numpy()
    assert scores[padding.mask] == pytest.approx(ours, abs=1e-5)


def test_inputs_and_output_have_their_names_and_axes(exported):
    session = exported[2]
    shapes = {given.name: given.shape for given in session.get_inputs()}
    assert shapes == {**{name: list(axes) for name, axes in AXES.items()}} | {
        "numbers": ["query", "item", 2],
        "categories": ["query", "item", 2],
    }
    assert [(given.name, given.shape) for given in session.get_outputs()] == [("scores", ["query", "item"])]


@pytest.mark.parametrize("sizes", [[3, 5, 1], [1], [2] * 9, [12]])
def test_scores_are_those_of_torch(exported, sizes):
    networks, _, session = exported
    pairs = drawn_pairs(sizes, (3, 5), 2, seed=len(sizes))
    padding = Padding.of_sizes(np.array(sizes))
    (scores,) = session.run(None, padded_inputs(pairs, padding))
    with torch.no_grad():
        expected = networks.eval()(pairs).numpy()
    np.testing.assert_allclose(padding.unpad(torch.from_numpy(scores)).numpy(), expected, rtol=1e-5, atol=1e-5)
    assert (scores[~padding.mask] == -np.inf).all()


def test_what_a_padded_item_holds_changes_nothing(exported):
    session = exported[2]
    inputs = padded_inputs(drawn_pairs([2, 4], (3, 5), 2, seed=0), Padding.of_sizes(np.array([2, 4])))
    before = session.run(None, inputs)[0]
    inputs["item_tokens"][0, 2:] = 7
    inputs["numbers"][0, 2:] = np.nan
    inputs["categories"][0, 2:] = 1
    np.testing.assert_array_equal(session.run(None, inputs)[0], before)


def test_more_padding_changes_nothing(exported):
    session = exported[2]
    inputs = padded_inputs(drawn_pairs([2, 4], (3, 5), 2, seed=0), Padding.of_sizes(np.array([2, 4])))
    before = session.run(None, inputs)[0]
    more = {
        name: np.pad(values, [(0, 0), *[(0, 3 if axis < len(AXES[name]) else 0) for axis in range(1, values.ndim)]])
        for name, values in inputs.items()
    }
    after = session.run(None, more)[0]
    np.testing.assert_allclose(after[:, :4], before, rtol=1e-6, atol=1e-6)
    assert (after[:, 4:] == -np.inf).all()


def test_inputs_by_hand():
    pairs = TextPairs(
        TokenTable.of([[5], [6, 7]]),
        TokenTable.of([[1, 2, 3], [4]]),
        torch.tensor([1, 0, 0]),  # the first query has the second text
        torch.tensor([1, 0, 1]),
        SideTensors(torch.tensor([[0.5], [1.5], [2.5]]), torch.tensor([[2], [1], [0]])),
    )
    inputs = padded_inputs(pairs, Padding.of_sizes(np.array([1, 2])))
    assert inputs["query_tokens"].tolist() == [[6, 7], [5, 0]]
    assert inputs["item_tokens"].tolist() == [[[4, 0, 0], [0, 0, 0]], [[1, 2, 3], [4, 0, 0]]]
    assert inputs["numbers"].tolist() == [[[0.5], [0.0]], [[1.5], [2.5]]]
    assert inputs["categories"].tolist() == [[[2], [0]], [[1], [0]]]
    assert inputs["mask"].tolist() == [[True, False], [True, True]]


def test_texts_without_a_token_have_one_column_of_padding():
    pairs = TextPairs(TokenTable.of([[]]), TokenTable.of([[]]), torch.tensor([0]), torch.tensor([0]))
    inputs = padded_inputs(pairs, Padding.of_sizes(np.array([1])))
    assert inputs["query_tokens"].tolist() == [[0]]
    assert inputs["item_tokens"].tolist() == [[[0]]]
    assert inputs["numbers"].shape == inputs["categories"].shape == (1, 1, 0)


def test_a_ranker_without_side_information(onnxruntime, tmp_path, caplog, recwarn):
    words = ["apple", "pear", "plum", "fig"]
    data = from_texts(
        words, [words[: 2 + place % 3] for place in range(4)], [[1, 0, 0, 0][: 2 + p % 3] for p in range(4)]
    )
    ranker = rp.PGRank(model=Match(embedding_size=4, hidden=(8,), num_buckets=64), epochs=1).fit(data)
    with caplog.at_level(logging.WARNING):
        ranker.export_onnx(tmp_path / "search.onnx")
    assert not caplog.records
    assert not recwarn.list
    assert [path.name for path in tmp_path.iterdir()] == ["search.onnx"]
    session = onnxruntime.InferenceSession(tmp_path / "search.onnx", providers=["CPUExecutionProvider"])
    assert session.get_modelmeta().custom_metadata_map == {"method": "pg-rank", "rankpolicy_version": rp.__version__}
    inputs = ranker.onnx_inputs(data)
    assert inputs["numbers"].shape == inputs["categories"].shape == (4, 4, 0)
    (scores,) = session.run(None, inputs)
    np.testing.assert_allclose(scores[inputs["mask"]], ranker.predict(data), rtol=1e-5, atol=1e-5)


def test_scores_that_are_not_those_of_torch_are_refused(exported, tmp_path, monkeypatch):
    _, path, _ = exported
    monkeypatch.setattr(onnx_export, "_onnx_bytes", lambda networks: path.read_bytes())
    with pytest.raises(rp.RankPolicyError, match="the exported scores must be torch's within 1e-05"):
        export_onnx(network("matching-cross", (3, 5), 2), tmp_path / "other.onnx")
    assert not list(tmp_path.iterdir())


def test_other_networks_are_refused(tmp_path):
    with pytest.raises(
        rp.RankPolicyError, match=r"for networks of texts and side information.* network is MLPNetwork\. Use save"
    ):
        export_onnx(Average([MLPNetwork(3)]), tmp_path / "mlp.onnx")


def test_a_folder_that_does_not_exist_is_named(exported, tmp_path, monkeypatch):
    networks, path, _ = exported
    monkeypatch.setattr(onnx_export, "_onnx_bytes", lambda networks: path.read_bytes())
    with pytest.raises(rp.RankPolicyError, match="must be in a directory that exists"):
        export_onnx(networks, tmp_path / "nowhere" / "search.onnx")


@pytest.mark.parametrize("missing", ["onnx", "onnxscript"])
def test_missing_packages_are_named(missing, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_export.importlib.util, "find_spec", lambda name: None if name == missing else object())
    with pytest.raises(rp.MissingDependencyError, match=rf"needs {missing}: pip install 'rankpolicy\[onnx\]'"):
        export_onnx(network("match"), tmp_path / "search.onnx")
