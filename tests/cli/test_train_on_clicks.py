"""rankpolicy train with --clicks and --propensities."""

import json

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.clicks import dataset_from_clicks, read_click_log, read_position_bias

polars = pytest.importorskip("polars")
BIAS = 1 / np.arange(1, 5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """train.txt with item ids, a log of clicks on it, a click table, and bias.json as 'clicks bias' writes it."""
    folder = tmp_path_factory.mktemp("clicks")
    generator = np.random.default_rng(0)
    lines, rows, table = [], [], []
    for query in range(12):
        labels = generator.permutation([2, 1, 0, 0, 0])
        lines += [
            f"{label} qid:{query} 1:{label + generator.normal():.4f} 2:{generator.normal():.4f} #docid = d{query}_{item}"
            for item, label in enumerate(labels)
        ]
        for visit in range(20):
            shown = generator.permutation(5)[:4]
            clicks = (generator.random(4) < BIAS) & (labels[shown] > 0)
            session = f"{query}_{visit}"
            for rank, (item, click) in enumerate(zip(shown, clicks, strict=True), 1):
                rows.append((session, str(query), f"d{query}_{item}", rank, int(click)))
                table.append((session, f"word{query}", f"word{query if labels[item] else item}", rank, int(click)))
    (folder / "train.txt").write_text("\n".join(lines) + "\n")
    log = polars.DataFrame(rows, schema=["session", "query", "item", "position", "clicked"], orient="row")
    log.write_csv(folder / "log.csv")
    texts = polars.DataFrame(table, schema=["session", "query_text", "item_text", "position", "clicked"], orient="row")
    texts.write_csv(folder / "table.csv")
    return folder


@pytest.fixture
def bias_file(folder, rankpolicy):
    result = rankpolicy("clicks", "bias", folder / "log.csv", "--resamples", 0, "--out", folder / "bias")
    assert result.status == 0, result.stderr
    return folder / "bias" / "bias.json"


def train(rankpolicy, folder, *more, method="pg-rank", data="train.txt", settings=("epochs=1", "num_networks=1")):
    sets = [part for setting in settings for part in ("--set", setting)]
    return rankpolicy("train", "--method", method, "--data", folder / data, "--out", folder / "m.rp", *sets, *more)


def test_a_log_is_learned_from_as_in_python(rankpolicy, folder, bias_file):
    result = train(rankpolicy, folder, "--clicks", folder / "log.csv", "--propensities", bias_file, "--json")
    assert result.status == 0, result.stderr
    data, log, bias = (
        rp.read_letor(folder / "train.txt"),
        read_click_log(folder / "log.csv"),
        read_position_bias(bias_file),
    )
    learned = dataset_from_clicks(data, log, bias)
    ours = rp.PGRank(epochs=1, num_networks=1).fit(learned)
    np.testing.assert_allclose(rp.load(folder / "m.rp").predict(data), ours.predict(data), rtol=1e-5)
    record = json.loads((folder / "m.run.json").read_text())
    assert record["clicks"]["effective_sample_size"] == pytest.approx(learned.click_evidence.effective_sample_size)
    assert set(record["data"]) == {"train", "clicks", "propensities"}


def test_a_run_file_trains_matching_cross_on_a_click_table(rankpolicy, folder, bias_file):
    config = folder / "run.toml"
    config.write_text(
        f'method = "matching-cross"\ndata = "{folder}/table.csv"\nvalid = "{folder}/table.csv"\nout = "{folder}/search.rp"\n'
        f'propensities = "{bias_file}"\nbias_method = "all-pairs"\n[settings]\nepochs = 2\n'
        "[settings.model]\nembedding_size = 4\nhidden = [4]\n"
    )
    result = rankpolicy("train", "--config", config)
    assert result.status == 0, result.stderr
    assert "effective sample size" in result.stdout
    assert "left out, no click" in result.stdout
    record = json.loads((folder / "search.run.json").read_text())
    assert set(record["metrics"]["valid"]) == {"mrr"}
    assert record["clicks"]["weighted"] == "query"
    assert rp.load(folder / "search.rp").click_report_ == record["clicks"]


def test_a_reward_that_asks_for_relevant_items_learns_from_whole_sessions(rankpolicy, folder, bias_file):
    given = ("--clicks", folder / "log.csv", "--propensities", bias_file, "--json")
    for reward, weighted in (("ap", "query"), ("dcg", "item")):
        result = train(rankpolicy, folder, *given, settings=("epochs=1", "num_networks=1", f"reward={reward}"))
        assert result.json["clicks"]["weighted"] == weighted


def test_uncorrected_learning_must_be_asked_for(rankpolicy, folder):
    result = train(rankpolicy, folder, "--clicks", folder / "log.csv")
    assert (result.status, "--propensities none" in result.stderr) == (2, True)
    result = train(rankpolicy, folder, "--clicks", folder / "log.csv", "--propensities", "none", "--json")
    assert result.json["clicks"]["effective_sample_size"] == result.json["clicks"]["num_clicks"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no file of propensities at"),
        ("{", "must be JSON"),
        ("[1]", "holds none"),
        ('{"methods": {}}', "holds none"),
        ('{"methods": {"em": {}, "dual": {}}}', "several methods, em, dual: name the one to take"),
        ('{"format": "rankpolicy position bias", "version": 1}', "is damaged"),
        ('{"format": "another"}', "must be a position bias of version 1"),
    ],
)
def test_bad_files_of_propensities_are_named(refused, folder, tmp_path, content, message):
    file = tmp_path / "bias.json"
    if content is not None:
        file.write_text(content)
    given = ("--clicks", folder / "log.csv", "--propensities", file)
    error = refused("train", "--method", "pg-rank", "--data", folder / "train.txt", "--out", tmp_path / "m.rp", *given)
    assert message in error


