import json

import numpy as np
import pytest

from rankpolicy.clicks import PositionBias, estimate_position_bias, make_biased_log, read_click_log


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bias")
    made = make_biased_log(
        1500,
        propensities=np.array([1.0, 0.5, 0.3]),
        relevance=np.random.default_rng(0).uniform(0.3, 0.9, (4, 5)),
        traffic="rankers",
        random_state=1,
    )
    lines = ["query,items,clicks"]
    for query, items, clicks in zip(made.log.queries, made.log.items, made.log.clicks, strict=True):
        lines.append(f"{query},{' '.join(map(str, items))},{' '.join(map(str, clicks))}")
    (folder / "log.csv").write_text("\n".join(lines) + "\n")
    (folder / "counts.csv").write_text(
        "query,item,position,impressions,clicks\nq,x,1,10,6\nq,x,2,10,3\nr,y,1,10,2\nr,y,2,10,1\nr,z,3,5,1\n"
    )
    return folder


def test_json_is_what_the_python_api_estimates(rankpolicy, logs):
    result = rankpolicy(
        "clicks", "bias", logs / "log.csv", "--method", "all-pairs,em,dual,click-model", "--click-model", "ubm",
        "--resamples", 5, "--seed", 3, "--json",
    )  # fmt: skip
    assert result.status == 0
    assert list(result.json["methods"]) == ["all-pairs", "em", "dual", "click-model"]
    log = read_click_log(logs / "log.csv").collapsed()
    for name, document in result.json["methods"].items():
        found = estimate_position_bias(
            log, method=name, click_model="ubm" if name == "click-model" else None, num_resamples=5, random_state=3
        )
        np.testing.assert_allclose(PositionBias.from_dict(document).propensities, found.propensities)
        np.testing.assert_allclose(PositionBias.from_dict(document).intervals, found.intervals)
    assert result.json["run"]["seed"] == 3


def test_table_and_files(rankpolicy, logs, tmp_path):
    result = rankpolicy("clicks", "bias", logs / "counts.csv", "--method", "all-pairs,pivot", "--out", tmp_path / "run")
    assert result.status == 0
    assert "0.500 [0.500, 0.500]" in result.stdout
    assert "95% bootstrap intervals over queries" in result.stdout
    assert "2 (query, item) pairs shown at several ranks" in result.stdout
    assert {path.name for path in (tmp_path / "run").iterdir()} == {
        "bias.json",
        "run.json",
        "report.html",
        "propensities.csv",
        "propensities.svg",
    }
    rows = (tmp_path / "run" / "propensities.csv").read_text().splitlines()
    assert rows[0] == "method,rank,propensity,low,high,click_through"
    assert rows[1].split(",")[:3] == ["all-pairs", "1", "1.0"]
    assert rows[3] == "all-pairs,3,,,,0.2"
    assert len(rows) == 1 + 2 * 3
    assert json.loads((tmp_path / "run" / "bias.json").read_text())["methods"]["pivot"]["propensities"][2] is None
    page = (tmp_path / "run" / "report.html").read_text()
    for text in (
        "Examination by rank",
        "Propensities",
        "How this page was made",
        "0.500 to 0.500",
        "all-pairs, pivot on counts.csv",
    ):
        assert text in page
    assert f"report {tmp_path / 'run' / 'report.html'}" in result.stdout
    assert b"click-through" in (tmp_path / "run" / "propensities.svg").read_bytes()


def test_bad_input(refused, logs, tmp_path):
    counts = logs / "counts.csv"
    assert "Did you mean 'all-pairs'?" in refused("clicks", "bias", counts, "--method", "allpairs")
    assert "--method must name at least one" in refused("clicks", "bias", counts, "--method", ",")
    assert "swaps needs swaps, which a log does not hold" in refused("clicks", "bias", counts, "--method", "swaps")
    assert "'dual' needs whole sessions" in refused("clicks", "bias", counts, "--method", "dual")
    assert "--click-model is for the method click-model" in refused("clicks", "bias", counts, "--click-model", "pbm")
    assert "ubm needs whole sessions" in refused(
        "clicks", "bias", counts, "--method", "click-model", "--click-model", "ubm"
    )
    assert "Unknown resample 'users'" in refused("clicks", "bias", counts, "--resample", "users")
    assert "level must lie between 0 and 1" in refused("clicks", "bias", counts, "--level", "95")
    assert "there is none" in refused("clicks", "bias", tmp_path / "none.csv")
    (tmp_path / "one.csv").write_text("query,item,position,impressions,clicks\nq,x,1,10,6\nq,y,2,10,3\n")
    assert "can compare no rank with the first" in refused("clicks", "bias", tmp_path / "one.csv")
