"""The server's end of the process that writes its log."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial

from rankpolicy.service.domain.records import Committed, NewEvents, NewRanking
from rankpolicy.service.errors import UnavailableError
from rankpolicy.service.log.writer_process import ENCODER, Incoming, Order, committed_in, framed

# Seconds after which a process that does not answer is killed, so that somebody else does; databases give up much sooner.
LONGEST_ORDER = 120.0
LONGEST_END = 10.0  # the same while the server ends

Work = NewRanking | NewEvents


def module_command(module: str, *words: str) -> list[str]:
    """The command that runs a module."""
    return [sys.executable, "-P", "-m", module, *words]


def module_environment() -> dict[str, str]:
    """The environment variables of its process."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}


class Writer:
    """Another process that commits, for the event loop without waiting and for a thread that waits. One order at a time."""

    def __init__(self, location: str, *, locks: Sequence[int] = ()) -> None:
        self._location, self._locks = location, tuple(locks)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._done: Callable[[Committed | Exception], None] | None = None
        self._work: Sequence[Work] = ()
        self._unsent = b""
        self._limit: asyncio.TimerHandle | None = None  # of the time for an answer
        self.num_restarts = 0
        self._start()

    def serve(self, loop: asyncio.AbstractEventLoop) -> None:
        """Answer in this event loop from now on. Called in it."""
        self._loop = loop
        loop.add_reader(self._soon, self._receive)

    def commit(self, work: Sequence[Work], *, now: int) -> Committed:
        """Do what ``Store.commit`` does, and wait for it. Not for the event loop."""
        return committed_in(self._asked(Order("commit", list(work), now)), work)

    def commit_soon(self, work: Sequence[Work], *, now: int, done: Callable[[Committed | Exception], None]) -> None:
        """Have something committed for whom users wait. Called in the event loop."""
        try:
            message = ENCODER.encode(Order("commit", list(work), now, True))
        except Exception as error:
            done(error)
            return
        assert self._loop is not None
        self._work, self._done, self._unsent = work, done, framed(message)
        self._limit = self._loop.call_later(LONGEST_ORDER, self.kill)
        self._send()

    def reopen(self) -> None:
        """Have the process begin again after a failure; a new one where it has ended. Not for the event loop."""
        if self._has_ended or self._process.poll() is not None:
            self._process.kill()  # it may be about to end
            self._process.wait()
            self._waiting.close()
            ended = self._soon
            self._start()
            self.num_restarts += 1
            self._call(partial(self._watch_instead_of, ended))
        committed_in(self._asked(Order("reopen")), ())

    def stop(self) -> None:
        """End the process, and wait until it has released the database. Not for the event loop."""
        self._waiting.close()
        if self._loop is None or self._loop.is_closed():
            self._soon.close()
        else:
            self._loop.call_soon_threadsafe(self._unwatch, self._soon)
        try:
            self._process.wait(LONGEST_END)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()

    def kill(self) -> None:
        """Kill the process, which fails what it was given; ``reopen`` starts another."""
        self._process.kill()

    def _start(self) -> None:
        try:
            with ExitStack() as failed:
                urgent, waiting = ([failed.enter_context(end) for end in socket.socketpair()] for _ in range(2))
                theirs = [urgent[1], waiting[1]]
                self._process = self._started([end.fileno() for end in theirs])
                failed.pop_all()
        except OSError as error:
            raise UnavailableError(
                f"the process that writes the log cannot be started ({error}). Send it again."
            ) from None
        for end in theirs:
            end.close()
        urgent[0].setblocking(False)
        waiting[0].settimeout(LONGEST_ORDER)
        self._has_ended = False
        self._incoming = {end: Incoming(end) for end in (urgent[0], waiting[0])}
        self._soon, self._waiting = urgent[0], waiting[0]

    def _started(self, numbers: list[int]) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            module_command("rankpolicy.service.log.writer_process", *map(str, numbers)),
            bufsize=0,
            stdin=subprocess.PIPE,
            env=module_environment(),
            pass_fds=(*numbers, *self._locks),
            process_group=0,  # Ctrl-C is for the server
        )
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin as stdin:  # the first order says that it has ended
            stdin.write(os.fsencode(self._location))
        return process

    def _asked(self, order: Order) -> bytes:
        try:
            self._waiting.sendall(framed(ENCODER.encode(order)))
            message = self._incoming[self._waiting].next()
        except (EOFError, OSError):
            raise self._ended() from None
        assert message is not None  # this end waits
        return message

    def _call(self, function: Callable[[], None]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function)

    def _watch_instead_of(self, ended: socket.socket) -> None:
        assert self._loop is not None
        self._unwatch(ended)
        if self._soon.fileno() >= 0:  # it may have ended too
            self._loop.add_reader(self._soon, self._receive)

    def _unwatch(self, end: socket.socket) -> None:
        assert self._loop is not None
        if end.fileno() >= 0:
            self._loop.remove_reader(end)
            self._loop.remove_writer(end)
            end.close()

    def _send(self) -> None:
        assert self._loop is not None
        try:
            sent = self._soon.send(self._unsent)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._unwatch(self._soon)  # nothing of this order goes to the next process
            self._tell(self._ended())
            return
        self._unsent = self._unsent[sent:]
        if self._unsent:
            self._loop.add_writer(self._soon, self._send)
        else:
            self._loop.remove_writer(self._soon)

    def _receive(self) -> None:
        outcome: Committed | Exception
        end = self._soon  # the thread may put another in its place
        try:
            message = self._incoming[end].next()
            if message is None:
                return
            outcome = committed_in(message, self._work)
        except (EOFError, OSError):
            self._unwatch(end)
            outcome = self._ended()
        except Exception as error:
            outcome = error
        self._tell(outcome)

    def _ended(self) -> UnavailableError:
        self._has_ended = True
        return UnavailableError("the process that writes the log has ended. Send it again.")

    def _tell(self, outcome: Committed | Exception) -> None:
        if self._limit is not None:
            self._limit.cancel()
        done, self._done, self._work = self._done, None, ()
        if done is not None:
            done(outcome)
