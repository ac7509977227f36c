import hashlib
import json
import random
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.models import MODELS
from tests.tiny_encoder import write_tiny_encoder

ITEMS = ["the blue ball is here", "the red ball is here"]


def colours(num_queries, seed):
    """Questions for a ball of one colour; the ball of that colour is the answer."""
    generator = random.Random(seed)
    queries, items, labels = [], [], []
    for _ in range(num_queries):
        wanted = generator.choice(("red", "blue"))
        shown = generator.sample(("red", "blue"), 2)
        queries.append(f"where is the {wanted} ball ?")
        items.append([f"the {colour} ball is {generator.choice(('here', 'there'))}" for colour in shown])
        labels.append([int(colour == wanted) for colour in shown])
    return rp.from_texts(queries, items, labels)


TRAIN, VALID = colours(24, 0), colours(8, 1)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return str(write_tiny_encoder(tmp_path_factory.mktemp("encoder")))


TEXT_MODELS = [name for name in MODELS if MODELS[name].reads == "texts"]


def settings(model, encoder=None):
    return {
        "mcan": {"hidden": (8, 8), "recurrent": 8, "embedding_size": 8},
        "bilstm": {"hidden": (8,), "recurrent": 8, "encoder": encoder, "feature_layers": 2},
        "encoder": {"hidden": (8,), "encoder": encoder, "encoding": "both"},
    }.get(model, {"hidden": (8,), "embedding_size": 8})


def trained(name, encoder=None, ranker=rp.ListNet, model=None, **changes):
    described = {"dropout": 0.0, **settings(name, encoder), **(model or {})}
    if "embeddings" in described:
        del described["embedding_size"]
    return ranker(model=MODELS[name](**described), **{"epochs": 2, "valid_metric": "map", **changes})


@pytest.fixture(scope="module")
def mcan():
    return trained("mcan", epochs=30, learning_rate=1e-2).fit(TRAIN, valid=VALID)


def test_a_text_ranker_learns_which_words_must_meet(mcan):
    assert rp.evaluate(mcan, colours(30, 2), ["map"]).means["map"] == 1.0


@pytest.mark.parametrize("model", TEXT_MODELS)
def test_a_saved_text_ranker_ranks_as_before(model, tmp_path, request):
    encoder = request.getfixturevalue("encoder") if model in ("bilstm", "encoder") else None
    ranker = trained(model, encoder).fit(TRAIN, valid=VALID)
    ranker.save(tmp_path / "model.rp")
    loaded = rp.load(tmp_path / "model.rp")
    np.testing.assert_allclose(loaded.predict(VALID), ranker.predict(VALID), rtol=1e-5, atol=1e-6)


