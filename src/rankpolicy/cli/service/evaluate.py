"""rankpolicy service evaluate

Lists without propensities and lists shown without any randomness say nothing about other lists: they are refused and counted. With
--against, the difference to a policy of the service is estimated too, on the same lists where that is possible.

Parameters
----------
candidate : MODEL
    The file of a ranker: what save() wrote.
policy
    Instead of a file: a policy of the service.
version : default the one that serves now
    Its version.
against : POLICY
    A policy to compare with.
order_by : sorted|sampled
    How the candidate orders.
temperature : default 1
    Of sampled lists.
event
    The type of event that counts.
estimator
    rips, snrips, ips or snips; see: rankpolicy methods.
level
    Level of the interval.
out
    A directory for evaluate.json and run.json.

Examples
--------
rankpolicy service evaluate --candidate model.rp --out runs/eval
rankpolicy service evaluate --candidate model.rp --against search --since 2026-11-01
rankpolicy service evaluate --policy search --version 2 --json
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rankpolicy.cli.service.database import Db, Since, now_of, opened, time_from
from rankpolicy.cli.support.output import facts_of_file, show
from rankpolicy.cli.support.run import RunWithoutSeed
from rankpolicy.types import RankPolicyError


def evaluate(
    *,
    candidate: Path | None = None,
    policy: str | None = None,
    version: Annotated[int | None, typer.Option(min=1)] = None,
    against: str | None = None,
    order_by: str = "sorted",
    temperature: float | None = None,
    since: Since = None,
    event: str = "click",
    estimator: str = "rips",
    level: float = 0.95,
    out: Path | None = None,
    db: Db = "rankpolicy.db",
    run: RunWithoutSeed,
) -> None:
    """The events per list that a candidate would have had, estimated from the log of a service, with an interval."""
    run.make_directory(out)
    if not 0 < level < 1:
        raise RankPolicyError(f"--level must be between 0 and 1; got {level:g}.")
    content = None
    if candidate is not None:
        from rankpolicy.files import checked_file

        content = checked_file(candidate).read_bytes()
    request = {
        "policy": policy, "version": version, "against": against, "order_by": order_by, "temperature": temperature,
        "since": (time_from("--since", since) or 0) / 1e6, "event": event, "estimator": estimator, "level": level,
    }  # fmt: skip
    with opened(db, role="reader") as store:
        import msgspec

        from rankpolicy.service.domain.messages import Evaluate
        from rankpolicy.service.learning.evaluation import evaluate as judged

        try:
            checked = msgspec.convert(request, Evaluate)
        except msgspec.ValidationError as error:
            raise RankPolicyError(f"{error}.") from None
        value = judged(store, checked, content=content, now=now_of(store))
        # The log grows while it is read, so its bytes say nothing; a model stays what it is.
        data = {"log": {"path": store.name}} | ({} if candidate is None else {"candidate": facts_of_file(candidate)})
    run.finish(value, data=data, settings=value["candidate"], show_results=lambda: _show(value))


def _show(value: dict[str, Any]) -> None:
    estimate, against = value["estimate"], value["against"]
    interval = _interval(estimate["interval"], "{:.4f}")
    show(
        f"{value['event']}s per list: {estimate['value']:.4f}, {estimate['level']:.0%} interval {interval} ({estimate['estimator']}); "
        f"as they were shown {value['logged_value']:.4f}"
    )
    if against is not None:
        how = "on the same lists" if against["paired"] else f"by {against['num_lists']:,} lists of its own"
        show(
            f"against {against['policy']} ({against['value']:.4f}, {how}): difference {against['difference']:+.4f} "
            f"{_interval(against['interval'], '{:+.4f}')}"
        )
    size, weight = estimate["effective_sample_size"], estimate["mean_weight"]
    show(f"{value['lists']:,} lists, effective sample size {size:.0f}, mean weight {weight:.3f}", dim=True)
    for reason, number in value["refused"].items():
        show(f"{number:,} lists refused, {reason}", dim=True)
    if value["estimated_propensities"]:
        show(f"{value['estimated_propensities']:,} lists with propensities estimated from draws", dim=True)
    if not value["is_covered"]:
        show("the mean weight is far from 1: the log lacks lists that the candidate would show")


def _interval(bounds: list[float | None], form: str) -> str:
    low, high = ("unknown" if bound is None else form.format(bound) for bound in bounds)
    return f"[{low}, {high}]"
