"""rankpolicy simulate"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankpolicy.cli.support.method_settings import Variant, parse_assignments, parse_methods, settings_of_methods
from rankpolicy.cli.support.options import Address, ExecutorName, Jobs, Json, Seed, Set, executor_from
from rankpolicy.cli.support.output import (
    Run,
    console,
    facts_of_file,
    made_directory,
    note,
    note_if_slow,
    print_json,
    with_defaults,
    write_results,
)
from rankpolicy.types import RankPolicyError, unknown_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankpolicy.simulation import Problem, Simulation

MOST_QUERIES, DEFAULT_ITEMS, DEFAULT_TERMINATION = 20, 16, "0.5"

EXAMPLES = """
[bold]Examples[/bold]

rankpolicy simulate --bandits dcm-kl-ucb,first-click,last-click,dcm-ts --steps 100000 --runs 20 --theory

rankpolicy simulate --users cascade --items 32 --cutoff 8 --attraction 0.2,0.05 --bandits cascade-ucb1,cascade-kl-ucb

rankpolicy simulate --users dcm --termination 0.9,0.5,0.7,0.6 --attraction random --bandits dcm-ts,random --log-axis

rankpolicy simulate --users runs/clicks/dcm.json --query 98435_1 --cutoff 10 --bandits dcm-kl-ucb,ranked-kl-ucb

rankpolicy simulate --bandits epsilon-greedy --variant bold=epsilon-greedy --set bold.epsilon=0.3
"""


MOST_STEPS = 10**12


def simulate(
    ctx: typer.Context,
    bandits: Annotated[
        str, typer.Option(help="Bandits, comma-separated; see: rankpolicy methods.")
    ] = "dcm-kl-ucb,dcm-ts",
    variant: Variant = None,
    users: Annotated[
        str,
        typer.Option(
            metavar="KIND|FILE",
            help="cascade, dcm, pbm, ubm, ccm, dbn, sdbn, or the file of a click model from 'rankpolicy clicks fit'.",
        ),
    ] = "dcm",
    items: Annotated[
        int | None, typer.Option(min=1, help="Number of items, for users of a KIND.", show_default="16")
    ] = None,
    cutoff: Annotated[int, typer.Option(min=1, help="Number of items that a list shows.")] = 4,
    attraction: Annotated[
        str,
        typer.Option(
            metavar="NUMBERS|random",
            help="Click probabilities: of the best items, as many as a list shows, and of the others; or one per item.",
        ),
    ] = "0.2,0.05",
    termination: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS",
            help="Probability that a dcm user is satisfied after a click: one number, or one per position.",
            show_default="0.5",
        ),
    ] = None,
    query: Annotated[
        list[str] | None,
        typer.Option(
            help="A query of the click model; may be repeated. Regret is the mean over queries.",
            show_default="the 20 with most items",
        ),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, max=MOST_STEPS, help="Number of lists to show.")] = 100_000,
    runs: Annotated[int, typer.Option(min=1, help="Number of repetitions, each with other random numbers.")] = 20,
    settings: Set = None,
    free_observations: Annotated[
        bool, typer.Option(help="Show every item once, alone, before the first step, as in the papers.")
    ] = True,
    log_axis: Annotated[bool, typer.Option("--log-axis", help="Draw steps on a logarithmic axis.")] = False,
    theory: Annotated[
        bool,
        typer.Option(
            "--theory", help="Add the bounds on the regret of dcm-kl-ucb, where they hold: dcm and cascade users."
        ),
    ] = False,
    jobs: Jobs = None,
    executor: ExecutorName = None,
    address: Address = None,
    out: Annotated[
        Path, typer.Option(help="A directory for the figure, regret.csv, simulate.json and run.json.")
    ] = Path("runs/simulate"),
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Let bandits rank for simulated users: regret over steps, mean and standard error over runs.

    Into --out go regret.png, .svg and .csv, simulate.json and run.json.

    --set discount=0.999 is for every bandit that has this setting, --set epsilon-greedy.epsilon=0.1 for one bandit. To run one bandit
    with two settings, give it a second name: --variant bold=epsilon-greedy --set bold.epsilon=0.3.
    """
    from rankpolicy.bandits import BANDITS
    from rankpolicy.simulation import lower_bound, mean_over_problems, upper_bound
    from rankpolicy.simulation import simulate as simulate_bandits

    run = Run(ctx)
    named = parse_methods(bandits, variant, BANDITS.named, kind="bandit")
    by_bandit = settings_of_methods(named.classes, parse_assignments(settings or []))
    makers = {name: partial(bandit, **by_bandit[name]) for name, bandit in named.classes.items()}
    options = SimulationOptions(
        users=users,
        queries=tuple(query or ()),
        items=items,
        cutoff=cutoff,
        attraction=attraction,
        termination=termination,
        seed=seed,
    )
    problems = _problems_of(options)
    directory = made_directory(out, option="--out")

    def report_run(name: str, done: int, regret: float) -> None:
        if done == runs or sys.stderr.isatty():
            end = "\n" if done == runs else "\r"
            sys.stderr.write(f"{name}: {done}/{runs} runs, regret {regret:.1f} ({run.seconds:.0f} s){end}")

    with note_if_slow("compiling bandits (first run only) ..."):
        simulate_bandits(makers, problems[0], num_steps=1, num_runs=1)
    simulations = []
    with executor_from(executor, jobs, address, default="threads") as chosen:
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
                    executor=chosen,
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
    record = run.record(
        seed=seed,
        data={"users": facts_of_file(Path(users))} if options.users_are_a_file else {},
        settings={name: with_defaults(named.classes[name], given) for name, given in by_bandit.items()},
    )
    document = found.to_dict() | {"run": record.to_dict()}
    if theory:
        document["theory"] = {name: values.tolist() for name, values in bounds.items()}
    write_results(directory, "simulate", document, record)
    _write_figure(directory, found, bounds, log_axis=log_axis)
    if as_json:
        print_json(document)
        return
    _print(found)
    console().print(f"figure {directory / 'regret.png'}", markup=False)


