"""A PostgreSQL server of its own for the tests, in a temporary folder, reached through a socket in it."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from tests.waits import LONGEST_WAIT, wait_until

_numbers = count(1)


def binaries() -> Path | None:
    """The folder of initdb and postgres; None where they are not installed."""
    found = shutil.which("initdb")
    places = [Path(found).parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists() and (place / "postgres").exists()), None)


class Cluster:
    """A running server.

    Parameters
    ----------
    folder
        Its own folder, which the user who runs it can enter.
    """

    def __init__(self, folder: Path) -> None:
        place = binaries()
        assert place is not None
        self._place, self._folder = place, folder
        # PostgreSQL refuses to run as root.
        names = {entry.pw_name for entry in pwd.getpwall()}
        other = "postgres" if "postgres" in names else "nobody"
        self._user = other if os.getuid() == 0 else None
        if self._user is not None:
            shutil.chown(folder, self._user)
        command = [place / "initdb", "-D", folder / "data", "-U", "tester", "-A", "trust", "-N", "-E", "UTF8"]
        subprocess.run([*command, "--locale=C", "-k"], check=True, capture_output=True, user=self._user, cwd=folder)
        self.start()

    def start(self) -> None:
        """Start it and wait until it answers."""
        import psycopg

        command = [self._place / "postgres", "-D", self._folder / "data", "-k", self._folder, "-p", "5432"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "-c", "listen_addresses=", "-c", "max_connections=40"],
                stdout=log,
                stderr=log,
                user=self._user,
                cwd=self._folder,
            )

        def answers() -> bool:
            try:
                psycopg.connect(self._url(), connect_timeout=int(LONGEST_WAIT)).close()
            except psycopg.OperationalError:  # after a crash it syncs and recovers first
                assert self._process.poll() is None, (self._folder / "log").read_text()
                return False
            return True

        wait_until(answers)

    def crash(self) -> None:
        """End it at once, as a power cut would: no checkpoint, no goodbye."""
        self._process.send_signal(signal.SIGQUIT)  # immediate shutdown
        self._process.wait(LONGEST_WAIT)

    def stop(self) -> None:
        """End it."""
        self._process.send_signal(signal.SIGINT)  # fast shutdown
        self._process.wait(LONGEST_WAIT)

    @contextmanager
    def stalled(self) -> Iterator[None]:
        """While this holds it answers nobody and closes no connection, as a machine whose disk hangs."""
        listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self._process.pid)], capture_output=True, text=True)
        processes = [self._process.pid, *map(int, listed.stdout.split())]

        def send(kind: signal.Signals) -> None:
            for process in processes:
                with suppress(ProcessLookupError):  # one that had nothing more to do
                    os.kill(process, kind)

        try:
            send(signal.SIGSTOP)
            yield
        finally:
            send(signal.SIGCONT)

    def new_database(self) -> str:
        """The URL of an empty schema, which is made faster than a database."""
        import psycopg

        name = f"test_{next(_numbers)}"
        with psycopg.connect(self._url(), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"{self._url()}&options=-csearch_path%3D{name}"

    def _url(self) -> str:
        return f"postgresql://tester@/postgres?host={self._folder}"


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """A server that ends with the block."""
    folder = Path(tempfile.mkdtemp(prefix="rankpolicy-pg-"))
    cluster = None
    try:
        cluster = Cluster(folder)
        yield cluster
    finally:
        if cluster is not None:
            cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)
