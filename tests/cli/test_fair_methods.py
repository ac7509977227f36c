"""Fair methods from the command line give what they give in Python."""

import csv

import numpy as np
import pytest

import rankpolicy as rp

DATA, HELD_OUT = (rp.data.make_fair_synthetic(size, random_state=seed) for seed, size in ((0, 40), (1, 150)))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Training and held-out data as tables."""
    folder = tmp_path_factory.mktemp("tables")
    for name, data in (("train", DATA), ("valid", HELD_OUT)):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["qid", "label", "gender", "x1", "x2"])
            writer.writerows(zip(data.query_of_item, data.labels, data.groups, *data.features.T, strict=True))
    return folder


@pytest.mark.parametrize(
    ("method", "settings", "ranker"),
    [
        ("fa-ir", ["min_proportion=0.5", "alpha=0.3"], rp.rankers.FAStarIR(min_proportion=0.5, alpha=0.3)),
        (
            "equity-of-attention",
            ["num_rankings=4", "quality=0.7"],
            rp.rankers.EquityOfAttention(num_rankings=4, quality=0.7),
        ),
        (
            "fair-exposure",
            ["certify=0.9", "max_disparity=0.03", "gain=linear", "relevance=regression", "wrong_groups=0.05"],
            rp.FairExposure(
                certify=0.9, max_disparity=0.03, gain="linear", relevance=("regression",), wrong_groups=0.05
            ),
        ),
    ],
)
def test_train_and_predict(rankpolicy, files, tmp_path, method, settings, ranker):
    columns = ["--qid", "qid", "--label", "label", "--protected", "gender"]
    data = ["--data", files / "train.csv", "--valid", files / "valid.csv", "--out", tmp_path / "model.rp"]
    assigned = [argument for setting in settings for argument in ("--set", setting)]
    trained = rankpolicy("train", "--method", method, *data, *columns, *assigned)
    assert trained.status == 0, trained.stderr
    train, valid = (
        rp.data.read_csv(files / f"{name}.csv", qid="qid", label="label", protected="gender")
        for name in ("train", "valid")
    )
    expected = ranker.fit(train, valid=valid, progress=False)
    loaded = rp.load(tmp_path / "model.rp")
    np.testing.assert_allclose(loaded.predict(valid), expected.predict(valid), rtol=1e-5)
    if method == "fair-exposure":
        assert loaded.report_["certificate"] == expected.report_["certificate"]


def test_what_cannot_be_certified_is_one_line(rankpolicy, files, tmp_path):
    refused = rankpolicy(
        "train", "--method", "fair-exposure", "--data", files / "train.csv", "--out", tmp_path / "model.rp",
        "--qid", "qid", "--label", "label", "--protected", "gender", "--set", "certify=0.9", "--set", "max_disparity=0.01",
    )  # fmt: skip
    assert refused.status == 2
    assert "pass them as valid=" in refused.stderr
