import json

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.clicks import (
    CLICK_MODELS,
    fit_click_model,
    make_click_log,
    make_click_model,
    read_click_log,
)


def write_rows(log, path):
    lines = []
    for session in range(len(log)):
        items = [log.item_names[item] for item in log.items[session]]
        lines.append("\t".join([str(session), "0", "Q", log.query_names[log.queries[session]], "r", *items]))
        lines += [f"{session}\t1\tC\t{item}" for item, click in zip(items, log.clicks[session], strict=True) if click]
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clicks")
    truth = make_click_model("dbn", random_state=0)
    write_rows(make_click_log(truth, 1200, random_state=1), folder / "log.tsv")
    write_rows(make_click_log(truth, 500, random_state=2), folder / "test.tsv")
    (folder / "counts.csv").write_text("query,item,position,impressions,clicks\nq,x,1,10,4\nq,y,2,8,1\nq,x,2,8,2\n")
    return folder


def test_json_is_what_the_python_api_measures(rankpolicy, logs):
    result = rankpolicy("clicks", "fit", logs / "log.tsv", "--models", "dcm,ubm", "--test", logs / "test.tsv", "--json")
    assert result.status == 0
    assert result.stderr == ""
    test = read_click_log(logs / "test.tsv")
    assert list(result.json["models"]) == ["dcm", "ubm"]
    for name, facts in result.json["models"].items():
        model = fit_click_model(name, read_click_log(logs / "log.tsv"))
        assert facts["log_likelihood"] == pytest.approx(model.log_likelihood(test))
        assert facts["log_likelihood_per_session"] == pytest.approx(model.log_likelihood(test) / 500)
        assert facts["perplexity"] == pytest.approx(model.perplexity(test).overall)
        assert facts["perplexity_by_rank"] == pytest.approx(model.perplexity(test).by_rank.tolist())
        assert facts["examination_by_rank"] == pytest.approx(model.examination(test).tolist())
    assert result.json["run"]["data"]["log"]["sessions"] == 1200
    assert result.json["test_sessions"] == 500


def test_a_folder_of_models_and_a_report(rankpolicy, logs, tmp_path):
    result = rankpolicy("clicks", "fit", logs / "log.tsv", "--out", tmp_path / "run")
    assert result.status == 0
    written = {path.name for path in (tmp_path / "run").iterdir()}
    assert written == {f"{name}.json" for name in CLICK_MODELS} | {
        "fit.json",
        "run.json",
        "report.html",
        "perplexity.svg",
    }
    train, _ = read_click_log(logs / "log.tsv").split(0.25)
    loaded = rp.load(tmp_path / "run" / "dcm.json")
    np.testing.assert_allclose(
        loaded.pair_values("attraction", "0_r", [0, 3]),
        fit_click_model("dcm", train).pair_values("attraction", "0_r", [0, 3]),
    )
    document = json.loads((tmp_path / "run" / "fit.json").read_text())
    assert document["train_sessions"] + document["test_sessions"] == 1200
    assert document["models"]["cm"]["log_likelihood"] is None
    assert document["models"]["cm"]["impossible_sessions"] > 0
    page = (tmp_path / "run" / "report.html").read_text()
    assert page.count("<svg") == 1
    for name in CLICK_MODELS:
        assert f"\n  {name} " in result.stdout
        assert f"<td>{name}</td>" in page
    assert "impossible" in result.stdout


def test_counts_take_the_models_that_need_no_session(rankpolicy, logs):
    result = rankpolicy("clicks", "fit", logs / "counts.csv", "--json")
    assert result.status == 0
    assert list(result.json["models"]) == ["gctr", "rctr", "dctr", "coec", "pbm"]
    assert "no order to split by" in result.stderr


def test_priors_and_malformed_rows(rankpolicy, refused, logs, tmp_path):
    text = (logs / "log.tsv").read_text() + "nonsense\n"
    (tmp_path / "log.tsv").write_text(text)
    call = ["clicks", "fit", tmp_path / "log.tsv", "--models", "dctr"]
    assert f"line {text.count(chr(10))}: expected" in refused(*call)
    skipped = rankpolicy(*call, "--lenient", "--json").json
    assert skipped["run"]["data"]["log"]["skipped_rows"] == 1
    assert "1 malformed rows skipped" in rankpolicy(*call, "--lenient").stdout
    by_prior = {
        prior: rankpolicy(*call, "--lenient", "--json", "--prior", prior).json["models"]["dctr"]["perplexity"]
        for prior in ("1,1", "50,50", "empirical", "none")
    }
    assert len(set(by_prior.values())) == 4
    assert by_prior["50,50"] == max(by_prior.values())


def test_bad_input(refused, rankpolicy, logs, tmp_path):
    log = logs / "log.tsv"
    assert "Did you mean 'ubm'?" in refused("clicks", "fit", log, "--models", "umb")
    assert "--models must name at least one" in refused("clicks", "fit", log, "--models", ",")
    assert "Unknown prior 'one'. Known: empirical" in refused("clicks", "fit", log, "--prior", "one")
    assert "prior must be above 0 or None; got (0.0, 1.0)" in refused("clicks", "fit", log, "--prior", "0,1")
    assert "prior must be two numbers above 0" in refused("clicks", "fit", log, "--prior", "1,2,3")
    assert "iterations must be at least 0; got -1" in refused("clicks", "fit", log, "--iterations", "-1")
    assert "iterations=5 would not be read" in refused("clicks", "fit", log, "--models", "gctr,cm", "--iterations", "5")
    assert "test_fraction must lie between 0 and 1" in refused("clicks", "fit", log, "--test-fraction", "1.5")
    assert "Did you mean 'rows'?" in refused("clicks", "fit", log, "--format", "row")
    assert "there is none" in refused("clicks", "fit", tmp_path / "none.tsv")
    assert "there is none" in refused("clicks", "fit", log, "--test", tmp_path / "none.tsv")
    assert "--out must be a directory" in refused("clicks", "fit", log, "--out", log)
    assert "Missing argument" in refused("clicks", "fit")
    assert "No such command" in refused("clicks", "guess")
    (tmp_path / "empty.csv").write_text("a,b\n1,2\n")
    assert "must have the columns of a click log" in refused("clicks", "fit", tmp_path / "empty.csv")
    counts = rankpolicy("clicks", "fit", logs / "counts.csv", "--models", "dcm")
    assert counts.status == 2
    assert "dcm needs whole sessions" in counts.stderr
    assert "Usage: rankpolicy clicks" in rankpolicy("clicks").stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is damaged"),
        ("{}", "is not a rankpolicy model"),
        ('{"format": "rankpolicy click model", "version": 9}', "of version 9"),
        ('{"format": "rankpolicy click model", "version": 1, "model": "dcm"}', "a part is missing or wrong"),
    ],
)
def test_files_that_are_no_model(tmp_path, text, message):
    (tmp_path / "model.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        rp.load(tmp_path / "model.json")
