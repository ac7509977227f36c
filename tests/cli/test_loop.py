"""rankpolicy loop: a log of searches becomes a model of a search engine, and the report says what that is worth."""

import csv
import json

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.data import read_dataset
from tests.clicks.log.test_ubi import event, query, written

EXAMINED = 1 / np.arange(1, 6)
QUICK = ["--set", "num_trees=30", "--set", "num_leaves=7", "--set", "min_items_in_leaf=5"]


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """60 queries of eight products, shown by price or at random; users want the quality, which a feature tells with noise."""
    folder, rng = tmp_path_factory.mktemp("shop"), np.random.default_rng(0)
    rows, lines, worth = [], [], {}
    for number in range(60):
        quality, price = rng.uniform(0.05, 0.6, 8), rng.uniform(size=8)
        names = [f"p{number}-{item}" for item in range(8)]
        worth |= {(f"query {number}", name): value for name, value in zip(names, quality, strict=True)}
        rows += [
            [f"query {number}", name, round(stars, 3), round(cost, 3)]
            for name, stars, cost in zip(names, quality + rng.normal(0, 0.05, 8), price, strict=True)
        ]
        for session in range(40):
            order = rng.permutation(8)[:5] if session % 4 == 0 else np.argsort(price)[:5]
            search = f"{number}/{session}"
            lines.append(query(search, f"query {number}", [names[item] for item in order]))
            clicked = rng.random(5) < EXAMINED * quality[order]
            lines += [event("click", search, names[item]) for item in order[clicked]]
    with (folder / "items.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["query", "item_id", "stars", "price"], *rows])
    written(folder / "ubi.ndjson", lines)
    return folder, worth


def arguments(folder, out, **changes):
    given = {
        "ubi": folder / "ubi.ndjson",
        "features": folder / "items.csv",
        "engine": "opensearch",
        "out": out,
    } | changes
    return ["loop", *(word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", value))]


def test_one_command_goes_from_the_log_to_the_engine(rankpolicy, shop, tmp_path):
    folder, worth = shop
    result = rankpolicy(*arguments(folder, tmp_path / "run"), *QUICK)
    assert result.status == 0, result.stderr
    assert "not seen in training" in result.stdout
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names >= {"report.html", "loop.json", "run.json", "judgments.json", "ranker.rp", "model.json"}
    document = json.loads((tmp_path / "run" / "loop.json").read_text())
    assert set(document["files"]) <= names
    assert document["is_bias_measured"]
    assert not document["is_distilled"]
    uplift = document["uplift"]
    assert uplift["relative"][1] > 0
    # What the lists are truly worth with the order of the ranker that learned from all queries, against the order shown.
    log = rp.read_click_log(folder / "ubi.ndjson")
    data = read_dataset(folder / "items.csv", qid="query", needs_labels=False)
    scores = dict(zip(data.item_ids.tolist(), rp.load(tmp_path / "run" / "ranker.rp").predict(data), strict=True))
    gains = []
    for number, row in zip(log.queries, log.items, strict=True):
        names = [log.item_names[item] for item in row]
        values = np.array([worth[log.query_names[number], name] for name in names])
        best_first = np.argsort([-scores[name] for name in names])
        gains.append(EXAMINED @ values[best_first] - EXAMINED @ values)
    difference, low, high = uplift["difference"]
    error = (high - low) / (2 * 1.96)
    assert abs(difference - np.mean(gains)) < 4 * error
    page = (tmp_path / "run" / "report.html").read_text()
    assert "more clicks" in page
    assert all(change["query"] in page for change in uplift["queries"][:3] if change["expected"] < change["clicks"])


def test_what_is_no_tree_is_distilled(rankpolicy, shop, tmp_path):
    folder, _ = shop
    options = ["--method", "regression", "--set", "epochs=2", "--set", "num_networks=1"]
    result = rankpolicy(*arguments(folder, tmp_path / "run", engine="solr"), *options, "--json")
    assert result.status == 0, result.stderr
    assert result.json["is_distilled"]
    assert "MultipleAdditiveTreesModel" in (tmp_path / "run" / "model.json").read_text()


def test_a_log_that_cannot_tell_position_bias_says_so(rankpolicy, tmp_path):
    lines, rows = [], [["query", "item_id", "x"]]
    for number in range(12):
        lines += [query(str(number), f"q{number}", ["a", "b"]), event("click", str(number), "ab"[number % 2])]
        rows += [[f"q{number}", "a", number % 2], [f"q{number}", "b", 1 - number % 2]]
    (tmp_path / "items.csv").write_text("\n".join(",".join(map(str, row)) for row in rows))
    written(tmp_path / "ubi.ndjson", lines)
    result = rankpolicy(*arguments(tmp_path, tmp_path / "run"), *QUICK, "--json")
    assert result.status == 0, result.stderr
    assert not result.json["is_bias_measured"]
    assert "does not determine position bias" in (tmp_path / "run" / "report.html").read_text()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"engine": "opnsearch"}, "Did you mean 'opensearch'"),
        ({"click_model": "rctr"}, "distinguishes items"),
        ({"bias_method": "all-pear"}, "Did you mean 'all-pairs'"),
        ({"qid": "item_id"}, "by their texts; none is"),
        ({"qid": "search"}, "search"),
        ({"method": "lambdamrt"}, "Did you mean 'lambdamart'"),
        ({"ubi": "missing.ndjson"}, "missing.ndjson"),
    ],
)
def test_bad_input_is_one_line(refused, shop, tmp_path, changes, words):
    assert words in refused(*arguments(shop[0], tmp_path / "run", **changes), *QUICK)


def test_items_without_ids_are_refused(refused, shop, tmp_path):
    (tmp_path / "items.csv").write_text("query,stars\nquery 1,0.5\nquery 1,0.4\n")
    features = arguments(shop[0], tmp_path / "run", features=tmp_path / "items.csv")
    assert "a column item_id" in refused(*features, *QUICK)


def test_a_log_without_clicks_is_refused(refused, shop, tmp_path):
    written(tmp_path / "ubi.ndjson", [query("1", "query 1", ["p1-0", "p1-1"]), query("2", "query 2", ["p2-0"])])
    assert "clicks on items of at least two queries" in refused(
        *arguments(shop[0], tmp_path / "run", ubi=tmp_path / "ubi.ndjson"), *QUICK
    )
