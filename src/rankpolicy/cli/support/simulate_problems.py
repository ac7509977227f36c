"""What ``rankpolicy simulate`` simulates: users described by options, or users of a fitted click model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rankpolicy.types import RankPolicyError, unknown_name

if TYPE_CHECKING:
    from rankpolicy.simulation import Problem

MOST_QUERIES, DEFAULT_ITEMS, DEFAULT_TERMINATION = 20, 16, "0.5"


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
        return self.users.endswith((".json", ".json.gz", ".json.zst")) or Path(self.users).is_file()


def problems_of(options: SimulationOptions) -> list[Problem]:
    """One problem, or one for each query of a click model."""
    if options.users_are_a_file:
        if options.items is not None:
            raise RankPolicyError(
                "--items must not come with --users FILE: the click model has its own items; leave --items out."
            )
        return _of_click_model(options)
    if options.queries:
        raise RankPolicyError("--query must come with --users FILE, a click model fitted to a log.")
    return [_of_options(options, DEFAULT_ITEMS if options.items is None else options.items)]


def _of_options(options: SimulationOptions, num_items: int) -> Problem:
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
    try:
        return np.array([float(part) for part in text.split(",") if part.strip()])
    except ValueError:
        raise RankPolicyError(
            f"{option} must be numbers separated by commas, such as 0.2,0.05; got {text!r}."
        ) from None


def _of_click_model(options: SimulationOptions) -> list[Problem]:
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
