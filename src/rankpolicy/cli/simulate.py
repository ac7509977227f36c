"""rankpolicy simulate

Into --out go regret.png, .svg and .csv, simulate.json and run.json.

--set discount=0.999 is for every bandit that has this setting, --set epsilon-greedy.epsilon=0.1 for one bandit. To run one bandit
with two settings, give it a second name: --variant bold=epsilon-greedy --set bold.epsilon=0.3.

Parameters
----------
bandits
    Bandits, comma-separated; see: rankpolicy methods.
variant : NAME=BANDIT
    Run BANDIT once more under a name of your own, with settings of its own: --variant bold=epsilon-greedy --set bold.epsilon=0.3.
    May be repeated.
steps
    Number of lists to show.
runs
    Number of repetitions, each with other random numbers.
settings : --set NAME=VALUE
    A setting of the bandits that have it, such as discount=0.999, or of one, such as epsilon-greedy.epsilon=0.1; may be repeated.
    All settings: rankpolicy methods NAME.
free_observations
    Show every item once, alone, before the first step, as in the papers.
log_axis
    Draw steps on a logarithmic axis.
theory
    Add the bounds on the regret of dcm-kl-ucb, where they hold: dcm and cascade users.
out
    A directory for the figure, regret.csv, simulate.json and run.json.

Examples
--------
rankpolicy simulate --bandits dcm-kl-ucb,first-click,last-click,dcm-ts --steps 100000 --runs 20 --theory
rankpolicy simulate --users cascade --items 32 --cutoff 8 --attraction 0.2,0.05 --bandits cascade-ucb1,cascade-kl-ucb
rankpolicy simulate --users dcm --termination 0.9,0.5,0.7,0.6 --attraction random --bandits dcm-ts,random --log-axis
rankpolicy simulate --users runs/clicks/dcm.json --query 98435_1 --cutoff 10 --bandits dcm-kl-ucb,ranked-kl-ucb
rankpolicy simulate --bandits epsilon-greedy --variant bold=epsilon-greedy --set bold.epsilon=0.3
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankpolicy.cli.support import options
from rankpolicy.cli.support.method_settings import parse_methods
from rankpolicy.cli.support.output import csv_text, facts_of_file, images, note, note_if_slow, show_table
from rankpolicy.cli.support.run import Files, Run
from rankpolicy.cli.support.simulated_users import UserOptions, simulation_problems

if TYPE_CHECKING:
    from rankpolicy.simulation import Problem, Simulation

MOST_STEPS = 10**12


def simulate(
    *,
    bandits: str = "dcm-kl-ucb,dcm-ts",
    variant: list[str] | None = None,
    users: UserOptions,
    steps: Annotated[int, typer.Option(min=1, max=MOST_STEPS)] = 100000,
    runs: Annotated[int, typer.Option(min=1)] = 20,
    settings: list[str] | None = None,
    free_observations: bool = True,
    log_axis: bool = False,
    theory: bool = False,
    work: options.ParallelWork,
    out: Path = Path("runs/simulate"),
    run: Run,
) -> None:
    """Let bandits rank for simulated users: regret over steps, mean and standard error over runs."""
    from rankpolicy.bandits import BANDITS
    from rankpolicy.simulation import mean_over_problems, simulate as simulate_bandits

    named = parse_methods(bandits, variant, settings, BANDITS, kind="bandit")
    makers = {name: partial(bandit, **named.settings[name]) for name, bandit in named.classes.items()}
    problems = simulation_problems(users, run.seed)
    run.make_directory(out)

    def report_run(name: str, done: int, regret: float) -> None:
        if done == runs or sys.stderr.isatty():
            end = "\n" if done == runs else "\r"
            sys.stderr.write(f"{name}: {done}/{runs} runs, regret {regret:.1f} ({run.seconds:.0f} s){end}")

    simulations = []
    with work.opened("threads") as executor:
        with note_if_slow("compiling bandits (first run only) ..."):
            simulate_bandits(makers, problems[0], num_steps=1, num_runs=1)
        for problem in problems:
            if len(problems) > 1:
                note(f"{problem.name}:")
            simulation = simulate_bandits(
                makers,
                problem,
                num_steps=steps,
                num_runs=runs,
                random_state=run.seed,
                free_observations=free_observations,
                executor=executor,
                report_run=report_run,
            )
            simulations.append(simulation)
    mean = mean_over_problems(simulations)
    bounds = _bounds(problems, mean.steps) if theory else {}
    run.finish(
        mean.to_dict() | ({"theory": {name: values.tolist() for name, values in bounds.items()}} if theory else {}),
        data={"users": facts_of_file(Path(users.users))} if users.are_a_file else {},
        settings=named.all_settings(),
        show_results=lambda: _show(mean),
        files=lambda _: _files(mean, bounds, log_axis=log_axis),
    )


def _bounds(problems: list[Problem], steps: Any) -> dict[str, Any]:
    """The theoretical bounds that are known for the problem, by name."""
    from rankpolicy.simulation import lower_bound, upper_bound

    bounds = {}
    for name, bound in (("upper bound", upper_bound), ("lower bound", lower_bound)):
        values = bound(problems[0], steps) if len(problems) == 1 else None
        if values is None:
            note(f"{name}: none is known for these users.")
        else:
            bounds[name] = values
    return bounds


def _files(mean: Simulation, bounds: dict[str, Any], *, log_axis: bool) -> Files:
    from rankpolicy.reports.simulation_figures import regret_figure

    title = mean.problems[0].name if len(mean.problems) == 1 else f"mean over {len(mean.problems)} queries"
    figure = regret_figure(mean, title=title, log_axis=log_axis, theory=bounds)
    rows = [
        (name, *row)
        for name in mean.regrets
        for row in zip(mean.steps.tolist(), mean.mean(name).tolist(), mean.standard_error(name).tolist(), strict=True)
    ]
    return {
        "regret.csv": csv_text(("bandit", "step", "regret", "standard_error"), rows),
        **images("regret", figure),
    }


def _show(mean: Simulation) -> None:
    runs = len(next(iter(mean.regrets.values())))
    rows = []
    for name in sorted(mean.regrets, key=lambda name: mean.mean(name)[-1]):
        error = f"{mean.standard_error(name)[-1]:.1f}" if runs > 1 else "needs two runs"
        rows.append((name, f"{mean.mean(name)[-1]:.1f}", error))
    show_table(("bandit", f"regret after {mean.steps[-1]:,} steps", f"standard error of {runs} runs"), rows)
