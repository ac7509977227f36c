"""Tables 1, 3 and 5: how many questions, queries, documents and correct answers the three collections have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rankpolicy.data import read_folds, read_insuranceqa, read_wikiqa
from rankpolicy.data.arrays import concatenate
from rankpolicy.data.dataset import RankingDataset
from reproductions.banditrank import web_search
from reproductions.statements import Claim
from reproductions.target import Outcome, Row, Setup

INSURANCE_QA, WIKI_QA = "insuranceqa_v2", "wikiqa"
NUM_SMOKE_QUERIES = 50
MANY_RELEVANT = 30

# Questions, correct answers, correct answers per question.
TABLE_1: dict[str, tuple[int, int, float]] = {
    "train": (12887, 18540, 1.43),
    "dev": (1000, 1454, 1.45),
    "test1": (1800, 2616, 1.45),
    "test2": (1800, 2593, 1.44),
}
TABLE_3: dict[str, tuple[int, int, float]] = {
    "train": (873, 1040, 1.19),
    "dev": (126, 140, 1.11),
    "test": (243, 293, 1.20),
}


def num_relevant(dataset: RankingDataset) -> Any:
    """How many items of each query are relevant (query,)."""
    return np.add.reduceat(dataset.labels_by_query >= 1, dataset.query_offsets[:-1])


def _row_of(part: str, dataset: RankingDataset) -> Row:
    relevant = num_relevant(dataset)
    return {
        "part": part,
        "questions": dataset.num_queries,
        "correct answers": int(relevant.sum()),
        "correct answers per question": float(relevant.mean()),
        "items per question": float(dataset.sizes.mean()),
    }


def _published(table: Mapping[str, tuple[int, int, float]]) -> list[Row]:
    return [
        {
            "part": f"paper, {part}",
            "questions": questions,
            "correct answers": correct,
            "correct answers per question": mean,
        }
        for part, (questions, correct, mean) in table.items()
    ]


def run_table1(setup: Setup) -> Outcome:
    """InsuranceQA. The paper's numbers are of version 1, which is not to be had: they stand beside those of version 2, without a claim."""
    parts = ("valid",) if setup.is_smoke else ("train", "valid", "test")
    rows = [_row_of(f"V2, {part}", read_insuranceqa(setup.folder(INSURANCE_QA), part)) for part in parts]
    return Outcome(rows=(*rows, *_published(TABLE_1)), claims=())


def run_table3(setup: Setup) -> Outcome:
    """WikiQA: the questions with a correct answer."""
    rows, claims = [], []
    for part, (questions, correct, mean) in TABLE_3.items():
        dataset = read_wikiqa(setup.folder(WIKI_QA) / f"WikiQA-{part}.tsv.gz")
        row = _row_of(part, dataset[:NUM_SMOKE_QUERIES] if setup.is_smoke else dataset)
        rows.append(row)
        claims += [
            _counted(f"questions of {part}", row["questions"], questions),
            _counted(f"correct answers of {part}", row["correct answers"], correct),
            # 140 / 126 = 1.111 and 293 / 243 = 1.206, which the paper gives as 1.11 and 1.20: it cuts off the third digit.
            _counted(f"correct answers per question of {part}", row["correct answers per question"], mean, margin=0.01),
        ]
    return Outcome(rows=(*rows, *_published(TABLE_3)), claims=tuple(claims))


def run_table5(setup: Setup) -> Outcome:
    """MQ2007."""
    first = read_folds(setup.folder(web_search.FOLDER))[0]
    queries = concatenate([first.train, first.valid, first.test])
    if setup.is_smoke:
        queries = queries[:NUM_SMOKE_QUERIES]
    relevant = num_relevant(queries)
    assert queries.item_ids_by_query is not None, "LETOR files name their documents"
    row: Row = {
        "queries": queries.num_queries,
        "queries with a relevant document": int((relevant > 0).sum()),
        "distinct documents": len(set(queries.item_ids_by_query.tolist())),
        "query-document pairs": queries.num_items,
        "relevant documents per query": float(relevant.mean()),
        "relevant documents per query that has one": float(relevant[relevant > 0].mean()),
        "features": queries.num_features,
        f"queries with {MANY_RELEVANT} relevant documents or more": int((relevant >= MANY_RELEVANT).sum()),
    }
    published: dict[str, float] = {
        "queries": 1692,
        "queries with a relevant document": 1455,
        "distinct documents": 65323,
        "relevant documents per query": 10.3,
        "features": 46,
        f"queries with {MANY_RELEVANT} relevant documents or more": 99,
    }
    claims = [
        _counted(name, row[name], number, margin=0.05 if isinstance(number, float) else 0.0)
        for name, number in published.items()
    ]
    rows = ({"source": "counted here", **row}, {"source": "paper", **published})
    return Outcome(rows=rows, claims=tuple(claims))


def _counted(claim: str, ours: float, published: float, *, margin: float = 0.0) -> Claim:
    """That a count, or a mean up to the digits that are printed, is as published."""
    return Claim(
        claim=claim,
        paper=f"{published:g}" if margin else str(published),
        ours=f"{ours:.4g}" if margin else str(ours),
        low=ours,
        high=ours,
        at_least=published - margin,
        at_most=published + margin,
    )