def test_a_new_process_ranks_texts(mcan, tmp_path):
    mcan.save(tmp_path / "model.rp")
    code = (
        "import json, sys, rankpolicy as rp\n"
        f"print(json.dumps(rp.load(sys.argv[1]).rank_texts('where is the red ball ?', {ITEMS!r})))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "model.rp")]
    ranked = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert [item for item, _ in ranked] == ITEMS[::-1]
    assert ranked[0][1] > ranked[1][1]
    assert ranked == [list(pair) for pair in mcan.rank_texts("where is the red ball ?", ITEMS)]


def test_unseen_words_and_equal_items_are_ranked(mcan):
    ranked = mcan.rank_texts("Zyzzyva?", ["never seen", "never seen", "nor this"])
    assert sorted(text for text, _ in ranked) == ["never seen", "never seen", "nor this"]
    assert len({score for text, score in ranked if text == "never seen"}) == 1


def test_word_vectors_of_a_file_reach_words_that_training_never_saw(tmp_path):
    generator = np.random.default_rng(0)
    words = ["where", "is", "the", "red", "blue", "green", "ball", "here", "there", "?"]
    lines = [" ".join([word, *map(str, generator.normal(size=6).round(4))]) for word in words]
    (tmp_path / "glove.txt").write_text("\n".join(lines))
    ranker = trained("mcan", model={"embeddings": str(tmp_path / "glove.txt")}).fit(TRAIN)
    assert "green" in ranker._inputs.vocabulary.words
    member = ranker._network.members[0]
    row = member.words.weight[ranker._inputs.vocabulary.encode("green")[0]]
    np.testing.assert_allclose(row.numpy(), [float(x) for x in lines[5].split()[1:]], rtol=1e-5)


@pytest.mark.parametrize("encoding", ["apart", "together"])
def test_bilstm_ranks_new_texts_whether_it_reads_them_apart_or_together(encoding, encoder, tmp_path):
    ranker = trained("bilstm", encoder, model={"encoding": encoding, "feature_cache": str(tmp_path / "cache")}).fit(
        TRAIN, valid=VALID
    )
    ranker.save(tmp_path / "model.rp")
    loaded = rp.load(tmp_path / "model.rp")
    assert loaded.rank_texts("where is the red ball ?", ITEMS) == ranker.rank_texts("where is the red ball ?", ITEMS)


def test_several_networks_and_other_objectives_read_texts_too(tmp_path):
    ranker = trained("mcan", ranker=rp.PGRank, num_networks=2, reward="ap").fit(TRAIN, valid=VALID)
    ranker.save(tmp_path / "model.rp")
    np.testing.assert_allclose(rp.load(tmp_path / "model.rp").predict(VALID), ranker.predict(VALID), rtol=1e-5)
    assert len(ranker.sample(VALID, num_samples=3, random_state=0)) == VALID.num_queries


def test_the_same_seed_gives_the_same_ranker():
    one, two = (trained("mcan", model={"dropout": 0.2}).fit(TRAIN).predict(VALID) for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_training_goes_on_from_a_checkpoint(tmp_path):
    whole = trained("mcan", epochs=3).fit(TRAIN)
    trained("mcan", epochs=1).fit(TRAIN, checkpoint=tmp_path / "c")
    resumed = trained("mcan", epochs=3).fit(TRAIN, checkpoint=tmp_path / "c", resume=True)
    np.testing.assert_allclose(resumed.predict(VALID), whole.predict(VALID), rtol=1e-5)


FEATURES = rp.make_web_search(4, num_features=8)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda mcan: rp.ListNet(model="mcan").fit(FEATURES), "reads texts; training data has 8 features and no texts"),
        (lambda mcan: mcan.predict(FEATURES), "reads texts; data to rank has 8 features and no texts"),
        (
            lambda mcan: rp.ListNet().fit(TRAIN),
            r"reads features; training data has none, only texts. Choose a text model",
        ),
        (lambda mcan: rp.RankSVM().fit(TRAIN), "reads features; training data has none, only texts"),
        (lambda mcan: rp.FairPGRank().fit(TRAIN), "reads features; training data has none, only texts"),
        (lambda mcan: rp.FairPGRank(model="mcan").fit(FEATURES), "reads texts; training data has 8 features"),
        (lambda mcan: mcan.rank_texts("where?", []), "every query must have at least one item"),
        (lambda mcan: mcan.rank_texts("where?", ["here", ""]), "every item must have a text; item 1 has ''"),
        (lambda mcan: mcan.rank_texts("where?", "here"), "items must be a list of texts; got 'here'"),
        (lambda mcan: trained("mcan", model={"hidden": (8, 4)}), "one or more widths, all equal"),
        (lambda mcan: trained("mcan", model={"max_tokens": 0}), "max_tokens must be at least 3; got 0"),
        (lambda mcan: rp.ListNet(model="encoder").fit(TRAIN), "needs encoder=, the folder of a Hugging Face model"),
    ],
)
def test_texts_and_features_are_not_mixed_up(action, message, mcan):
    with pytest.raises(rp.RankPolicyError, match=message):
        action(mcan)


def test_features_are_ranked_by_no_text(tmp_path):
    with pytest.raises(rp.RankPolicyError, match="reads features; data to rank has none, only texts"):
        rp.ListNet(epochs=1, model=rp.models.MLP(hidden=(4,))).fit(FEATURES).rank_texts("where?", ["here"])


def changed(path, change):
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(files.pop("manifest.json"))
    change(manifest, files)
    manifest["sha256"] = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {"manifest.json": json.dumps(manifest).encode(), **files}.items():
            archive.writestr(name, content)


def another_vocabulary(manifest, files):
    saved = json.loads(files["vocabulary.json"])
    files["vocabulary.json"] = json.dumps({**saved, "words": saved["words"][:-1]}).encode()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (another_vocabulary, "vocabulary must be the one the network was trained with: it has 10.. numbers"),
        (
            lambda manifest, files: manifest["settings"]["model"].update(compression="neural"),
            "weights of another network: .*casts",
        ),
        (lambda manifest, files: manifest["settings"].update(num_networks=2), "weights of another network: members.1"),
        (
            lambda manifest, files: manifest["settings"]["model"].update(recurrent=16),
            "model 'mcan', but members.0.lstm.* is torch.float32 of shape",
        ),
        (lambda manifest, files: manifest["settings"].update(model={"name": "encoder"}), "parts do not fit together"),
        (lambda manifest, files: manifest["settings"].update(model={"name": "mlp"}), "Is the file damaged"),
    ],
)
def test_a_model_file_whose_parts_do_not_belong_together_is_refused(change, message, mcan, tmp_path):
    mcan.save(tmp_path / "model.rp")
    changed(tmp_path / "model.rp", change)
    with pytest.raises(rp.RankPolicyError, match=message):
        rp.load(tmp_path / "model.rp")
