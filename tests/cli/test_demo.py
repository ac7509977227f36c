import json

import pytest


def test_it_compares_samples_and_reports(rankpolicy, tmp_path):
    result = rankpolicy("demo", "--queries", 40, "--out", tmp_path / "demo", "--json")
    assert result.status == 0
    document = result.json
    assert set(document["methods"]) == {"pg-rank", "lambdamart"}
    assert document["significance"]
    assert document["run"]["command"].startswith("rankpolicy demo --queries 40")
    sample = document["samples"][0]
    assert 0 < sample["probability"] <= 1
    assert sum(each["times_drawn"] for each in document["samples"]) <= 1000
    page = (tmp_path / "demo" / "report.html").read_text()
    for section in (
        "Metrics",
        "Significance",
        "Learning curves",
        "Query by query",
        "What a stochastic policy is",
        "How this page was made",
    ):
        assert f"<h2>{section}</h2>" in page
    assert json.loads((tmp_path / "demo" / "demo.json").read_text()) == {
        name: value for name, value in document.items() if name != "report"
    }
    names = {path.name for path in (tmp_path / "demo").iterdir()}
    models_and_data = {"pg-rank.rp", "lambdamart.rp", "train.txt", "valid.txt", "test.txt"}
    assert names == {"report.html", "demo.json", "run.json"} | models_and_data
    measured = rankpolicy(
        "evaluate", tmp_path / "demo" / "pg-rank.rp", "--data", tmp_path / "demo" / "test.txt", "--json"
    ).json
    assert measured["metrics"]["map"]["mean"] == pytest.approx(document["methods"]["pg-rank"]["map"]["mean"])
