"""The process of a service: a socket, uvicorn, the garbage collector."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import socket
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial

from rankpolicy.heap import give_back_code
from rankpolicy.service.config import ServiceConfig
from rankpolicy.service.http.access import is_loopback
from rankpolicy.service.json_log import AccessLog, log_everything_as_json, log_line
from rankpolicy.service.log import is_url, open_store
from rankpolicy.types import MissingDependencyError, RankPolicyError

IDLE_SECONDS = 30
SECONDS_BETWEEN_COLLECTIONS = 600.0
_BACKLOG = 2_048
_OTHER_FILES = 128  # that are no connections: the database, pipes, models that are being read
_WANTED_FILES = 4_096


def serve(config: ServiceConfig, *, announce: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM.

    Parameters
    ----------
    config
        What to serve, and where.
    announce
        Called with the address once requests are taken.
    """
    try:
        import uvicorn
    except ImportError:
        raise MissingDependencyError("The service needs uvicorn: pip install 'rankpolicy[serve]'") from None
    from rankpolicy.service.http.application import Application
    from rankpolicy.service.http.connection_limits import MOST_CONNECTIONS, ConnectionLimits, LimitedProtocol
    from rankpolicy.service.ranking_service import RankingService

    log_everything_as_json()
    _check_exposure(config)
    listening = _bound(config)
    service = None
    try:
        service = RankingService(config, report=log_line)
        host, port = listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host

        class Announced(uvicorn.Server):
            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets)
                rest_from_garbage(asyncio.get_running_loop())
                give_back_code("libllvmlite")  # compiled functions are loaded by now
                if self.started:
                    log_line("serving", url=f"http://{shown}:{port}", policies=list(config.policies))
                    announce(f"http://{shown}:{port}")

            async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
                await super().shutdown(sockets)
                log_line("stopped")  # now: a signal that uvicorn repeats ends the process before anything after run()

        access_log = AccessLog(config.access_log) if config.access_log else None
        application = Application(service, report=log_line, access_log=access_log)
        limits = ConnectionLimits(min(MOST_CONNECTIONS, open_file_limit() - _OTHER_FILES))
        settings = uvicorn.Config(
            application,
            http=partial(LimitedProtocol, limits, application.answer),  # type: ignore[arg-type]
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=5,
        )
        server = Announced(settings)
        application.num_connections = lambda: len(server.server_state.connections)
        server.run(sockets=[listening])
    finally:
        if service is not None:
            service.stop()
        listening.close()


def open_file_limit() -> int:
    """How many files and connections this process may have open, after it has asked for enough.

    Where they run out, connections are closed before their first byte, health checks too, and no idle one makes room for them.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= _WANTED_FILES:
        return _WANTED_FILES
    limit = _WANTED_FILES if hard == resource.RLIM_INFINITY else min(_WANTED_FILES, hard)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        soft = limit
    if soft <= 2 * _OTHER_FILES:
        raise RankPolicyError(
            f"a service needs more than {2 * _OTHER_FILES} open files; the limit is {soft}: raise it (ulimit -n, LimitNOFILE)."
        )
    return soft


def rest_from_garbage(loop: asyncio.AbstractEventLoop) -> None:
    """Let the garbage collector look every ten minutes only: in between, what requests leave in memory is frozen, which it leaves alone.

    Going through the lists that are remembered takes up to a tenth of a second, during which no request is answered, and finds nothing:
    lists and events leave no cycles behind.
    """
    gc.collect()
    gc.set_threshold(50_000, 20, 100)
    next_look = loop.time() + SECONDS_BETWEEN_COLLECTIONS

    def freeze() -> None:
        nonlocal next_look
        if loop.time() > next_look:
            gc.unfreeze()
            gc.collect()
            next_look = loop.time() + SECONDS_BETWEEN_COLLECTIONS
        gc.freeze()
        loop.call_later(1.0, freeze)

    freeze()


def _check_exposure(config: ServiceConfig) -> None:
    if is_loopback(config.host):
        return
    has_keys = False
    if is_url(config.place) or os.path.exists(config.db):
        with closing(open_store(config.place)) as store:  # which converts an older format
            has_keys = bool(store.valid_keys())
    if not has_keys:
        raise RankPolicyError(
            f"without keys only this machine is served, not {config.host}. Make a key first: rankpolicy service key new --db {config.db}"
        )


def _bound(config: ServiceConfig) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            config.host, config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError as error:
        raise RankPolicyError(
            f"cannot listen on {config.host}, port {config.port}: {error.strerror or error}. Choose another --port; 0 takes a free one."
        ) from None
    return listening
