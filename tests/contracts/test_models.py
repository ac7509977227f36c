"""What every model promises, over the one table that lists them."""

import inspect
import re
import subprocess
import sys
from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest
import torch

import rankpolicy as rp
from rankpolicy.declarations.setting_texts import describe_settings
from rankpolicy.declarations.settings import declaration_of
from rankpolicy.models import MODELS, as_model
from rankpolicy.models.average import scores_of_all
from rankpolicy.types import NetworkInputs
from tests.tiny_encoder import write_tiny_encoder

FEATURES = rp.make_web_search(6, num_features=8, random_state=0)
TEXTS = rp.from_texts(
    ["where is the red ball ?", "who is blue ?", "the box"],
    [["the red ball is here", "blue", "box"], ["the blue ball", "red red red"], ["a box is a box", "ball"]],
    [[1, 0, 0], [1, 0], [1, 0]],
)
ALL = pytest.mark.parametrize("name", MODELS)
SMALL = {
    "hidden": (8, 8),
    "width": 8,
    "dropout": 0.5,
    "recurrent": 4,
    "embedding_size": 4,
    "feature_layers": 2,
    "category_size": 2,
}
NEEDS_ENCODER = ("bilstm", "encoder")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return str(write_tiny_encoder(tmp_path_factory.mktemp("encoder")))


@pytest.fixture
def model(name, request):
    """A small model of this name, with all it needs."""
    settings = {key: value for key, value in SMALL.items() if key in setting_names(name)}
    if name in NEEDS_ENCODER:
        settings |= {"encoder": request.getfixturevalue("encoder")}
    if name == "encoder":
        settings |= {"encoding": "both"}
    return MODELS[name](**settings)


def setting_names(name):
    return [field.name for field in fields(MODELS[name])]


def data_for(model):
    return FEATURES if model.reads == "features" else TEXTS


def built(model, seed=0):
    inputs = model.fit_inputs(data_for(model), scaling="standardize", device="cpu")
    return inputs, model.new_network(inputs, generator=torch.Generator().manual_seed(seed)).eval()


@ALL
def test_a_name_stands_for_the_value_with_the_defaults(name):
    assert as_model(name) == MODELS[name]()
    assert MODELS[name].name == name
    assert MODELS[name].reads in ("features", "texts")


@ALL
def test_settings_survive_a_dict(name, model):
    assert as_model(model.to_dict()) == model
    assert as_model(model) is model


@ALL
def test_every_setting_is_explained(name):
    for described in describe_settings(MODELS[name]):
        assert len(described.help) > 15, described.name
        assert f"{described.name} : " in inspect.getdoc(MODELS[name])


@ALL
def test_a_setting_it_does_not_have_is_refused(name):
    with pytest.raises(
        rp.RankPolicyError, match=rf"{MODELS[name].__name__} has no setting 'gizmo'\. (Known:|It has no settings)"
    ):
        MODELS[name](gizmo=3)


@ALL
def test_a_number_out_of_range_is_refused(name):
    for setting in setting_names(name):
        declared = declaration_of(MODELS[name], setting)
        default = getattr(MODELS[name](), setting)
        if declared.at_least is None:
            continue
        low = declared.at_least - 1
        kind = int if default is None else type(default)
        with pytest.raises(rp.RankPolicyError, match=f"{setting} must be at least {declared.at_least:g}"):
            MODELS[name](**{setting: (low,) if isinstance(default, tuple) else kind(low)})


UNREAD = {
    "mlp": ({"hidden": (), "dropout": 0.1}, "dropout", "hidden has at least one layer"),
    "mcan": ({"embeddings": "glove.txt", "embedding_size": 7}, "embedding_size", "embeddings is None"),
    "encoder": ({"encoding": "apart", "hidden": (7,)}, "hidden", 'encoding is "together" or "both"'),
    **dict.fromkeys(
        (
            "matching-cross",
            "deep-matching-cross",
            "match",
            "latent-cross",
            "concatenation",
            "concatenation-cross",
            "cross-network",
        ),
        ({"embeddings": "glove.txt", "embedding_size": 7}, "embedding_size", "neither embeddings nor encoder is given"),
    ),
}


@ALL
def test_a_changed_setting_that_nothing_reads_is_refused(name):
    conditional = [d.name for d in describe_settings(MODELS[name]) if d.read_when]
    assert bool(conditional) == (name in UNREAD)
    if name in UNREAD:
        settings, unread, condition = UNREAD[name]
        message = f"{unread}=.* would not be read: it is read only when {re.escape(condition)}"
        with pytest.raises(rp.RankPolicyError, match=message):
            MODELS[name](**settings)


