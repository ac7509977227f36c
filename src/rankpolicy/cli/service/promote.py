"""rankpolicy service promote

The file is checked and copied into the database; a running service follows after a second. Who gets a canary is decided by a hash of
the user, or of the list where it has no user. 'rankpolicy service rollback' takes it back.

Parameters
----------
model : MODEL
    The file of a ranker: what save() wrote.
policy
    The policy under whose name it is served.
share
    Share of the traffic that it gets, such as 10%.
version
    Instead of a file: a version of the policy.
order_by : sorted|sampled, default as the version that serves now
    How it orders.
temperature : default as the version that serves now
    Of sampled lists.
reason
    Why, for the audit log.

Examples
--------
rankpolicy service promote model.rp --policy search --share 10%
rankpolicy service promote model.rp --policy search --order-by sampled --temperature 0.5
rankpolicy service promote --version 2 --policy search
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rankpolicy.cli.service.database import Db, now_of, opened, share_from
from rankpolicy.cli.support import options
from rankpolicy.cli.support.output import answer
from rankpolicy.types import RankPolicyError


def promote(
    model: Path | None = None,
    *,
    policy: str = "default",
    share: str = "100%",
    version: Annotated[int | None, typer.Option(min=1)] = None,
    order_by: str | None = None,
    temperature: float | None = None,
    reason: str = "",
    db: Db = "rankpolicy.db",
    seed: options.NotRandom = 0,
    as_json: options.Json = False,
) -> None:
    """Serve a ranker under the name of a policy, to all users or, as a canary, to a share of them."""
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

        change: dict[str, Any] = {"author": "command line", "detail": reason, "now": now_of(store)}
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
