"""What ``simulate`` simulates: users from options, or from a fitted click model."""

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
class Wish:
    """The options that say what to simulate."""

    users: str
    items: int | None
    cutoff: int
    attraction: str
    termination: str | None
    seed: int


def problems_of(wish: Wish, queries: Sequence[str]) -> list[Problem]:
    """One problem, or one for each query of a click model."""
    from rankpolicy.clicks import load_click_model

    if wish.users.endswith((".json", ".json.gz", ".json.zst")) or Path(wish.users).is_file():
        if wish.items is not None:
            raise RankPolicyError(
                "--items must not come with --users FILE: the click model says how many items there are."
            )
        return _fitted(load_click_model(wish.users), queries, wish.cutoff)
    if queries:
        raise RankPolicyError("--query must come with --users FILE, a click model fitted to a log.")
    return [_made(wish, 16 if wish.items is None else wish.items)]


def _made(wish: Wish, num_items: int) -> Problem:
    from rankpolicy.simulation import make_user, random_user, stationary

    drawn = random_user(wish.users, num_items, wish.cutoff, random_state=wish.seed)
    parameters = drawn.parameters
    if drawn.kind == "dcm":
        termination = _numbers(wish.termination or "0.5", "--termination")
        if len(termination) not in (1, wish.cutoff):
            raise RankPolicyError(
                f"--termination must be one number or one for each of {wish.cutoff} positions; got {len(termination)}."
            )
        parameters = np.broadcast_to(termination, (1, wish.cutoff))
    elif wish.termination is not None:
        raise RankPolicyError(f"--termination must come with --users dcm; got {wish.users}.")
    attraction = drawn.attraction if wish.attraction == "random" else _attraction(wish, num_items)
    user = make_user(drawn.kind, attraction, satisfaction=drawn.satisfaction, parameters=parameters)
    text = "random attraction" if wish.attraction == "random" else f"attraction {wish.attraction}"
    ending = f", termination {wish.termination or '0.5'}" if drawn.kind == "dcm" else ""
    return stationary(
        user, wish.cutoff, name=f"{wish.users} users, {num_items} items, lists of {wish.cutoff}, {text}{ending}"
    )


def _attraction(wish: Wish, num_items: int) -> NDArray[np.float64]:
    numbers = _numbers(wish.attraction, "--attraction")
    if len(numbers) == num_items and num_items != 2:
        return numbers
    if len(numbers) != 2:
        raise RankPolicyError(
            f"--attraction must be two numbers, of the best {wish.cutoff} items and of the others, one for each of {num_items} items, "
            f"or 'random'; got {len(numbers)} numbers."
        )
    return np.where(np.arange(num_items) < wish.cutoff, numbers[0], numbers[1])


def _numbers(text: str, option: str) -> NDArray[np.float64]:
    try:
        return np.array([float(part) for part in text.split(",") if part.strip()])
    except ValueError:
        raise RankPolicyError(
            f"{option} must be numbers with commas between, such as 0.2,0.05; got {text!r}."
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
