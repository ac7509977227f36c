"""rankpolicy service promote"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rankpolicy.cli.service.database import Db, now_of, opened, share_from
from rankpolicy.cli.support import options
from rankpolicy.cli.support.output import answer
from rankpolicy.types import RankPolicyError

EXAMPLES = """
[bold]Examples[/bold]

rankpolicy service promote model.rp --policy search --share 10%

rankpolicy service promote model.rp --policy search --order-by sampled --temperature 0.5

rankpolicy service promote --version 2 --policy search
"""


def promote(
    model: Annotated[
        Path | None,
        typer.Argument(metavar="MODEL", help="The file of a ranker: what save() wrote.", show_default=False),
    ] = None,
    policy: Annotated[str, typer.Option(help="The policy under whose name it is served.")] = "default",
    share: Annotated[str, typer.Option(help="Share of the traffic that it gets, such as 10%.")] = "100%",
    version: Annotated[
        int | None, typer.Option(min=1, help="Instead of a file: a version of the policy.", show_default=False)
    ] = None,
    order_by: Annotated[
        str | None,
        typer.Option(metavar="sorted|sampled", help="How it orders.", show_default="as the version that serves now"),
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(help="Of sampled lists.", show_default="as the version that serves now")
    ] = None,
    reason: Annotated[str, typer.Option(help="Why, for the audit log.")] = "",
    db: Db = "rankpolicy.db",
    seed: options.NotRandom = 0,
    as_json: options.Json = False,
) -> None:
    """Serve a ranker under the name of a policy, to all users or, as a canary, to a share of them.

    The file is checked and copied into the database; a running service follows after a second. Who gets a canary is decided by a hash of
    the user, or of the list where it has no user. 'rankpolicy service rollback' takes it back.
    """
    if (model is None) == (version is None):
        raise RankPolicyError("give the file of a model, or --version of one that was served before; one of them.")
    share_of_traffic = share_from(share)
    content = None
    if model is not None:
        from rankpolicy.files import checked_file

        content = checked_file(model).read_bytes()
    elif order_by is not None or temperature is not None:
        raise RankPolicyError("--order-by and --temperature are for the file of a model: a version has them already.")
    with opened(db, role="keys") as store:
        from rankpolicy.service.learning.promotion import promote_model, promote_version

        change: dict[str, Any] = {"who": "command line", "detail": reason, "now": now_of(store)}
        if content is not None:
            options_of_model = {"order_by": order_by, "temperature": temperature}
            settings = {name: value for name, value in options_of_model.items() if value is not None} or None
            promoted = promote_model(store, policy, content, settings=settings, share=share_of_traffic, **change)
        else:
            assert version is not None
            promoted = promote_version(store, policy, version, share=share_of_traffic, **change)
    answer(
        {"policy": policy, "version": promoted.version, "share": promoted.share, "change": promoted.number},
        f"{policy}: version {promoted.version} gets {promoted.share:.4g} of the traffic. Take it back: rankpolicy service rollback.",
        as_json=as_json,
    )
