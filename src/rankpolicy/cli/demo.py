"""rankpolicy demo

Into --out go report.html, demo.json, run.json, the two models and the data.

Parameters
----------
out
    A directory for the report, the results, the models and the data.
queries
    Number of synthetic queries.

Examples
--------
rankpolicy demo
rankpolicy demo --out runs/another --seed 1
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankpolicy.cli.compare import facts_of_folds, show_comparison
from rankpolicy.cli.support.method_settings import parse_methods
from rankpolicy.cli.support.output import note, note_if_slow, show, show_table
from rankpolicy.cli.support.run import Run

if TYPE_CHECKING:
    from rankpolicy.data import Fold
    from rankpolicy.experiments import Comparison
    from rankpolicy.reports.policy_samples import PolicySample

METHODS = ("pg-rank", "lambdamart")
METRICS = ("ndcg@10", "map")


def demo(
    *,
    out: Path = Path("runs/demo"),
    queries: Annotated[int, typer.Option(min=20)] = 1000,
    run: Run,
) -> None:
    """Learn PG-Rank and LambdaMART on synthetic data, compare them, show rankings that the policy draws, and write a report."""
    from rankpolicy.data import write_letor
    from rankpolicy.experiments import compare_rankers
    from rankpolicy.rankers import RANKERS
    from rankpolicy.reports.comparison_report import comparison_page
    from rankpolicy.reports.policy_samples import query_to_show, sample_rankings

    run.make_directory(out)
    fold = _fold(queries, run.seed)
    note(f"{queries} synthetic queries, {fold.train.num_queries} to learn from; training {' and '.join(METHODS)} ...")
    with note_if_slow("compiling kernels (first run only) ..."):
        _compile_kernels(fold)
    comparison = compare_rankers([fold], METHODS, METRICS, tune=False, random_state=run.seed)
    query = query_to_show(fold.test)
    samples = sample_rankings(comparison.selections["pg-rank"][0].ranker, query, random_state=run.seed)
    query_id = str(query.query_ids[0])
    for role in ("train", "valid", "test"):
        write_letor(getattr(fold, role), out / f"{role}.txt")
    for method in METHODS:
        comparison.selections[method][0].ranker.save(out / f"{method}.rp")
    lead = "PG-Rank, a Plackett-Luce policy learned by policy gradient, and LightGBM's LambdaMART on synthetic web-search data."
    texts = {"title": "rankpolicy demo", "lead": lead}
    run.finish(
        comparison.to_dict() | _as_json(samples),
        data=facts_of_folds([fold], "make_web_search"),
        settings=parse_methods(",".join(METHODS), (), [f"random_state={run.seed}"], RANKERS).all_settings(),
        show_results=lambda: _show(comparison, samples, query_id, out),
        files=lambda record: {
            "report.html": comparison_page(comparison, record, **texts, sections=[_section(samples, query_id)])
        },
        report=str(out / "report.html"),
    )


def _fold(num_queries: int, seed: int) -> Fold:
    from rankpolicy.data import Fold, make_web_search, split_queries

    dataset = make_web_search(num_queries, items_per_query=(5, 40), random_state=seed)
    train, valid, test = split_queries(dataset, (0.6, 0.2, 0.2), random_state=seed)
    return Fold(name="synthetic", train=train, valid=valid, test=test)


def _compile_kernels(fold: Fold) -> None:
    """Train for one epoch on a few queries, so that the message about compiling covers the wait for it."""
    from rankpolicy.rankers import PGRank

    PGRank(epochs=1, num_networks=1).fit(fold.train[:8], valid=fold.valid[:8], progress=False)


def _as_json(samples: PolicySample) -> dict[str, Any]:
    return {
        "samples": [asdict(sample) for sample in samples.most_frequent],
        "samples_summary": {
            "draws": samples.num_samples,
            "mean_ndcg": samples.mean_ndcg,
            "mean_ndcg_of_random_lists": samples.random_ndcg,
            "share_of_ideal_lists": samples.share_ideal,
        },
    }


def _rows(samples: PolicySample) -> list[tuple[str, str, str, str]]:
    return [
        (
            " ".join(f"{item} ({label:g})" for item, label in zip(sample.items, sample.labels, strict=True)),
            str(sample.times_drawn),
            f"{sample.probability:.4f}",
            f"{sample.ndcg:.4f}",
        )
        for sample in samples.most_frequent
    ]


HEADER = ("ranking: item (label), best first", "times drawn", "probability", "ndcg")


def _section(samples: PolicySample, query: str) -> Any:
    from rankpolicy.reports.html import Cell, Section, paragraph, table
    from rankpolicy.reports.policy_samples import EXPLANATION

    rows: list[list[str | Cell]] = [[ranking, *map(Cell, numbers)] for ranking, *numbers in _rows(samples)]
    caption = (
        f"Query {query} of the test data: the rankings that pg-rank drew most often in {samples.num_samples} draws."
    )
    return Section(
        title="What a stochastic policy is",
        fragments=(paragraph(EXPLANATION), table(HEADER, rows, caption=caption), paragraph(samples.summary)),
    )


def _show(comparison: Comparison, samples: PolicySample, query: str, out: Path) -> None:
    from rankpolicy.reports.policy_samples import EXPLANATION

    show_comparison(comparison)
    show(f"\n{EXPLANATION} Query {query}, the most frequent lists of {samples.num_samples} draws:")
    show_table(HEADER, _rows(samples))
    show(samples.summary)
    show(
        f"next   rankpolicy evaluate {out / 'pg-rank.rp'} --data {out / 'test.txt'} --metrics ndcg@5,err@10",
        soft_wrap=True,
    )
