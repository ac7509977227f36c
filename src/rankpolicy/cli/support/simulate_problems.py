"""The problems of ``rankpolicy simulate``: users made from options, or from a fitted click model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rankpolicy.types import RankPolicyError, unknown_name

if TYPE_CHECKING:
    from rankpolicy.clicks import ClickModel
    from rankpolicy.simulation import Problem

MOST_QUERIES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOptions:
    """The options of ``rankpolicy simulate`` that describe its users."""

    users: str
    items: int | None
    cutoff: int
    attraction: str
    termination: str | None
    seed: int

    @property
    def users_are_a_file(self) -> bool:
        """Whether ``--users`` names the file of a click model."""
        return self.users.endswith((".json", ".json.gz", ".json.zst")) or Path(self.users).is_file()


def problems_of(options: SimulationOptions, queries: Sequence[str]) -> list[Problem]:
    """One problem, or one for each query of a click model."""
    from rankpolicy.clicks import load_click_model

    if options.users_are_a_file:
        if options.items is not None:
            raise RankPolicyError("leave --items out with --users FILE: the click model has its own items.")
        return _fitted(load_click_model(options.users), queries, options.cutoff)
    if queries:
        raise RankPolicyError("--query needs --users FILE, a click model fitted to a log.")
    return [_made(options, 16 if options.items is None else options.items)]


def _made(options: SimulationOptions, num_items: int) -> Problem:
    from rankpolicy.simulation import make_user, random_user, stationary

    drawn = random_user(options.users, num_items, options.cutoff, random_state=options.seed)
    parameters = drawn.parameters
    if drawn.kind == "dcm":
        termination = _numbers(options.termination or "0.5", "--termination")
        if len(termination) not in (1, options.cutoff):
            raise RankPolicyError(
                f"--termination must be one number or one for each of {options.cutoff} positions; got {len(termination)}."
            )
        parameters = np.broadcast_to(termination, (1, options.cutoff))
    elif options.termination is not None:
        raise RankPolicyError(f"--termination needs --users dcm; got {options.users}.")
    attraction = drawn.attraction if options.attraction == "random" else _attraction(options, num_items)
    user = make_user(drawn.kind, attraction, satisfaction=drawn.satisfaction, parameters=parameters)
    text = "random attraction" if options.attraction == "random" else f"attraction {options.attraction}"
    ending = f", termination {options.termination or '0.5'}" if drawn.kind == "dcm" else ""
    return stationary(
        user,
        options.cutoff,
        name=f"{options.users} users, {num_items} items, lists of {options.cutoff}, {text}{ending}",
    )


def _attraction(options: SimulationOptions, num_items: int) -> NDArray[np.float64]:
    numbers = _numbers(options.attraction, "--attraction")
    if len(numbers) == num_items and num_items != 2:
        return numbers
    if len(numbers) != 2:
        raise RankPolicyError(
            f"--attraction must be two numbers, of the best {options.cutoff} items and of the others, one for each of {num_items} items, "
            f"or 'random'; got {len(numbers)} numbers."
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


def _fitted(model: ClickModel, queries: Sequence[str], cutoff: int) -> list[Problem]:
    from rankpolicy.simulation import make_user, stationary

    names, table = model.pairs.query_names, model.pairs
    sizes = np.bincount(table.queries, minlength=len(names))
    if queries:
        for query in queries:
            if query not in names:
                raise RankPolicyError(unknown_name("query of the click model", query, names))
        chosen = [names.index(query) for query in queries]
    else:
        chosen = [int(place) for place in np.argsort(-sizes, kind="stable")[:MOST_QUERIES] if sizes[place] > cutoff]
    if not chosen:
        raise RankPolicyError(
            f"the click model must have a query with more items than a list shows, {cutoff}; the largest has {sizes.max(initial=0)}. "
            "Take a smaller --cutoff."
        )
    problems = []
    for place in chosen:
        items = [table.item_names[item] for item in table.items[table.queries == place]]
        user = model.user_of(names[place], items)
        checked = make_user(user.kind, user.attraction, satisfaction=user.satisfaction, parameters=user.parameters)
        problems.append(
            stationary(
                checked,
                cutoff,
                name=f"{model.name} users of query {names[place]}, {len(items)} items, lists of {cutoff}",
            )
        )
    return problems
