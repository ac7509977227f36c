"""rankpolicy tradeoff"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankpolicy.cli.support.method_settings import (
    Variant,
    parse_assignments,
    parse_by_method,
    parse_methods,
    settings_of_methods,
)
from rankpolicy.cli.support.options import (
    Address,
    ExecutorName,
    Ignore,
    Jobs,
    Json,
    Label,
    Qid,
    Seed,
    Set,
    columns_from,
    executor_from,
)
from rankpolicy.cli.support.output import Run, console, made_directory, note, print_json, with_defaults, write_results
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.cli.support.tradeoff_data import TradeoffData
    from rankpolicy.experiments.tradeoff_curves import SeedValue, Tradeoff
    from rankpolicy.reports.run_record import RunRecord

EXAMPLES = """
[bold]Examples[/bold]

rankpolicy tradeoff --data synthetic

rankpolicy tradeoff --data synthetic --methods fair-pg-rank --variant equal=fair-pg-rank --set equal.fairness.parity=1

rankpolicy tradeoff --data german.data --methods fair-pg-rank,fair-lp --seeds 5 --out runs/german

rankpolicy tradeoff --data train.parquet --test test.parquet --group gender --strengths 0,0.1,1,10

rankpolicy tradeoff --data items.csv --qid search_id --label grade --group gender --ignore title,url

