"""The users of ``rankpolicy simulate``: of a kind, or those of a click model in a file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankpolicy.cli.support.options import numbers_in
from rankpolicy.types import RankPolicyError, check_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankpolicy.simulation import Problem

MOST_QUERIES, DEFAULT_ITEMS, DEFAULT_TERMINATION = 20, 16, "0.5"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserOptions:
    """The options that describe users, items and lists, as they were typed.

    Parameters
    ----------
    users : KIND|FILE
        cascade, dcm, pbm, ubm, ccm, dbn, sdbn, or the file of a click model from 'rankpolicy clicks fit'.
    items : default 16
        Number of items, for users of a KIND.
    cutoff
        Number of items that a list shows.
    attraction : NUMBERS|random
        Click probabilities: of the best items, as many as a list shows, and of the others; or one per item.
    termination : NUMBERS, default 0.5
        Probability that a dcm user is satisfied after a click: one number, or one per position.
    query : default the 20 with most items
        A query of the click model; may be repeated. Regret is the mean over queries.
    """

    users: str = "dcm"
    items: Annotated[int | None, typer.Option(min=1)] = None
    cutoff: Annotated[int, typer.Option(min=1)] = 4
    attraction: str = "0.2,0.05"
    termination: str | None = None
    query: list[str] | None = None

    @property
    def are_a_file(self) -> bool:
        """Whether ``--users`` names the file of a click model."""
        return self.users.endswith((".json", ".json.gz", ".json.bz2", ".json.zst")) or Path(self.users).is_file()


def simulation_problems(options: UserOptions, seed: int) -> list[Problem]:
    """One problem, or one for each query of a click model."""
    if options.are_a_file:
        if options.items is not None:
            raise RankPolicyError("the click model of --users FILE says how many items there are: leave --items out.")
        return _of_click_model(options)
    if options.query:
        raise RankPolicyError("--query must come with --users FILE, a click model fitted to a log.")
    return [_of_kind(options, DEFAULT_ITEMS if options.items is None else options.items, seed)]


def _of_kind(options: UserOptions, num_items: int, seed: int) -> Problem:
    import numpy as np

    from rankpolicy.simulation import random_user, stationary

    user = random_user(options.users, num_items, options.cutoff, random_state=seed)
    name = f"{options.users} users, {num_items} items, lists of {options.cutoff}, "
    if options.attraction == "random":
        name += "random attraction"
    else:
        user = user.with_attraction(_attraction(options, num_items))
        name += f"attraction {options.attraction}"
    if user.kind == "dcm":
        text = options.termination or DEFAULT_TERMINATION
        termination = numbers_in(text, "--termination", such_as="0.2,0.05")
        if len(termination) not in (1, options.cutoff):
            raise RankPolicyError(
                f"--termination must be one number or one for each of {options.cutoff} positions; got {len(termination)}."
            )
        stop = np.broadcast_to(np.array(termination), options.cutoff)
        user = replace(user, parameters={**user.parameters, "stop": stop})
        name += f", termination {text}"
    elif options.termination is not None:
        raise RankPolicyError(f"--termination must come with --users dcm; got {options.users}.")
    return stationary(user, options.cutoff, name=name)


def _attraction(options: UserOptions, num_items: int) -> NDArray[np.float64]:
    import numpy as np

    numbers = numbers_in(options.attraction, "--attraction", such_as="0.2,0.05")
    if len(numbers) == num_items and num_items != 2:
        return np.array(numbers)
    if len(numbers) != 2:
        raise RankPolicyError(
            f"--attraction must be two numbers, of the best {options.cutoff} items and of the others, one for each of {num_items} "
            f"items, or 'random'; got {len(numbers)} numbers."
        )
    attraction: NDArray[np.float64] = np.where(np.arange(num_items) < options.cutoff, numbers[0], numbers[1])
    return attraction


def _of_click_model(options: UserOptions) -> list[Problem]:
    import numpy as np

    from rankpolicy.clicks import ClickModel
    from rankpolicy.loading import load
    from rankpolicy.simulation import stationary

    model, cutoff = load(options.users), options.cutoff
    if not isinstance(model, ClickModel):
        raise RankPolicyError(f"--users must be a click model; {options.users} is a {type(model).__name__}.")
    names, table = model.pairs.query_names, model.pairs
    sizes = np.bincount(table.queries, minlength=len(names))
    for query in options.query or ():
        check_name("query of the click model", query, names)
    longest = [int(query) for query in np.argsort(-sizes, kind="stable")[:MOST_QUERIES] if sizes[query] > cutoff]
    chosen = [names.index(query) for query in options.query or ()] or longest
    if not chosen:
        raise RankPolicyError(
            f"the click model must have a query with more items than a list shows, {cutoff}; the largest has {sizes.max(initial=0)}. "
            "Take a smaller --cutoff."
        )
    problems = []
    for query_index in chosen:
        items = [table.item_names[item] for item in table.items[table.queries == query_index]]
        name = f"{model.name} users of query {names[query_index]}, {len(items)} items, lists of {cutoff}"
        problems.append(stationary(model.user_of(names[query_index], items), cutoff, name=name))
    return problems
