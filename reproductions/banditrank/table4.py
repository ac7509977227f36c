"""Table 4: answer selection on WikiQA, from raw words (Scenario 1) and with a pretrained language model (Scenario 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rankpolicy import models
from rankpolicy.data import read_wikiqa
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.evaluation import evaluate
from reproductions.banditrank.minilm import (
    can_read_language_models,
    cosines,
    minilm_folder,
    write_tiny_encoder,
)
from reproductions.banditrank.question_answering import (
    NUM_SEEDS,
    PAPER_SETTINGS,
    Fit,
    Measured,
    Study,
    mean_row,
    run_fits,
    smoke_settings,
)
from reproductions.target import Claim, Outcome, Row, Setup

FOLDER, WORD_VECTORS = "wikiqa", "glove_6b_50d_subset"
METRICS = ("map", "mrr")
NUM_SMOKE_QUESTIONS = 8

# "we used the same setting of MCAN as InsuranceQA", "300-dimensional GloVe embeddings" (50 here); "M' = 3"; "An initial learning rate of
# 5e-5 was used for BanditRank with γ = 1 and 1e-4 for BanditRank with other γ values". The paper names no batch size.
MCAN: dict[str, Any] = PAPER_SETTINGS | {
    "model": models.MCAN(hidden=(200, 200), recurrent=300, dropout=0.2),
    "max_positions": 3,
    "batch_queries": 4,
    "epochs": 30,
    "patience": 8,
}
# "a question-answer sentence pair (q, a) as the input"; "the concatenation of word-level features obtained from the last four layers"; "the
# dimensions of the LSTM layer to 768" for 768 features a layer (384 here); "256"; "A dropout of 0.4"; "M' = 5"; "8e-5 ... with γ = 1".
BILSTM: dict[str, Any] = PAPER_SETTINGS | {
    "model": models.BiLSTM(
        encoding="together", max_tokens=128, feature_layers=4, hidden=(256,), recurrent=384, dropout=0.4
    ),
    "max_positions": 5,
    "gamma": 1.0,
    "learning_rate": 8e-5,
    "batch_queries": 4,
    "epochs": 30,
    "patience": 8,
}
# Chosen by validation MAP (README).
OUR_MCAN = MCAN | {
    "gamma": 0.75,
    "model": replace(MCAN["model"], recurrent=100, dropout=0.3),
    "learning_rate": 1e-3,
    "batch_queries": 16,
    "num_networks": 5,
}
TUNED: dict[str, Any] = PAPER_SETTINGS | {
    "model": models.Encoder(encoding="apart", max_tokens=128),
    "max_positions": 5,
    "gamma": 0.75,
    "learning_rate": 2e-5,
    "weight_decay": 1e-2,
    "batch_queries": 8,
    "num_networks": 4,
    "epochs": 8,
    "patience": 4,
}
SCENARIO_1, SCENARIO_2 = "Scenario 1: MCAN, 5 networks averaged, γ = 0.75", "Scenario 2: MiniLM trained on, γ = 0.75"
COSINE = "Scenario 2: MiniLM, plain cosine, no training"
# In the order of what the claims need; the rows with the paper's settings have one seed.
METHODS: dict[str, dict[str, Any]] = {
    SCENARIO_2: TUNED,
    SCENARIO_1: OUR_MCAN,
    "Scenario 2: MiniLM features, BiLSTM, γ = 1, paper's settings": BILSTM,
    "Scenario 1: MCAN, γ = 1, paper's settings": MCAN | {"gamma": 1.0, "learning_rate": 5e-5},
    "Scenario 1: MCAN, γ = 0.75, paper's settings": MCAN | {"gamma": 0.75, "learning_rate": 1e-4},
}
CLAIMED = (SCENARIO_2, SCENARIO_1)

PAPER_MCAN, PAPER_BERT = "paper, Scenario 1: γ = 1", "paper, Scenario 2: BERT-large, γ = 1"
PAPER: dict[str, dict[str, float]] = {
    "paper, Scenario 1: γ = 0.75": {"map": 0.6663, "mrr": 0.673},
    PAPER_MCAN: {"map": 0.7043, "mrr": 0.716},
    "paper, Scenario 2: BERT-base, γ = 1": {"map": 0.7437, "mrr": 0.7589},
    PAPER_BERT: {"map": 0.7649, "mrr": 0.7807},
}
# Scenario 1 has word vectors of 50 numbers in place of 300: it is held to 0.70 rather than to the paper's 0.7043.
AT_LEAST: tuple[tuple[str, str, float, str], ...] = (
    (SCENARIO_2, "map", PAPER[PAPER_BERT]["map"], PAPER_BERT),
    (SCENARIO_2, "mrr", PAPER[PAPER_BERT]["mrr"], PAPER_BERT),
    (SCENARIO_1, "map", 0.70, PAPER_MCAN),
)


def run(setup: Setup) -> Outcome:
    folder = setup.folder(FOLDER)
    parts = [read_wikiqa(folder / f"WikiQA-{part}.tsv.gz") for part in ("train", "dev", "test")]
    if not setup.is_smoke:
        return _measured(setup, parts, str(minilm_folder(setup)))
    parts = [part[:NUM_SMOKE_QUESTIONS] for part in parts]
    if not can_read_language_models():
        setup.report("Scenario 2 is left out of this smoke run: it needs transformers and tokenizers.")
        return _measured(setup, parts, None)
    assert parts[0].texts is not None, "WikiQA is texts"
    with TemporaryDirectory() as tiny:
        write_tiny_encoder(Path(tiny), parts[0].texts.queries)
        return _measured(setup, parts, tiny)


def _measured(setup: Setup, parts: Sequence[RankingDataset], encoder: str | None) -> Outcome:
    """``encoder`` is the folder of the language model; without it Scenario 2 is left out."""
    [vectors] = setup.folder(WORD_VECTORS).glob("*.txt.gz")
    settings = {
        row: {**how, "device": setup.device, "model": replace(how["model"], **given)}
        for row, how in METHODS.items()
        for is_mcan in [isinstance(how["model"], models.MCAN)]
        for given in [{"embeddings": str(vectors)} if is_mcan else {"encoder": encoder}]
        if is_mcan or encoder is not None
    }
    if setup.is_smoke:
        settings = {row: smoke_settings(how) for row, how in settings.items()}
    train, valid, test = parts
    seeds = {row: NUM_SEEDS if row in CLAIMED and not setup.is_smoke else 1 for row in settings}
    fits = [Fit(row, setup.seed + number) for row in settings for number in range(seeds[row])]
    measured = run_fits(setup, Study(train, valid, test, settings, METRICS), fits)
    rows = [mean_row(row, of_seeds, METRICS) for row, of_seeds in measured.items()]
    rows += [] if encoder is None else [_cosine_row(encoder, valid, test, setup.device)]
    published = [{"method": method, **means} for method, means in PAPER.items()]
    return Outcome(rows=(*rows, *published), claims=_claims(measured))


def _cosine_row(encoder: str, valid: RankingDataset, test: RankingDataset, device: str) -> Row:
    on_valid, on_test = (
        evaluate(cosines(encoder, part, max_tokens=TUNED["model"].max_tokens, device=device), part, METRICS).means
        for part in (valid, test)
    )
    return {"method": COSINE, **{f"validation {metric}": on_valid[metric] for metric in METRICS}, **on_test}


def _claims(measured: Mapping[str, Sequence[Measured]]) -> tuple[Claim, ...]:
    claims = []
    for row, metric, threshold, published in AT_LEAST:
        if row in measured:
            values = [one.test.means[metric] for one in measured[row]]
            ours = sum(values) / len(values)
            claims.append(
                Claim(
                    claim=f"{row}: {metric} at least {threshold:.4g}",
                    paper=f"{PAPER[published][metric]:.4f} ({published})",
                    ours=f"{ours:.4f}, seeds from {min(values):.4f} to {max(values):.4f}",
                    holds=ours >= threshold,
                )
            )
    return tuple(claims)