@ALL
def test_scores_are_finite_and_each_is_that_of_its_item_alone(name, model):
    inputs, network = built(model)
    assert isinstance(inputs, NetworkInputs)
    read = inputs.read(data_for(model))
    if inputs.needs_queries:
        return  # the next test
    with torch.no_grad():
        scores = scores_of_all(network, read)
        order = torch.randperm(len(scores), generator=torch.Generator().manual_seed(1))
        alone = torch.cat([network(read[row : row + 1]) for row in range(len(scores))])
        torch.testing.assert_close(network(read[order]), scores[order], atol=1e-5, rtol=1e-4)
    assert scores.shape == (data_for(model).num_items,)
    assert scores.isfinite().all()
    torch.testing.assert_close(alone, scores, atol=1e-5, rtol=1e-4)


WHOLE_QUERIES = {
    "mlp": rp.models.MLP(hidden=(8, 8), query_context="mean"),
    "highway": rp.models.Highway(hidden=(8, 8), query_context="mean"),
    "list-transformer": rp.models.ListTransformer(width=8, num_blocks=2),
}


@pytest.mark.parametrize("whole", WHOLE_QUERIES.values(), ids=str)
def test_scores_of_a_query_do_not_depend_on_other_queries_and_follow_its_items(whole):
    inputs, network = built(whole)
    assert inputs.needs_queries
    rng = np.random.default_rng(0)
    data = FEATURES
    rows = [np.arange(start, end) for start, end in pairwise(data.offsets)]
    with torch.no_grad():
        scores = scores_of_all(network, inputs.read(data)).numpy()
        assert np.isfinite(scores).all()
        by_rows = scores_of_all(network, inputs.read_by_rows(data)).numpy()
        np.testing.assert_allclose(by_rows, scores, atol=1e-5)
        for number, own in enumerate(rows):
            np.testing.assert_allclose(scores_of_all(network, inputs.read(data[[number]])), scores[own], atol=1e-5)
            shuffled = rng.permutation(own)
            alone = rp.from_arrays(data.features[shuffled], group=[len(own)])
            np.testing.assert_allclose(scores_of_all(network, inputs.read(alone)), scores[shuffled], atol=1e-5)
        changed = data.features[rows[0]].copy()
        changed[0] += 3
        different = scores_of_all(network, inputs.read(rp.from_arrays(changed, group=[len(changed)])))
    assert np.abs(different[1:].numpy() - scores[rows[0][1:]]).max() > 1e-4, "the other items know of the change"


def test_every_model_that_reads_whole_queries_is_tested_as_one():
    reads_queries = {
        name
        for name in MODELS
        if "query_context" in setting_names(name) or getattr(MODELS[name](), "context", "none") != "none"
    }
    assert reads_queries == set(WHOLE_QUERIES)


@ALL
def test_initial_weights_and_dropout_follow_the_generator_and_leave_the_global_one_alone(name, model):
    from rankpolicy.models.layers import drawing_from

    before = torch.get_rng_state()
    outputs = []
    for seed in (0, 0, 1):
        inputs, network = built(model, seed)
        network.train()
        with drawing_from(network, torch.Generator().manual_seed(seed)):
            outputs.append(network(inputs.read(data_for(model))).detach())
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(outputs[0], outputs[1])
    assert not torch.equal(outputs[0], outputs[2])


@ALL
def test_a_saved_ranker_scores_the_same_and_knows_its_model(name, model, tmp_path):
    data = data_for(model)
    ranker = rp.ListNet(model=model, epochs=1).fit(data)
    ranker.save(tmp_path / "model.rp")
    loaded = rp.load(tmp_path / "model.rp")
    assert loaded.model == model
    assert loaded.get_params() == ranker.get_params()
    np.testing.assert_allclose(loaded.predict(data), ranker.predict(data), rtol=1e-5, atol=1e-6)


@ALL
def test_a_ranker_reaches_the_settings_of_its_model(name, model):
    ranker = rp.PGRank(model=model)
    deep = ranker.get_params()
    assert {key for key in deep if key.startswith("model__")} == {f"model__{each}" for each in setting_names(name)}
    assert "model__" not in "".join(ranker.get_params(deep=False))
    if "dropout" in setting_names(name):
        assert ranker.set_params(model__dropout=0.25).model == replace(model, dropout=0.25)
    with pytest.raises(rp.RankPolicyError, match=rf"{type(model).__name__} has no setting 'depth'"):
        ranker.set_params(model__depth=3)


def test_one_model_is_imported_without_the_others_and_without_transformers():
    code = (
        "import sys, rankpolicy as rp\n"
        "assert 'torch' not in sys.modules\n"
        "list(rp.models.MODELS), rp.models.MLP()\n"
        "loaded = [name for name in ('rankpolicy.models.mcan', 'rankpolicy.models.encoder', 'transformers') if name in sys.modules]\n"
        "assert not loaded, loaded\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