def test_clicks_that_do_not_fit_are_named(rankpolicy, folder, bias_file, tmp_path):
    with_method = ("--propensities", bias_file, "--bias-method", "em")
    assert "Unknown method 'em'" in train(rankpolicy, folder, *with_method).stderr
    assert "--bias-method names a method" in train(rankpolicy, folder, "--bias-method", "em").stderr
    assert "it needs --propensities FILE" in train(rankpolicy, folder, "--weighted", "query").stderr
    given = ("--clicks", folder / "log.csv", "--propensities", bias_file)
    result = train(rankpolicy, folder, *given, method="boosted-regression", settings=("num_trees=2",))
    assert (result.status, "does not learn from relevances" in " ".join(result.stderr.split())) == (2, True)
    result = train(rankpolicy, folder, *given, "--weighted", "both")
    assert (result.status, "by 'item' or by 'query'" in " ".join(result.stderr.split())) == (2, True)


def test_a_log_may_have_columns_of_other_names(rankpolicy, folder, bias_file):
    renamed = polars.read_csv(folder / "log.csv").rename({"item": "shown_item", "position": "pos"})
    renamed.write_csv(folder / "renamed.csv")
    bias = ("--propensities", bias_file)
    scores = []
    for log, *columns in (("log.csv",), ("renamed.csv", "--columns", "item=shown_item,rank=pos")):
        result = train(rankpolicy, folder, "--clicks", folder / log, *columns, *bias)
        assert result.status == 0, result.stderr
        scores.append(rp.load(folder / "m.rp").predict(rp.read_letor(folder / "train.txt")))
    np.testing.assert_array_equal(*scores)
    without_names = train(rankpolicy, folder, "--clicks", folder / "renamed.csv", *bias)
    assert (without_names.status, "must have the column" in without_names.stderr) == (2, True)
    without_log = train(rankpolicy, folder, "--columns", "item=shown_item")
    assert (without_log.status, "give --clicks too" in without_log.stderr) == (2, True)
