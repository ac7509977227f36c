import numpy as np
import polars
import pytest

import rankpolicy as rp


@pytest.fixture
def interleaved(folder, tmp_path):
    """The test data with the lines of its queries apart."""
    lines = (folder / "test.txt").read_text().splitlines()
    path = tmp_path / "interleaved.txt"
    path.write_text("\n".join(lines[::2] + lines[1::2]) + "\n")
    return path


def test_scores_stand_in_the_order_of_the_file(rankpolicy, folder, interleaved, tmp_path):
    result = rankpolicy("predict", folder / "model.rp", "--data", interleaved, "--out", tmp_path / "s.txt", "--json")
    ranker, dataset = rp.load(folder / "model.rp"), rp.read_letor(interleaved)
    by_row = ranker.predict(dataset.features)
    np.testing.assert_allclose(np.loadtxt(tmp_path / "s.txt"), by_row, rtol=1e-6)
    assert result.json["items"] == len(by_row)
    assert not list(tmp_path.glob(".*"))


def test_a_trec_run_names_the_items(rankpolicy, folder, tmp_path):
    rankpolicy("predict", folder / "model.rp", "--data", folder / "test.txt", "--out", tmp_path / "r.trec")
    run, test = rp.data.read_run(tmp_path / "r.trec"), rp.read_letor(folder / "test.txt")
    assert set(run) == set(test.query_ids)
    assert {item for items in run.values() for item in items} == set(test.item_ids)


def test_items_without_ids_go_by_row(rankpolicy, folder, tmp_path):
    (tmp_path / "plain.txt").write_text("1 qid:q 1:0.5\n0 qid:q 2:0.5\n")
    rankpolicy("predict", folder / "model.rp", "--data", tmp_path / "plain.txt", "--out", tmp_path / "r.run")
    assert set(rp.data.read_run(tmp_path / "r.run")["q"]) == {"0", "1"}


def test_a_table_has_a_row_an_item(rankpolicy, folder, tmp_path):
    for name, read in (("s.csv", polars.read_csv), ("s.parquet", polars.read_parquet)):
        rankpolicy("predict", folder / "model.rp", "--data", folder / "test.txt", "--out", tmp_path / name)
        assert read(tmp_path / name).columns == ["qid", "item_id", "score"]


def test_sampled_rankings_depend_on_the_seed_only(rankpolicy, folder, tmp_path):
    call = ["predict", folder / "model.rp", "--data", folder / "test.txt", "--sampled"]
    for name, seed in (("a.run", 1), ("b.run", 1), ("c.run", 2)):
        rankpolicy(*call, "--out", tmp_path / name, "--seed", seed)
    a, b, c = (rp.data.read_run(tmp_path / name) for name in ("a.run", "b.run", "c.run"))
    assert a == b
    assert a != c
    assert all(sorted(items.values()) == list(range(1, len(items) + 1)) for items in a.values())


def test_bad_input(refused, folder, tmp_path):
    call = ["predict", folder / "model.rp", "--data", folder / "test.txt", "--out"]
    assert "--out must end in .trec, .run, .txt, .csv, .parquet; got 'x.doc'" in refused(*call, "x.doc")
    assert "--out must be in a directory that exists" in refused(*call, tmp_path / "none" / "r.run")
    assert "there is none" in refused("predict", folder / "model.rp", "--data", "none.txt", "--out", tmp_path / "r.run")


def test_parquet_needs_no_labels_and_columns_go_by_name(rankpolicy, tmp_path):
    dataset = rp.make_web_search(6, num_features=8)
    frame = rp.data.to_frame(dataset)
    frame.write_parquet(tmp_path / "train.parquet")
    new = frame.drop("label")
    new.select(reversed(new.columns)).write_parquet(tmp_path / "new.parquet")
    small = ["--set", "epochs=1", "--set", "model.hidden=4"]
    rankpolicy("train", "--method", "listnet", "--data", tmp_path / "train.parquet", "--out", tmp_path / "m.rp", *small)
    call = ["predict", tmp_path / "m.rp", "--data", tmp_path / "new.parquet", "--out", tmp_path / "s.txt"]
    assert rankpolicy(*call).status == 0
    np.testing.assert_allclose(np.loadtxt(tmp_path / "s.txt"), rp.load(tmp_path / "m.rp").predict(dataset), rtol=1e-6)


@pytest.mark.parametrize("verb", ["predict", "evaluate"])
def test_a_file_that_holds_something_else_is_refused(refused, folder, tmp_path, verb):
    log = rp.clicks.log_from_lists(queries=["q"], items=[["a", "b"]], clicks=[[1, 0]])
    rp.fit_click_model("rctr", log).save(tmp_path / "rctr.json")
    options = ["--out", tmp_path / "scores.txt"] if verb == "predict" else []
    message = refused(verb, tmp_path / "rctr.json", "--data", folder / "test.txt", *options)
    assert "must hold a ranker, as 'rankpolicy train' writes it; it holds a RankCTR." in message
