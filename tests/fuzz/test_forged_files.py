"""Model files of strangers: an error or a working model, never a crash, a hang or a large allocation."""

import json
import random
import re
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load as load_tensors, save as save_tensors

import rankpolicy as rp
from rankpolicy.rankers.networks.network import NetworkRanker
from tests.fuzz.forging import forged, parts_of, write_parts

WEB = rp.make_web_search(30, items_per_query=(3, 6), num_features=8, random_state=0)
DATA = replace(WEB, groups_by_query=np.arange(WEB.num_items) % 2)
QUICK = {"epochs": 1, "num_networks": 1}
RANKERS = {
    "trees": lambda: rp.LambdaMART(num_trees=3, num_leaves=4, min_items_in_leaf=5),
    "network": lambda: rp.PGRank(model=rp.models.MLP(hidden=(4,)), **QUICK),
    "linear": lambda: rp.CoordinateAscent(),
    "post-processing": lambda: rp.FairExposure(relevance=("regression",), num_samples=5, num_folds=2),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forged")
    for name, make in RANKERS.items():
        make().fit(DATA).save(folder / f"{name}.rp")
    bandit = rp.bandits.BANDITS["cascade-kl-ucb"](num_items=5, cutoff=2)
    bandit.learn([0, 1], [1, 0])
    bandit.save(folder / "bandit.rp")
    return folder


def changed_line(name, text, *, tree=0):
    """A change of one line of one tree, with the sizes of trees set right."""

    def change(manifest, files):
        booster = files["booster.txt"].decode()
        head, *trees = re.split(r"(?=^Tree=\d+\n)", booster, flags=re.MULTILINE)
        last, end, tail = trees[-1].partition("end of trees")
        trees[-1] = last
        trees[tree] = re.sub(rf"^{name}=.*$", f"{name}={text}", trees[tree], flags=re.MULTILINE)
        sizes = " ".join(str(len(each)) for each in trees)
        head = re.sub(r"^tree_sizes=.*$", f"tree_sizes={sizes}", head, flags=re.MULTILINE)
        files["booster.txt"] = (head + "".join(trees) + end + tail).encode()

    return change


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("left_child", "1 2 99"),  # out of range: crashed
        ("left_child", "0 2 -1"),  # a cycle: hung
        ("right_child", "-2 1 -4"),
        ("left_child", "1 2"),
        ("num_leaves", "2000000000"),
        ("num_leaves", "5"),
        ("split_feature", "0 1 800000"),
        ("split_feature", "0 1 -3"),
        ("threshold", "nan 0 0"),
        ("threshold", "a b c"),
        ("leaf_value", "nan 0 0 0"),
        ("leaf_value", "1e999 0 0 0"),
        ("decision_type", "1 2 2"),  # a category where there are none
        ("num_cat", "7"),
        ("is_linear", "1"),
    ],
)
def test_trees_that_are_none_are_refused(saved, name, text):
    with pytest.raises(rp.RankPolicyError, match="text of the trees is damaged"):
        rp.load(forged(saved / "trees.rp", changed_line(name, text)))


def test_cut_trees_are_refused(saved):
    manifest, files = parts_of(saved / "trees.rp")
    booster = files["booster.txt"]
    rng = random.Random(0)
    for _ in range(60):
        cut = booster[: rng.randrange(booster.index(b"end of trees"))]
        write_parts(saved / "cut.rp", manifest, files | {"booster.txt": cut})
        with pytest.raises(rp.RankPolicyError):
            rp.load(saved / "cut.rp")


def test_tree_sizes_are_compared(saved):
    def change(manifest, files):
        files["booster.txt"] = re.sub(rb"tree_sizes=\d+", b"tree_sizes=999999", files["booster.txt"])

    with pytest.raises(rp.RankPolicyError, match="tree_sizes"):
        rp.load(forged(saved / "trees.rp", change))


@pytest.mark.parametrize("value", [None, 1, "text", [1], {"a": [1]}, True, 1e400, -1])
@pytest.mark.parametrize("field", ["format", "versions", "sha256", "kind", "ranker", "settings", "fitted"])
def test_manifest_fields_of_a_wrong_type_are_refused(saved, field, value):
    manifest, files = parts_of(saved / "network.rp")
    if field == "sha256":
        write_parts(saved / "field.rp", manifest | {field: value}, files, checksums=False)
    else:
        write_parts(saved / "field.rp", manifest | {field: value}, files)
    try:
        rp.load(saved / "field.rp").predict(DATA)
    except rp.RankPolicyError:
        return
    assert field in ("versions", "kind"), (field, value)


def test_parts_that_the_manifest_does_not_list_are_refused(saved):
    manifest, files = parts_of(saved / "network.rp")
    write_parts(saved / "more.rp", manifest, files | {"more": b"x"}, checksums=False)
    with pytest.raises(rp.RankPolicyError, match="more has no sha256"):
        rp.load(saved / "more.rp")


