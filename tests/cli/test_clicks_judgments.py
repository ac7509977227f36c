"""rankpolicy clicks judgments: what OpenSearch imports."""

import json

import pytest

from tests.clicks.log.test_ubi import LINES, written


@pytest.fixture
def log(tmp_path):
    return written(tmp_path / "ubi.ndjson")


@pytest.mark.parametrize("model", ["coec", "pbm"])
def test_judgments_have_the_form_of_import_judgment(rankpolicy, log, tmp_path, model):
    out = tmp_path / "judgments.json"
    result = rankpolicy("clicks", "judgments", "--log", log, "--model", model, "--out", out, "--name", "mine", "--json")
    assert (result.status, result.json["ratings"], result.json["queries"]) == (0, 5, 2), result.stderr
    document = json.loads(out.read_text())
    assert (document["type"], document["name"]) == ("IMPORT_JUDGMENT", "mine")
    shoes, hat = document["judgmentRatings"]
    assert (shoes["query"], shoes["ratings"][0]["docId"]) == ("red shoes", "7")
    assert hat["ratings"][0]["docId"] == "x"
    assert all(0 <= float(row["rating"]) <= 100 for row in shoes["ratings"])
    assert "5 ratings of 2 queries" in rankpolicy("clicks", "judgments", "--log", log, "--out", out).stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--model", "rctr"], "distinguishes items"),
        (["--model", "pmb"], "Did you mean 'pbm'"),
        (["--prior", "x"], "prior"),
        (["--max-rating", "0"], "max_rating"),
        (["--format", "yandex"], "line 1"),
    ],
)
def test_what_cannot_be_rated_is_one_line(refused, log, tmp_path, options, words):
    assert words in refused("clicks", "judgments", "--log", log, "--out", tmp_path / "j.json", *options)


def test_the_log_is_not_overwritten(refused, log):
    assert "--log" in refused("clicks", "judgments", "--log", log, "--out", log)
    assert log.read_text().count("\n") == len(LINES) - 1
