"""--on-disk: features stay on disk, for one file or a folder of files."""

import numpy as np
import pytest

import rankpolicy as rp


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    return tmp_path / "xdg" / "rankpolicy"


@pytest.fixture
def parts(folder, tmp_path):
    """The training data as two Parquet files in a folder."""
    train = rp.read_letor(folder / "train.txt")
    half = train.num_queries // 2
    (tmp_path / "parts").mkdir()
    rp.data.write_parquet(train[:half], tmp_path / "parts" / "a.parquet")
    rp.data.write_parquet(train[half:], tmp_path / "parts" / "b.parquet")
    return tmp_path / "parts"


def test_a_folder_of_parquet_files(rankpolicy, parts, tmp_path, cache):
    about = ("--data", parts, "--on-disk")
    rankpolicy("train", "--method", "pg-rank", *about, "--out", tmp_path / "m.rp", "--set", "epochs=2")
    assert len(list(cache.iterdir())) == 1
    result = rankpolicy("evaluate", tmp_path / "m.rp", *about, "--metrics", "ndcg@10", "--json")
    assert 0 < result.json["metrics"]["ndcg@10"]["mean"] <= 1
    rankpolicy("predict", tmp_path / "m.rp", *about, "--out", tmp_path / "s.txt")
    ranker, dataset = rp.load(tmp_path / "m.rp"), rp.scan_parquet(parts)
    np.testing.assert_allclose(np.loadtxt(tmp_path / "s.txt"), ranker.predict(dataset), rtol=1e-5)


def test_letor_data(rankpolicy, folder, tmp_path, cache):
    about = ("--data", folder / "train.txt", "--valid", folder / "vali.txt", "--on-disk")
    rankpolicy("train", "--method", "pg-rank", *about, "--out", tmp_path / "m.rp", "--set", "epochs=2")
    assert len(list(cache.iterdir())) == 2


def test_other_formats_are_refused(refused, tmp_path):
    (tmp_path / "x.csv").write_text("qid,label,a\n1,0,2\n")
    message = refused(
        "train", "--method", "pg-rank", "--data", tmp_path / "x.csv", "--on-disk", "--out", tmp_path / "m.rp"
    )
    assert "only Parquet and LETOR data can stay on disk; got 'x.csv'" in message
