"""rankpolicy simulate"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from rankpolicy.cli.support.options import Json, Seed, Set
from rankpolicy.cli.support.output import console, made_directory, note, note_if_slow, print_json
from rankpolicy.cli.support.settings import parse_assignments, settings_of_methods
from rankpolicy.cli.support.simulate_problems import Wish, problems_of

if TYPE_CHECKING:
    from rankpolicy.simulation import Simulation

EXAMPLES = """
[bold]Examples[/bold]

rankpolicy simulate --bandits dcm-kl-ucb,first-click,last-click,dcm-ts --steps 100000 --runs 20 --theory

rankpolicy simulate --users cascade --items 32 --cutoff 8 --attraction 0.2,0.05 --bandits cascade-ucb1,cascade-kl-ucb

rankpolicy simulate --users dcm --termination 0.9,0.5,0.7,0.6 --attraction random --bandits dcm-ts,random --log-axis

rankpolicy simulate --users fitted.json --query 98435_1 --cutoff 10 --bandits dcm-kl-ucb,ranked-kl-ucb
"""


def simulate(
    ctx: typer.Context,
    bandits: Annotated[str, typer.Option(help="Bandits, comma-separated.")] = "dcm-kl-ucb,dcm-ts",
    users: Annotated[
        str,
        typer.Option(
            metavar="KIND|FILE",
            help="cascade, dcm, pbm, ubm, ccm, dbn, sdbn, or a click model of 'rankpolicy clicks fit'.",
        ),
    ] = "dcm",
    items: Annotated[int | None, typer.Option(min=1, help="How many items there are, of users of a kind. [16]")] = None,
    cutoff: Annotated[int, typer.Option(min=1, help="How many items a list shows.")] = 4,
    attraction: Annotated[
        str,
        typer.Option(
            metavar="NUMBERS|random",
            help="Of the best items, as many as a list shows, and of the others; or a number an item.",
        ),
    ] = "0.2,0.05",
    termination: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS", help="Of dcm users: satisfied after a click, at all positions or a number each. [0.5]"
        ),
    ] = None,
    query: Annotated[
        list[str] | None,
        typer.Option(
            help="A query of the click model; may be repeated. Unless told, the 20 with most items; regret is their mean."
        ),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Lists to show.")] = 100_000,
    runs: Annotated[int, typer.Option(min=1, help="How often to repeat all, with other users.")] = 20,
    settings: Set = None,
    free_observations: Annotated[
        bool, typer.Option(help="Show every item once, alone, before the first step, as the papers do.")
    ] = True,
    log_axis: Annotated[bool, typer.Option("--log-axis", help="Draw steps on a logarithmic axis.")] = False,
    theory: Annotated[bool, typer.Option("--theory", help="Add the bounds of dcmKL-UCB, where they hold.")] = False,
    out: Annotated[Path, typer.Option(help="A directory for the figure and the numbers.")] = Path("runs/simulate"),
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Bandits against simulated users: regret over steps, mean and standard error over runs.

    Into --out go regret.png, .svg and .csv, simulate.json and run.json. A setting as epsilon-greedy.epsilon=0.1 is for one bandit, as
    discount=0.999 for all that have it.
    """
    from rankpolicy.bandits import BANDITS
    from rankpolicy.reports.run_record import RunRecord
    from rankpolicy.simulation import lower_bound, mean_over_problems, upper_bound
    from rankpolicy.simulation import simulate as simulate_bandits

    started, clock = datetime.now(UTC), time.perf_counter()
    classes = {name: BANDITS.named(name) for name in (text.strip() for text in bandits.split(",")) if name}
    by_bandit = settings_of_methods(cast(Any, classes), parse_assignments(settings or []))
    makers = {name: partial(classes[name], **by_bandit[name]) for name in classes}
    wish = Wish(users=users, items=items, cutoff=cutoff, attraction=attraction, termination=termination, seed=seed)
    problems = problems_of(wish, query or [])
    directory = made_directory(out, option="--out")

    def report_run(name: str, done: int, regret: float) -> None:
        if done == runs or sys.stderr.isatty():
            end = "\n" if done == runs else "\r"
            sys.stderr.write(
                f"{name}: {done}/{runs} runs, regret {regret:.1f} ({time.perf_counter() - clock:.0f} s){end}"
            )

    with note_if_slow("compiling bandits (first run only) ..."):
        simulate_bandits(makers, problems[0], num_steps=1, num_runs=1)
    simulations = []
    for problem in problems:
        if len(problems) > 1:
            note(f"{problem.name}:")
        simulations.append(
            simulate_bandits(
                makers,
                problem,
                num_steps=steps,
                num_runs=runs,
                random_state=seed,
                free_observations=free_observations,
                report_run=report_run,
            )
        )
    found = mean_over_problems(simulations)
    bounds = {}
    if theory:
        computed = {"upper bound": upper_bound, "lower bound": lower_bound}
        for name, bound in computed.items():
            values = bound(problems[0], found.steps) if len(problems) == 1 else None
            if values is None:
                note(f"{name}: none is known for these users.")
            else:
                bounds[name] = values
    record = RunRecord(
        command=ctx.obj,
        seed=seed,
        data={},
        started=started.isoformat(timespec="seconds"),
        duration_seconds=round(time.perf_counter() - clock, 3),
        details={"settings": by_bandit},
    )
    document = found.to_json() | {"run": record.to_json()}
    if theory:
        document["theory"] = {name: values.tolist() for name, values in bounds.items()}
    _write(directory, found, bounds, log_axis=log_axis, document=document)
    if as_json:
        print_json(document)
        return
    _print(found)
    console().print(f"figure {directory / 'regret.png'}", markup=False)


def _write(
    directory: Path, found: Simulation, bounds: dict[str, Any], *, log_axis: bool, document: dict[str, Any]
) -> None:
    """Every file whole or not at all."""
    from rankpolicy.files import atomic_write
    from rankpolicy.reports import figures
    from rankpolicy.reports.regret_figure import regret_csv, regret_figure
    from rankpolicy.reports.run_record import write_json

    title = found.problems[0].name if len(found.problems) == 1 else f"mean over {len(found.problems)} queries"
    drawn = regret_figure(found, title=title, log_axis=log_axis, theory=bounds)
    files = {
        "regret.csv": regret_csv(found).encode(),
        "regret.png": figures.file(drawn, "png"),
        "regret.svg": figures.file(drawn, "svg"),
    }
    for name, content in files.items():
        with atomic_write(directory / name) as file:
            file.write(content)
    write_json(directory / "simulate.json", document)
    write_json(directory / "run.json", document["run"])


def _print(found: Simulation) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    runs = len(next(iter(found.regrets.values())))
    table = Table(box=SIMPLE_HEAD)
    table.add_column("bandit")
    table.add_column(f"regret after {found.steps[-1]:,} steps", justify="right")
    table.add_column(f"standard error of {runs} runs", justify="right")
    for name in sorted(found.regrets, key=lambda name: found.mean(name)[-1]):
        error = f"{found.standard_error(name)[-1]:.1f}" if runs > 1 else "needs two runs"
        table.add_row(name, f"{found.mean(name)[-1]:.1f}", error)
    console().print(table)
