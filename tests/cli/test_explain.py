import csv
import json

import pytest

import rankpolicy as rp


def test_importances_are_printed_and_given_as_json(rankpolicy, folder):
    call = ["explain", folder / "model.rp", "--data", folder / "test.txt", "--repeats", 2]
    document = rankpolicy(*call, "--json").json
    expected = rp.load(folder / "model.rp").feature_importance(rp.read_letor(folder / "test.txt"), num_repeats=2)
    assert document["features"] == expected.to_frame().to_dicts()
    assert (document["method"], document["metric"]) == ("permutation", "ndcg@10")
    printed = rankpolicy(*call).stdout
    assert "95% interval" in printed
    assert "drop of ndcg@10 when the feature is shuffled" in printed


def test_an_item_is_explained_against_another(rankpolicy, folder, tmp_path):
    data = rp.read_letor(folder / "test.txt")
    query, (item, over) = data.query_ids[0], data.item_ids[:2]
    named = ["--query", query, "--item", item, "--over", over, "--out", tmp_path / "why"]
    result = rankpolicy("explain", folder / "model.rp", "--data", folder / "test.txt", *named, "--json")
    scores = rp.load(folder / "model.rp").predict(data)
    total = sum(feature["value"] for feature in result.json["features"])
    assert total == pytest.approx(scores[0] - scores[1], abs=1e-6)
    assert (result.json["item"], result.json["over"]) == (item, over)
    files = {path.name for path in (tmp_path / "why").iterdir()}
    assert files == {"explain.json", "run.json", "report.html", "figure.svg", "features.csv"}
    with open(tmp_path / "why" / "features.csv") as file:
        assert len(list(csv.DictReader(file))) == data.num_features
    page = (tmp_path / "why" / "report.html").read_text()
    assert "What each feature adds" in page
    assert "http" not in page.partition("How this page was made")[0]
    run = json.loads((tmp_path / "why" / "run.json").read_text())
    assert set(run["data"]) == {"data", "model"}


def test_the_first_item_is_explained_against_the_data(rankpolicy, folder):
    data = rp.read_letor(folder / "test.txt")
    call = ["explain", folder / "model.rp", "--data", folder / "test.txt", "--query", data.query_ids[1]]
    document = rankpolicy(*call, "--of", "expected_rank", "--samples", 4, "--json").json
    assert document["over"] is None
    assert document["of"] == "expected_rank"
    printed = rankpolicy(*call).stdout
    assert "against the background" in printed
    assert "feature 7" in printed


def test_tables_of_features_name_features_and_rows(rankpolicy, tmp_path):
    rows = ["qid,label,price,age"] + [
        f"{q},{(q + i) % 3},{i * 0.5 + q},{(7 * i + q) % 5}" for q in range(9) for i in range(4)
    ]
    table = tmp_path / "items.csv"
    table.write_text("\n".join(rows) + "\n")
    train = ["train", "--method", "lambdamart", "--set", "num_trees=5", "--set", "min_items_in_leaf=2"]
    assert rankpolicy(*train, "--data", table, "--out", tmp_path / "model.rp").status == 0
    call = ["explain", tmp_path / "model.rp", "--data", table]
    gain = rankpolicy(*call, "--method", "gain", "--json").json
    assert {feature["feature"] for feature in gain["features"]} == {"price", "age"}
    document = rankpolicy(*call, "--item", 5, "--over", 6, "--json").json
    assert (document["query"], document["item"], document["over"]) == ("1", "row 5", "row 6")
    assert document["method"] == "exact (trees)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--query", "nobody"], "there is no query with the id 'nobody'"),
        (["--query", "45", "--item", "nothing"], "there is no item of query 45 with the id 'nothing'"),
        (["--item", "45-0"], "name the query"),
        (["--query", "45", "--method", "gain"], "--method is about the importance of features"),
        (["--query", "45", "--of", "rank"], "of must be 'score' or 'expected_rank'"),
        (["--of", "score"], "--of is about one item"),
        (["--method", "gain"], "has no trees. Use 'permutation'"),
        (["--method", "gains"], "Unknown method of importance"),
        (["--metric", "ndgc"], "Did you mean 'ndcg'"),
        (["--repeats", "0"], "Invalid value for '--repeats'"),
        (["--query", "45", "--samples", "0"], "Invalid value for '--samples'"),
    ],
)
def test_bad_input_is_one_line(refused, folder, options, message):
    assert message in refused("explain", folder / "model.rp", "--data", folder / "test.txt", *options)


def test_a_model_of_something_else_is_refused(refused, folder, tmp_path):
    rp.bandits.DcmTS(num_items=5, cutoff=2).save(tmp_path / "bandit.rp")
    assert "must hold a ranker" in refused("explain", tmp_path / "bandit.rp", "--data", folder / "test.txt")
