"""The servers that are compared, each in a process of its own on a free port, with the same uvicorn settings."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

_ASGI = """
import socket, sys, uvicorn
from {module} import {name}
listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
config = uvicorn.Config({call}, log_config=None, access_log=False, lifespan="{lifespan}")

class Announced(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print(listening.getsockname()[1], flush=True)

Announced(config).run(sockets=[listening])
"""
_OURS = """
import sys
from rankpolicy.service.config import ServiceConfig, read_config
from rankpolicy.service.server import serve
serve(ServiceConfig(**read_config(sys.argv[1])), announce=lambda url: print(url.rpartition(":")[2], flush=True))
"""


@contextmanager
def running(kind: str, config: str = "") -> Iterator[tuple[int, int, float]]:
    """A server of this kind (echo, ours, fastapi): its port, its process and the seconds until it took requests."""
    code = {
        "echo": _ASGI.format(module="benchmarks.service.echo", name="echo", call="echo", lifespan="off"),
        "fastapi": _ASGI.format(
            module="benchmarks.service.in_fastapi", name="application", call="application(sys.argv[1])", lifespan="on"
        ),
        "ours": _OURS,
    }[kind]
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", code, config], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"{kind} did not start")
        yield int(line), process.pid, time.perf_counter() - start
    finally:
        process.terminate()
        process.wait(30)