def test_a_file_that_inflates_is_refused_before_it_does(saved):
    manifest, files = parts_of(saved / "network.rp")
    write_parts(saved / "bomb.rp", manifest, files | {"zeros": bytes(50_000_000)}, compression=zipfile.ZIP_DEFLATED)
    assert (saved / "bomb.rp").stat().st_size < 200_000
    with pytest.raises(rp.RankPolicyError, match="is compressed"):
        rp.load(saved / "bomb.rp")


def test_a_document_that_inflates_is_refused_before_it_does(tmp_path):
    import gzip

    (tmp_path / "m.json.gz").write_bytes(gzip.compress(b"[" + b" " * 90_000_000 + b"]"))
    with pytest.raises(rp.RankPolicyError, match="must not unpack to more than"):
        rp.load(tmp_path / "m.json.gz")


@pytest.mark.parametrize(
    "change_of", [lambda w: w * torch.nan, lambda w: w.double(), lambda w: w.to(torch.int32), lambda w: w[..., :1]]
)
@pytest.mark.parametrize("file", ["weights.safetensors", "scaling.safetensors"])
def test_weights_that_no_training_gives_are_refused(saved, file, change_of):
    def change(manifest, files):
        tensors = {name: change_of(tensor).contiguous() for name, tensor in load_tensors(files[file]).items()}
        files[file] = save_tensors(tensors)

    with pytest.raises(rp.RankPolicyError):
        rp.load(forged(saved / "network.rp", change))


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest, files: manifest["settings"]["model"].update(hidden=[40_000, 60_000]),
        lambda manifest, files: manifest["settings"]["model"].update(hidden=[2**40]),
        lambda manifest, files: manifest["settings"].update(num_networks=10**9),
        lambda manifest, files: manifest["fitted"].update(num_features_=2**30),
        lambda manifest, files: manifest["fitted"].update(num_features_="8"),
        lambda manifest, files: manifest["fitted"].update(feature_names_=[1, 2]),
        lambda manifest, files: manifest["fitted"].update(evals_result_=[]),
        lambda manifest, files: manifest["settings"].update(epochs="many"),
        lambda manifest, files: manifest["settings"].update(scaling=["quantile"]),
    ],
)
def test_sizes_and_settings_are_checked_before_anything_is_allocated(saved, monkeypatch, change):
    def allocate(self, inputs):
        raise AssertionError("a network was made before the shapes were compared")

    path = forged(saved / "network.rp", change)
    monkeypatch.setattr(NetworkRanker, "_new_network", allocate)
    with pytest.raises(rp.RankPolicyError) as error:
        rp.load(path)
    assert "a network was made" not in str(error.value)


@pytest.mark.parametrize("settings", [{"num_items": 10**9}, {"cutoff": 10**9}, {"window": 10**9}, {"num_items": "5"}])
def test_a_bandit_of_another_size_than_its_arrays_is_refused(saved, settings):
    with pytest.raises(rp.RankPolicyError):
        rp.load(forged(saved / "bandit.rp", lambda manifest, files: manifest["settings"].update(settings)))


def mutated(value, rng):
    """A JSON value with one of its parts replaced."""
    odd = [
        None,
        True,
        -1,
        0,
        3,
        1.5,
        10**12,
        -(10**12),
        float("nan"),
        float("inf"),
        "",
        "x",
        "é" * 50,
        [],
        {},
        [[]],
        {"a": 1},
    ]
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(sorted(value))
        if rng.random() < 0.1:
            return {name: each for name, each in value.items() if name != key}
        return value | {key: mutated(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.7:
        place = rng.randrange(len(value))
        return [*value[:place], mutated(value[place], rng), *value[place + 1 :]]
    return rng.choice(odd)


@pytest.mark.parametrize("name", [*RANKERS, "bandit"])
def test_random_changes_of_a_file_give_an_error_or_a_model_that_works(saved, name):
    """Manifest and parts changed at random; whatever loads must rank, or refuse to with an error of ours."""
    manifest, files = parts_of(saved / f"{name}.rp")
    rng = random.Random(name)
    loaded = 0
    for _ in range(150):
        changed, parts = mutated(manifest, rng), dict(files)
        if rng.random() < 0.4:
            part = rng.choice(sorted(parts))
            content = bytearray(parts[part])
            for _ in range(rng.randint(1, 4)):
                content[rng.randrange(len(content))] = rng.randrange(256)
            parts[part] = bytes(content[: rng.randrange(len(content))] if rng.random() < 0.3 else content)
        write_parts(saved / "random.rp", changed, parts)
        try:
            model = rp.load(saved / "random.rp")
            if name == "bandit":
                assert len(set(model.rank().tolist())) == len(model.rank())
            else:
                assert np.isfinite(model.predict(DATA)).all()
                json.dumps(model.to_dict(), allow_nan=True)
                repr(model)
            loaded += 1
        except rp.RankPolicyError:
            continue
    assert loaded > 0