rankpolicy tradeoff --data train.txt --group-feature 3 --fairness individual --methods fair-pg-rank,pg-rank
"""


def tradeoff(
    ctx: typer.Context,
    data: Annotated[
        str,
        typer.Option(
            metavar="synthetic|FILE",
            help="'synthetic', german.data of the UCI German Credit set, or training data: .csv, .parquet or LETOR text.",
            show_default=False,
        ),
    ],
    test: Annotated[Path | None, typer.Option(help="Test data, in the format of --data.")] = None,
    test_fraction: Annotated[
        float, typer.Option(help="Without --test: share of the queries to test on, drawn again for each seed.")
    ] = 0.3,
    groups: Annotated[
        str | None,
        typer.Option(
            "--group",
            "--groups",
            metavar="COLUMN",
            help="Column of the protected group of each item; by default 'group' if there is one.",
        ),
    ] = None,
    group_feature: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|NAME",
            help="Instead of --group: the feature whose values are the groups, by its number from 1 or its name.",
        ),
    ] = None,
    fairness: Annotated[
        str, typer.Option(metavar="group|individual", help="Disparity between groups, or between single items.")
    ] = "group",
    methods: Annotated[
        str, typer.Option(help="Methods, comma-separated; see: rankpolicy methods.")
    ] = "fair-pg-rank,fair-lp,deltr",
    variant: Variant = None,
    strengths: Annotated[
        str | None,
        typer.Option(metavar="NUMBERS", help="Weights of fairness to try, such as 0,1,10.", show_default="by method"),
    ] = None,
    strengths_of: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METHOD=NUMBERS",
            help="Strengths of one method, such as deltr=0,100; goes before --strengths. May be repeated.",
        ),
    ] = None,
    bounds: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS", help="Highest disparities to allow, for methods with the setting max_disparity."
        ),
    ] = None,
    reward: Annotated[
        str, typer.Option(help="The utility, a sum of rank weights times item values: ndcg@10, dcg, p@5.")
    ] = "ndcg",
    merit: Annotated[
        str, typer.Option(metavar="identity|exp2|binary|log1p", help="The merit of an item as a function of its label.")
    ] = "identity",
    rank_weights: Annotated[
        str,
        typer.Option(
            metavar="log2|inverse|geometric|NUMBERS",
            help="How likely each rank is looked at, the weight of exposure: a formula, or one number per rank, such as 1,0.5,0.3.",
        ),
    ] = "log2",
    propensities: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Instead of --rank-weights: a measured position bias, bias.json of 'clicks bias'."
        ),
    ] = None,
    bias_method: Annotated[
        str | None, typer.Option(metavar="METHOD", help="The method to take where --propensities holds several.")
    ] = None,
    impact: Annotated[
        bool, typer.Option("--impact", help="Compare expected clicks, exposure times label, instead of exposure.")
    ] = False,
    amortized: Annotated[
        bool, typer.Option("--amortized", help="Average over queries before groups are compared.")
    ] = False,
    cross_multiplied: Annotated[
        bool,
        typer.Option("--cross-multiplied", help="Compare groups without division, so that groups may have no merit."),
    ] = False,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds, counted from --seed.")] = 1,
    settings: Set = None,
    qid: Qid = "qid",
    label: Label = "label",
    ignore: Ignore = None,
    jobs: Jobs = None,
    executor: ExecutorName = None,
    address: Address = None,
    out: Annotated[
        Path, typer.Option(help="A directory for the figure, tradeoff.json, report.html and run.json.")
    ] = Path("runs/tradeoff"),
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """The cost of fairness: utility against disparity of exposure, one curve per method.

    Every method is fitted at every strength and measured exactly on held-out queries. Into --out go tradeoff.png, .svg, .csv and .json,
    report.html and run.json.

    --set epochs=50 is for every method that has this setting, --set deltr.epochs=50 for one method. To run one method with two settings,
    give it a second name: --variant equal=fair-pg-rank --set equal.fairness.parity=1.
    """
    from rankpolicy.cli.support.chosen_aim import chosen_aim
    from rankpolicy.cli.support.clicks_to_train_on import position_bias_from
    from rankpolicy.cli.support.tradeoff_data import read_tradeoff_data
    from rankpolicy.experiments.tradeoff import sweep_tradeoff
    from rankpolicy.optional import require
    from rankpolicy.rankers import ranker_class_named

    run = Run(ctx)
    named = parse_methods(methods, variant, ranker_class_named)
    aim = chosen_aim(
        fairness,
        merit=merit,
        rank_weights=rank_weights,
        measured=position_bias_from(propensities, bias_method),
        flags={"impact": impact, "amortized": amortized, "cross_multiplied": cross_multiplied},
    )
    by_method = settings_of_methods(named.classes, parse_assignments(settings or []))
    chosen_strengths = _strengths_by_method(strengths, strengths_of or [], named.classes)
    chosen_bounds = None if bounds is None else _numbers(bounds, "--bounds")
    directory = made_directory(out, option="--out")
    require("matplotlib", "The figure of a trade-off")
    chosen = read_tradeoff_data(
        data,
        test,
        columns=columns_from(qid, label, groups, ignore),
        group_feature=group_feature,
        fairness=fairness,
        test_fraction=test_fraction,
        seeds=range(seed, seed + seeds),
    )
    for of_method in by_method.values():
        if "protected_group" in of_method:
            of_method["protected_group"] = chosen.group_named(of_method["protected_group"])

    def report_point(done: int, total: int, what: str, value: SeedValue) -> None:
        numbers = f"{reward} {value.utility:.4f}, disparity {value.disparity:.5f}"
        note(f"{done}/{total} {what} seed {value.seed}: {numbers} ({run.seconds:.0f} s)")

    with executor_from(executor, jobs, address, default=None) as chosen_executor:
        found = sweep_tradeoff(
            chosen.trains,
            chosen.tests,
            named.with_settings(by_method),
            strengths=chosen_strengths,
            bounds=chosen_bounds,
            seeds=list(range(seed, seed + seeds)),
            reward=reward,
            fairness=aim,
            executor=chosen_executor,
            report_point=report_point,
        )
    record = run.record(
        seed=seed,
        data=chosen.facts(),
        settings={name: with_defaults(named.classes[name], given) for name, given in found.settings.items()},
    )
    document = found.to_dict() | {"run": record.to_dict()}
    _write(directory, found, chosen, record, document)
    if as_json:
        print_json(document)
        return
    _print(found)
    console().print(f"figure {directory / 'tradeoff.png'}\nreport {directory / 'report.html'}", markup=False)


def _strengths_by_method(
    for_all: str | None, for_one: list[str], methods: Mapping[str, Any]
) -> dict[str, list[float]] | None:
    """Strengths of each method; those given for one method go before those for all."""
    strengths = {} if for_all is None else dict.fromkeys(methods, _numbers(for_all, "--strengths"))
    own = parse_by_method(for_one, methods, option="--strengths-of")
    return strengths | {name: _numbers(text, "--strengths-of") for name, text in own.items()} or None


def _numbers(text: str, option: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise RankPolicyError(f"{option} must be numbers separated by commas, such as 0,0.1,1; got {text!r}.") from None


def _write(directory: Path, found: Tradeoff, chosen: TradeoffData, record: RunRecord, document: dict[str, Any]) -> None:
    from rankpolicy.files import atomic_write
    from rankpolicy.reports import figures
    from rankpolicy.reports.html import write_page
    from rankpolicy.reports.tradeoff_report import tradeoff_csv, tradeoff_figure, tradeoff_page

    # The numbers first: they took long, and an error in a figure must not lose them.
    write_results(directory, "tradeoff", document, record)
    with atomic_write(directory / "tradeoff.csv") as file:
        file.write(tradeoff_csv(found).encode())
    drawn = tradeoff_figure(found)
    for format in ("png", "svg"):
        with atomic_write(directory / f"tradeoff.{format}") as file:
            file.write(figures.file(drawn, format))
    page = tradeoff_page(
        found,
        chosen.tests[0],
        record,
        title="What fairness costs",
        lead=f"{', '.join(found.methods)} on {Path(chosen.name).name}.",
    )
    write_page(directory / "report.html", page)


def _print(found: Tradeoff) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from rankpolicy.reports.tradeoff_report import mean_text

    drawn = Table(box=SIMPLE_HEAD)
    for name in ("method", "set"):
        drawn.add_column(name)
    for name in (found.reward, f"{found.fairness.name} disparity", "Pareto front"):
        drawn.add_column(name, justify="right")
    on_front = found.pareto
    for point in found.points:
        mean, deviation = point.mean, point.standard_deviation
        drawn.add_row(
            point.method,
            point.label,
            mean_text(mean.utility, deviation and deviation.utility, 4),
            mean_text(mean.disparity, deviation and deviation.disparity, 5),
            "yes" if point in on_front else "",
        )
    out = console()
    out.print(drawn)
    volumes = ", ".join(f"{method} {volume:.6f}" for method, volume in found.hypervolume.items())
    reference = f"utility {found.reference.utility:.4f}, disparity {found.reference.disparity:.5f}"
    out.print(f"hypervolume (more is better; reference {reference}): {volumes}", style="dim")
    for point in found.points:
        for text in point.notes:
            out.print(f"{point.method} {point.label}: {text}", style="dim", markup=False)
