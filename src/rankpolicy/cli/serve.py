"""rankpolicy serve

POST /v1/rank gives a list, POST /v1/events takes clicks, /openapi.json describes both. Without keys only this machine is served;
'rankpolicy service key new' makes one. The dashboard is at /. End it with Ctrl-C.

With --playground, users whose tastes are known click on lists of a bandit and on random ones; without --db and --window the data goes
to playground.db and a list is learned after two seconds.

Parameters
----------
config
    A TOML file of policies and settings; without one, a bandit that explores with known propensities.
host : default 127.0.0.1
    Address to listen on; other than loopback only with keys.
port : default 8080
    Port; 0 takes a free one.
db : default rankpolicy.db
    The database, made where there is none.
window : default 60
    Seconds after which a list is learned with its clicks.
seed : default from the database
    Seed of random lists, for tests.
playground
    Let simulated users come, so that there is something to see.
rate : default 40
    Simulated users per second, with --playground.

Examples
--------
rankpolicy serve
rankpolicy serve --playground
rankpolicy serve --config service.toml --port 9000
rankpolicy serve --db /var/lib/rankpolicy/search.db --host 0.0.0.0
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankpolicy.cli.service.database import need_serve
from rankpolicy.cli.support import options
from rankpolicy.cli.support.output import print_json
from rankpolicy.service.json_log import log_line
from rankpolicy.types import MissingDependencyError, RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.service.config import ServiceConfig


_USERS_PER_SECOND = 40.0
BAD_INPUT = 2  # exit status, as everywhere on the command line


def serve(
    *,
    config: Path | None = None,
    host: str | None = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535)] = None,
    db: Path | None = None,
    window: float | None = None,
    seed: Annotated[int | None, typer.Option(min=0)] = None,
    playground: bool = False,
    rate: Annotated[float | None, typer.Option(min=0.1, max=1000)] = None,
    as_json: options.Json = False,
) -> None:
    """Serve rankings over HTTP: show lists, store clicks durably, learn from them."""
    with _errors_as_json(), ExitStack() as stack:
        need_serve()
        if rate is not None and not playground:
            raise RankPolicyError("--rate is of the simulated users: give --playground too.")
        users = _USERS_PER_SECOND if rate is None else rate
        from rankpolicy.service.playground import simulated_users
        from rankpolicy.service.server import serve as serve_forever

        database = None if db is None else str(db)
        typed = {"host": host, "port": port, "db": database, "window_seconds": window, "seed": seed}
        chosen = _configuration(config, typed, playground=playground)
        let_users_come = None
        if playground:
            let_users_come = stack.enter_context(simulated_users(chosen, rate=users, seed=seed, report=log_line))

        def announce(url: str) -> None:
            if as_json:
                print_json({"url": url, "db": chosen.place_in_words, "policies": list(chosen.policies)})
            else:
                # On stdout: stderr is for programs, one JSON object per line.
                print(
                    f"serving {', '.join(chosen.policies)} at {url}, data in {chosen.place_in_words}. Ctrl-C ends it."
                )
                users_text = f", with {users:g} simulated users per second" if playground else ""
                print(f"dashboard at {url}/{users_text}", flush=True)
            if let_users_come is not None:
                let_users_come(url)

        serve_forever(chosen, announce=announce)


def _configuration(config: Path | None, typed: dict[str, Any], *, playground: bool) -> ServiceConfig:
    """The configuration of the file, with the options that were typed in the place of its settings."""
    from rankpolicy.service.config import ServiceConfig, read_config
    from rankpolicy.service.playground import with_playground_defaults

    settings = {} if config is None else read_config(config)
    settings |= {name: value for name, value in typed.items() if value is not None}
    return ServiceConfig(**with_playground_defaults(settings) if playground else settings)


@contextmanager
def _errors_as_json() -> Iterator[None]:
    """What keeps a service from running, said as it says everything else."""
    try:
        yield
    except (RankPolicyError, MissingDependencyError, OSError) as error:
        log_line(error.on_command_line if isinstance(error, RankPolicyError) else str(error), level="error")
        raise typer.Exit(BAD_INPUT) from None
    except KeyboardInterrupt:
        return  # Ctrl-C is how a server ends: status 0, as after SIGTERM
