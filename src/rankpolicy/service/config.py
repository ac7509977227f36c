"""The configuration of a service: one TOML file, checked before anything is opened."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rankpolicy.declarations.settings import check_settings, documented, setting, setting_names
from rankpolicy.files import read_toml
from rankpolicy.service.domain.routing import SPLIT
from rankpolicy.service.log import is_url
from rankpolicy.service.policies.members import SERVED
from rankpolicy.service.policies.policy_settings import policy_of_table, stored_settings
from rankpolicy.service.policies.served_policy import ServedPolicy
from rankpolicy.types import RankPolicyError, check_name

if TYPE_CHECKING:
    from rankpolicy.service.learning.retrain_settings import Retrain

# Its log can judge candidates that differ in an item or two (random items), or everywhere, and the uplift over random (random lists).
DEFAULT_POLICY: dict[str, Any] = {"kind": "bandit", "bandit": "epsilon-greedy", "random_lists": 0.05}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@documented
@dataclass(frozen=True, kw_only=True)
class ServiceConfig:
    """All settings of a service.

    service.toml:

        db = "rankpolicy.db"
        window_seconds = 60

        [policies.search]          # the first policy is the default
        kind = "bandit"
        bandit = "epsilon-greedy"
        random_lists = 0.05

        [policies.reference]
        kind = "uniform"
    """

    db: str = setting("rankpolicy.db", "The database; it is made where there is none.")
    store: str | None = setting(
        None, "A PostgreSQL database instead of the file db, for several servers: postgresql://user@host/database."
    )
    host: str = setting("127.0.0.1", "Address to listen on. Other than loopback only with keys.")
    port: int = setting(8080, "Port to listen on; 0 takes a free one.", at_least=0, at_most=65535)
    window_seconds: float = setting(
        60.0,
        "How long events on a list are waited for. When it ends, the list is learned with the clicks that came; later events are logged. "
        "Longer windows miss fewer clicks, shorter ones learn sooner.",
        above=0,
        at_most=7 * 86_400,
    )
    rank_budget_seconds: float | None = setting(
        None,
        "How long a ranker may take for a list; the caller's own order is shown where it takes longer. None: as long as it takes.",
        above=0,
    )
    list_seconds: float = setting(
        0.1,
        "How long a list may wait for the disk. A later one is shown without being logged, and its answer says so.",
        above=0,
        at_most=60,
    )
    event_seconds: float = setting(
        5.0,
        "How long events may wait for the disk. Later they are refused with 503 and have to be sent again; none is counted twice.",
        above=0,
        at_most=600,
    )
    queue_seconds: float = setting(
        1.0,
        "How long a list may wait for its turn where ranking takes a thread: for a large model, or for draws of propensities. Those that "
        "waited longer are refused with 503.",
        above=0,
        at_most=600,
    )
    shed_seconds: float = setting(
        0.004,  # at twice saturation half of the lists within 30 ms; with 0.02 they wait for seconds
        "How long lists and events may wait before they are read. Those that waited longer are refused with 503, so that under a load "
        "which is too high the others are answered soon.",
        above=0,
        at_most=60,
    )
    max_megabytes_in_flight: float = setting(
        64.0, "Size of all requests together that are being read or answered; more are refused with 503.", at_least=1.0
    )
    max_item_draws: int = setting(
        100_000,
        "Items times propensity_draws of one request. 100,000 take about a third of a second of a core; more are refused.",
        at_least=0,
    )
    retention_days: float | None = setting(
        None,
        "Lists shown longer ago are deleted with their events; what was learned from them stays. 'rankpolicy service export' keeps a copy. "
        "None: nothing is deleted.",
        above=0,
    )
    snapshot_every: int = setting(
        100_000, "Lists learned between snapshots. A restart computes what came after the last one.", at_least=1
    )
    check: str = setting(
        "quick",
        "What is checked of the database at the start: 'quick' (pages), 'full' (pages and indexes) or 'none'.",
        choices=("quick", "full", "none"),
    )
    rerank_features: str | None = setting(
        None,
        "Your function package.module:name(query, documents) that makes the features of documents sent to /v1/rerank for rankers of "
        "features: one dict of values by name per document. None: documents carry their features as fields.",
    )
    access_log: float = setting(
        0.0,
        "Share of requests that get a line of JSON on stderr with their id, path, status, time and key: 1 all, 0.01 one in a hundred.",
        at_least=0,
        at_most=1,
    )
    traces: bool = setting(
        False,
        "Send a span of every request by OpenTelemetry (OTLP over HTTP), to where OTEL_EXPORTER_OTLP_ENDPOINT and its kin say. Needs "
        "pip install 'rankpolicy[otel]'.",
    )
    seed: int | None = setting(
        None, "Seed of random lists, for tests; None draws from the secret of the database.", at_least=0
    )
    policies: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"default": dict(DEFAULT_POLICY)})
    retrain: Sequence[Mapping[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_settings(self)
        if self.store is not None and not is_url(self.store):
            raise RankPolicyError("store must be postgresql://user@host/database; for a file use db.")
        if not isinstance(self.policies, Mapping) or not self.policies:
            raise RankPolicyError("policies must be a table of at least one policy: [policies.NAME] in service.toml.")
        for name, table in self.policies.items():
            if not _NAME.fullmatch(name):
                raise RankPolicyError(
                    f"the name of a policy must be up to 64 letters, digits, '-', '_' and '.'; got {name!r:.80}."
                )
            if not isinstance(table, Mapping) or "kind" not in table:
                raise RankPolicyError(f"policies.{name} must be a table with a kind: {', '.join(SERVED)}.")
        self._check_splits()
        self.retrains()

    def retrains(self) -> list[Retrain]:
        """What ``[[retrain]]`` says, checked."""
        if isinstance(self.retrain, Sequence) and not self.retrain:
            return []
        from rankpolicy.service.learning.retrain_settings import Retrain

        if not isinstance(self.retrain, Sequence) or not all(isinstance(table, Mapping) for table in self.retrain):
            raise RankPolicyError("retrain must be a list of tables: [[retrain]] in service.toml.")
        retrains = []
        for table in self.retrain:
            for name in table:
                check_name("setting", name, setting_names(Retrain), within="retrain: ")
            if "policy" not in table:
                raise RankPolicyError(f"retrain must name a policy: {', '.join(self.policies)}.")
            try:
                retrains.append(Retrain(**table))
            except RankPolicyError as error:
                raise RankPolicyError(f"retrain: {error}") from None
            for named in (retrains[-1].policy, retrains[-1].bias_policy):
                check_name("policy", named, self.policies, within="retrain: ")
        return retrains

    def _check_splits(self) -> None:
        """A split passes requests on to policies that exist and are no splits themselves."""
        for name, table in self.policies.items():
            shares = table.get("shares") if table["kind"] == SPLIT else {}
            for member in shares if isinstance(shares, Mapping) else ():
                check_name("policy", member, self.policies, within=f"policies.{name}: ")
                if self.policies[member]["kind"] == SPLIT:
                    raise RankPolicyError(f"policies.{name}: {member} is a split itself; name the policies behind it.")

    @property
    def place(self) -> str:
        """Where everything is stored: a file, or the URL of a PostgreSQL database."""
        return self.db if self.store is None else self.store

    @property
    def place_in_words(self) -> str:
        """The same for people: without user and password."""
        return self.db if self.store is None else f"PostgreSQL at {self.store.rpartition('@')[2].rpartition('//')[2]}"

    @property
    def window(self) -> int:
        """The window in microseconds."""
        return round(self.window_seconds * 1e6)

    def made_policies(self) -> dict[str, tuple[ServedPolicy, str]]:
        """The policies by name, each with its settings as the database knows them."""
        return {name: _made(name, table) for name, table in self.policies.items()}


def read_config(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a TOML file says, by the names of ``ServiceConfig``.

    Parameters
    ----------
    path
        The file.
    """
    document = read_toml(path)
    for name in document:
        check_name("setting", name, setting_names(ServiceConfig), within=f"{os.fspath(path)}: ")
    return document


def _made(name: str, table: Mapping[str, Any]) -> tuple[ServedPolicy, str]:
    try:
        policy = policy_of_table(table)
    except RankPolicyError as error:
        raise RankPolicyError(f"policies.{name}: {error}") from None
    settings = {key: value for key, value in table.items() if key != "kind"}
    return policy, json.dumps(stored_settings(policy, settings), sort_keys=True, default=str)