def _write_figure(directory: Path, found: Simulation, bounds: dict[str, Any], *, log_axis: bool) -> None:
    from rankpolicy.files import atomic_write
    from rankpolicy.reports import figures
    from rankpolicy.reports.regret_figure import regret_csv, regret_figure

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOptions:
    """The options of ``rankpolicy simulate`` that describe the problem, as they were typed."""

    users: str
    queries: tuple[str, ...]
    items: int | None
    cutoff: int
    attraction: str
    termination: str | None
    seed: int

    @property
    def users_are_a_file(self) -> bool:
        """Whether ``--users`` names the file of a click model."""
        return self.users.endswith((".json", ".json.gz", ".json.bz2", ".json.zst")) or Path(self.users).is_file()


def _problems_of(options: SimulationOptions) -> list[Problem]:
    """One problem, or one for each query of a click model."""
    if options.users_are_a_file:
        if options.items is not None:
            raise RankPolicyError("the click model of --users FILE says how many items there are: leave --items out.")
        return _of_click_model(options)
    if options.queries:
        raise RankPolicyError("--query must come with --users FILE, a click model fitted to a log.")
    return [_of_options(options, DEFAULT_ITEMS if options.items is None else options.items)]


def _of_options(options: SimulationOptions, num_items: int) -> Problem:
    import numpy as np

    from rankpolicy.simulation import random_user, stationary

    user = random_user(options.users, num_items, options.cutoff, random_state=options.seed)
    name = f"{options.users} users, {num_items} items, lists of {options.cutoff}, "
    if options.attraction == "random":
        name += "random attraction"
    else:
        user = user.with_attraction(_attraction(options, num_items))
        name += f"attraction {options.attraction}"
    if user.kind == "dcm":
        text = options.termination or DEFAULT_TERMINATION
        termination = _numbers(text, "--termination")
        if len(termination) not in (1, options.cutoff):
            raise RankPolicyError(
                f"--termination must be one number or one for each of {options.cutoff} positions; got {len(termination)}."
            )
        stop = np.broadcast_to(termination, options.cutoff)
        user = replace(user, parameters={**user.parameters, "stop": stop})
        name += f", termination {text}"
    elif options.termination is not None:
        raise RankPolicyError(f"--termination must come with --users dcm; got {options.users}.")
    return stationary(user, options.cutoff, name=name)


def _attraction(options: SimulationOptions, num_items: int) -> NDArray[np.float64]:
    import numpy as np

    numbers = _numbers(options.attraction, "--attraction")
    if len(numbers) == num_items and num_items != 2:
        return numbers
    if len(numbers) != 2:
        raise RankPolicyError(
            f"--attraction must be two numbers, of the best {options.cutoff} items and of the others, one for each of {num_items} "
            f"items, or 'random'; got {len(numbers)} numbers."
        )
    attraction: NDArray[np.float64] = np.where(np.arange(num_items) < options.cutoff, numbers[0], numbers[1])
    return attraction


def _numbers(text: str, option: str) -> NDArray[np.float64]:
    import numpy as np

    try:
        return np.array([float(part) for part in text.split(",") if part.strip()])
    except ValueError:
        raise RankPolicyError(
            f"{option} must be numbers separated by commas, such as 0.2,0.05; got {text!r}."
        ) from None


def _of_click_model(options: SimulationOptions) -> list[Problem]:
    import numpy as np

    from rankpolicy.clicks import ClickModel
    from rankpolicy.loading import load
    from rankpolicy.simulation import stationary

    model, cutoff = load(options.users), options.cutoff
    if not isinstance(model, ClickModel):
        raise RankPolicyError(f"--users must be a click model; {options.users} is a {type(model).__name__}.")
    names, table = model.pairs.query_names, model.pairs
    sizes = np.bincount(table.queries, minlength=len(names))
    for query in options.queries:
        if query not in names:
            raise RankPolicyError(unknown_name("query of the click model", query, names))
    largest = [int(place) for place in np.argsort(-sizes, kind="stable")[:MOST_QUERIES] if sizes[place] > cutoff]
    chosen = [names.index(query) for query in options.queries] or largest
    if not chosen:
        raise RankPolicyError(
            f"the click model must have a query with more items than a list shows, {cutoff}; the largest has {sizes.max(initial=0)}. "
            "Take a smaller --cutoff."
        )
    problems = []
    for place in chosen:
        items = [table.item_names[item] for item in table.items[table.queries == place]]
        name = f"{model.name} users of query {names[place]}, {len(items)} items, lists of {cutoff}"
        problems.append(stationary(model.user_of(names[place], items), cutoff, name=name))
    return problems
