"""rankpolicy tradeoff

Every method is fitted at every strength and measured exactly on held-out queries. Into --out go tradeoff.png, .svg, .csv and .json,
report.html and run.json.

--set epochs=50 is for every method that has this setting, --set deltr.epochs=50 for one method. To run one method with two settings,
give it a second name: --variant equal=fair-pg-rank --set equal.fairness.parity=1.

Parameters
----------
data : synthetic|FILE
    'synthetic', german.data of the UCI German Credit set, or training data: .csv, .parquet or LETOR text.
test
    Test data, in the format of --data.
test_fraction
    Without --test: share of the queries to test on, drawn again for each seed.
methods
    Methods, comma-separated; see: rankpolicy methods.
strengths : NUMBERS, default by method
    Weights of fairness to try, such as 0,1,10.
strengths_of : METHOD=NUMBERS
    Strengths of one method, such as deltr=0,100; goes before --strengths. May be repeated.
bounds : NUMBERS
    Highest disparities to allow, for methods with the setting max_disparity.
reward
    The utility, a sum of rank weights times item values: ndcg@10, dcg, p@5.
seeds
    Number of seeds, counted from --seed.
out
    A directory for the figure, tradeoff.json, report.html and run.json.

Examples
--------
rankpolicy tradeoff --data synthetic
rankpolicy tradeoff --data synthetic --methods fair-pg-rank --variant equal=fair-pg-rank --set equal.fairness.parity=1
rankpolicy tradeoff --data german.data --methods fair-pg-rank,fair-lp --seeds 5 --out runs/german
rankpolicy tradeoff --data train.parquet --test test.parquet --protected gender --strengths 0,0.1,1,10
rankpolicy tradeoff --data items.csv --qid search_id --label grade --protected gender --ignore title,url
rankpolicy tradeoff --data train.txt --protected-feature 3 --fairness individual --methods fair-pg-rank,pg-rank
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankpolicy.cli.support import options
from rankpolicy.cli.support.method_settings import parse_by_method, parse_methods
from rankpolicy.cli.support.output import csv_text, images, show, show_table
from rankpolicy.cli.support.run import Files, Run
from rankpolicy.cli.support.tradeoff_data import AimOptions, GroupColumns, TradeoffData, read_tradeoff_data

if TYPE_CHECKING:
    from rankpolicy.experiments.tradeoff_curves import SeedValue, Tradeoff
    from rankpolicy.reports.run_record import RunRecord

COLUMNS = (
    "method",
    "strength",
    "max_disparity",
    "utility",
    "disparity",
    "utility_spread",
    "disparity_spread",
    "is_pareto",
)


def tradeoff(
    *,
    data: str,
    test: Path | None = None,
    test_fraction: float = 0.3,
    columns: GroupColumns,
    methods: str = "fair-pg-rank,fair-lp,deltr",
    variant: options.Variant = None,
    strengths: str | None = None,
    strengths_of: list[str] | None = None,
    bounds: str | None = None,
    reward: str = "ndcg",
    aim: AimOptions,
    seeds: Annotated[int, typer.Option(min=1)] = 1,
    settings: options.Set = None,
    work: options.ParallelWork,
    out: Path = Path("runs/tradeoff"),
    run: Run,
) -> None:
    """The cost of fairness: utility against disparity of exposure, one curve per method."""
    from rankpolicy.experiments.tradeoff import sweep_tradeoff
    from rankpolicy.optional import require
    from rankpolicy.rankers import RANKERS

    named = parse_methods(methods, variant, settings, RANKERS)
    measured_aim = aim.value()
    chosen_strengths = _strengths_by_method(strengths, strengths_of or [], named.classes)
    chosen_bounds = None if bounds is None else options.numbers_in(bounds, "--bounds", such_as="0,0.1,1")
    run.make_directory(out)
    require("matplotlib", "The figure of a trade-off")
    datasets = read_tradeoff_data(
        data,
        test,
        columns=columns,
        fairness=aim.fairness,
        test_fraction=test_fraction,
        seeds=range(run.seed, run.seed + seeds),
    )
    datasets.name_groups_in(named.settings)
    with work.opened() as executor:
        curves = sweep_tradeoff(
            datasets.trains,
            datasets.tests,
            named.for_experiment(),
            strengths=chosen_strengths,
            bounds=chosen_bounds,
            seeds=list(datasets.seeds),
            reward=reward,
            fairness=measured_aim,
            executor=executor,
            report_point=partial(_report, run, reward),
        )
    run.finish(
        curves.to_dict(),
        data=datasets.facts(),
        settings=replace(named, settings=curves.settings).all_settings(),
        show_results=lambda: _show(curves),
        files=lambda record: _files(curves, datasets, record),
    )


def _report(run: Run, reward: str, done: int, total: int, what: str, value: SeedValue) -> None:
    numbers = f"{reward} {value.utility:.4f}, disparity {value.disparity:.5f}"
    run.note(f"{done}/{total} {what} seed {value.seed}: {numbers}")


def _strengths_by_method(
    for_all: str | None, for_one: list[str], methods: Mapping[str, Any]
) -> dict[str, list[float]] | None:
    """Strengths of each method; those given for one method go before those for all."""
    texts = {} if for_all is None else dict.fromkeys(methods, (for_all, "--strengths"))
    of_one = parse_by_method(for_one, methods, option="--strengths-of")
    texts |= {name: (text, "--strengths-of") for name, text in of_one.items()}
    strengths = {name: options.numbers_in(text, option, such_as="0,0.1,1") for name, (text, option) in texts.items()}
    return strengths or None


def _files(curves: Tradeoff, datasets: TradeoffData, record: RunRecord) -> Files:
    from rankpolicy.reports.tradeoff_report import tradeoff_figure, tradeoff_page

    lead = f"{', '.join(curves.methods)} on {Path(datasets.name).name}."
    page = tradeoff_page(curves, datasets.tests[0], record, title="What fairness costs", lead=lead)
    return {
        "tradeoff.csv": tradeoff_csv(curves),
        **images("tradeoff", tradeoff_figure(curves)),
        "report.html": page,
    }


def tradeoff_csv(curves: Tradeoff) -> str:
    """A table with one row per point."""
    points = [
        {"method": method, **point} for method, of_method in curves.to_dict()["curves"].items() for point in of_method
    ]
    return csv_text(COLUMNS, ([point[name] for name in COLUMNS] for point in points))


def _show(curves: Tradeoff) -> None:
    from rankpolicy.reports.tradeoff_report import mean_text

    on_front = curves.pareto
    rows = []
    for point in curves.points:
        mean, deviation = point.mean, point.standard_deviation
        utility = mean_text(mean.utility, deviation and deviation.utility, 4)
        disparity = mean_text(mean.disparity, deviation and deviation.disparity, 5)
        rows.append((point.method, point.label, utility, disparity, "yes" if point in on_front else ""))
    header = ("method", "set", curves.reward, f"{curves.fairness.name} disparity", "Pareto front")
    show_table(header, rows, numbers_from=2)
    volumes = ", ".join(f"{method} {volume:.6f}" for method, volume in curves.hypervolume.items())
    reference = f"utility {curves.reference.utility:.4f}, disparity {curves.reference.disparity:.5f}"
    show(f"hypervolume (more is better; reference {reference}): {volumes}", dim=True)
    for point in curves.points:
        for text in point.notes:
            show(f"{point.method} {point.label}: {text}", dim=True)
