import json
import zipfile

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.metrics import ndcg

TRAIN = rp.make_web_search(6, num_features=8)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("bundle") / "model.rp"
    rp.ListNet(epochs=1, model=rp.models.MLP(hidden=(4,))).fit(TRAIN).save(path)
    return path


def changed(model, path, change):
    """A copy of the model after ``change(manifest, files)``."""
    with zipfile.ZipFile(model) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(files.pop("manifest.json"))
    change(manifest, files)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        for name, content in files.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda manifest, files: manifest.pop("ranker"), "holds a 'None' ranker"),
        (lambda manifest, files: manifest.update(settings=[1]), "settings in manifest.json must hold"),
        (lambda manifest, files: manifest["fitted"].clear(), "num_features_ in the file is None"),
        (lambda manifest, files: manifest["settings"]["model"].update(hidden=[9]), r"weight is .* of shape \(4, 16\)"),
        (
            lambda manifest, files: manifest["fitted"].update(num_features_=9),
            "of the scaling must be .* for 9 features",
        ),
        (lambda manifest, files: manifest.update(sha256={}), "safetensors has no sha256"),
        (lambda manifest, files: manifest.pop("sha256"), "safetensors has no sha256"),
        (lambda manifest, files: manifest.update(sha256=3), "not a rankpolicy model"),
        (lambda manifest, files: files.update({"more.py": b"print()"}), "more.py has no sha256"),
        (lambda manifest, files: manifest.update(format=1), "reads format 2. Load it with that version"),
    ],
)
def test_a_file_that_is_not_whole_is_refused_in_words(change, message, model, tmp_path):
    with pytest.raises(rp.RankPolicyError, match=message):
        rp.load(changed(model, tmp_path / "changed.rp", change))


def test_every_flipped_byte_is_noticed_or_harmless(model, tmp_path):
    content, whole = model.read_bytes(), rp.load(model)
    for place in range(0, len(content), 29):
        flipped = bytearray(content)
        flipped[place] ^= 0xFF
        (tmp_path / "flipped.rp").write_bytes(flipped)
        try:
            loaded = rp.load(tmp_path / "flipped.rp")
        except rp.RankPolicyError:
            continue
        assert loaded.to_dict() == whole.to_dict()
        np.testing.assert_array_equal(loaded.predict(TRAIN), whole.predict(TRAIN))


@pytest.mark.parametrize(
    ("reward", "saved_as"), [(rp.metrics.parse_metric("mean(ap, ndcg@5)"), "mean(ap, ndcg@5)"), (ndcg, "ndcg")]
)
def test_a_reward_is_saved_by_its_name(reward, saved_as, tmp_path):
    rp.PGRank(epochs=1, num_networks=1, reward=reward).fit(TRAIN).save(tmp_path / "model.rp")
    assert rp.load(tmp_path / "model.rp").reward == saved_as


def test_a_model_of_a_newer_version_loads_with_a_warning(tmp_path):
    path = tmp_path / "model.rp"
    rp.ListNet(epochs=1).fit(rp.make_web_search(5)).save(path)
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(files["manifest.json"])
    manifest["versions"]["rankpolicy"] = "99.1"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (files | {"manifest.json": json.dumps(manifest).encode()}).items():
            archive.writestr(name, content)
    with pytest.warns(UserWarning, match=r"made with rankpolicy 99.1, newer than .* Update rankpolicy"):
        rp.load(path)
