"""The process that writes the log, ``python -m rankpolicy.service.log.writer_process``, and its messages: a size, then so many bytes."""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

import msgspec

from rankpolicy.service.domain.records import Committed, Fate, Lesson, NewEvents, NewRanking, Outcome, StoredRanking
from rankpolicy.service.errors import ConflictError, DamagedStoreError, UnavailableError
from rankpolicy.service.json_log import log_everything_as_json
from rankpolicy.service.log import open_store
from rankpolicy.service.log.store import Store
from rankpolicy.types import RankPolicyError

_SIZE_BYTES = 8
_BYTES_AT_ONCE = 1 << 20


Said = StoredRanking | str | list[Fate] | None


class Order(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the process shall do."""

    action: Literal["commit", "reopen"]
    work: list[NewRanking | NewEvents] = []
    now: int = 0
    urgent: bool = False


class Answer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the process has done, with as little as the server needs to know it, or why it could not."""

    outcomes: list[Said] = []
    lessons: list[Lesson] = []
    next_deadline: int | None = None
    sync_seconds: float = 0.0
    failure: str | None = None
    failed: str = ""  # name of the class of the failure


ENCODER = msgspec.msgpack.Encoder()
_ORDER = msgspec.msgpack.Decoder(Order)
_ANSWER = msgspec.msgpack.Decoder(Answer)
_FAILURES: dict[str, type[Exception]] = {"UnavailableError": UnavailableError, "DamagedStoreError": DamagedStoreError}


def order_in(message: bytes) -> Order:
    """The order in a message."""
    return _ORDER.decode(message)


def committed_in(message: bytes, work: Sequence[NewRanking | NewEvents]) -> Committed:
    """What was committed, as a message says it; a failure is raised."""
    answer = _ANSWER.decode(message)
    if answer.failure is not None:
        raise _FAILURES.get(answer.failed, RuntimeError)(answer.failure)
    outcomes = [_outcome(piece, outcome) for piece, outcome in zip(work, answer.outcomes, strict=True)]
    return Committed(
        outcomes=outcomes, lessons=answer.lessons, next_deadline=answer.next_deadline, sync_seconds=answer.sync_seconds
    )


def _outcome(piece: NewRanking | NewEvents, outcome: Said) -> Outcome:
    if outcome is None and isinstance(piece, NewRanking):
        return piece
    if isinstance(outcome, str):
        return ConflictError(outcome)
    assert outcome is not None
    return outcome


def answer_of(committed: Committed, work: Sequence[NewRanking | NewEvents]) -> Answer:
    """What a transaction did, with as little as the server needs to know it."""
    outcomes = [_said(piece, outcome) for piece, outcome in zip(work, committed.outcomes, strict=True)]
    return Answer(
        outcomes=outcomes,
        lessons=committed.lessons,
        next_deadline=committed.next_deadline,
        sync_seconds=committed.sync_seconds,
    )


def _said(piece: NewRanking | NewEvents, outcome: Outcome) -> Said:
    if isinstance(outcome, Exception):
        return str(outcome)
    if isinstance(outcome, NewRanking):
        return None
    is_new = isinstance(piece, NewRanking) and isinstance(outcome, StoredRanking) and outcome.shown is piece.shown
    return None if is_new else outcome


def framed(message: bytes) -> bytes:
    """A message with its size before it."""
    return len(message).to_bytes(_SIZE_BYTES, "little") + message


class Incoming:
    """Messages that come in pieces."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._bytes = bytearray()

    def next(self) -> bytes | None:
        """The next message, waited for where the socket waits; None where it does not and the message is not whole yet.

        The end of the connection is an EOFError.
        """
        while True:
            size = int.from_bytes(self._bytes[:_SIZE_BYTES], "little") if len(self._bytes) >= _SIZE_BYTES else None
            if size is not None and len(self._bytes) >= _SIZE_BYTES + size:
                message = bytes(memoryview(self._bytes)[_SIZE_BYTES : _SIZE_BYTES + size])
                del self._bytes[: _SIZE_BYTES + size]
                return message
            try:
                received = self._end.recv(_BYTES_AT_ONCE)
            except BlockingIOError:
                return None
            if not received:
                raise EOFError
            self._bytes += received


def write_for(location: str, ends: list[socket.socket]) -> None:
    """Do what a server orders, until it is gone."""
    store: Store | None = None
    incoming = {end.fileno(): (end, Incoming(end)) for end in ends}
    watched = select.poll()
    for number in incoming:
        watched.register(number, select.POLLIN)
    try:
        with suppress(RankPolicyError):  # tried again with the first order, which says what is wrong
            store = _opened(location)
        while True:
            for number, _ in watched.poll():
                end, messages = incoming[number]
                message = messages.next()
                assert message is not None  # the sockets wait for it
                try:
                    order = order_in(message)
                    store = store or _opened(location)
                    answer = _done(store, order)
                except Exception as error:
                    answer = Answer(failure=str(error), failed=type(error).__name__)
                end.sendall(framed(ENCODER.encode(answer)))
    except (EOFError, OSError):
        pass  # the server has ended
    finally:
        if store is not None:
            store.close()


def _opened(location: str) -> Store:
    store = open_store(location, role="writer")
    store.begin_to_serve()
    return store


def _done(store: Store, order: Order) -> Answer:
    if order.action == "reopen":
        store.reopen()
        return Answer()
    return answer_of(store.commit(order.work, now=order.now, urgent=order.urgent), order.work)


def main() -> None:
    """Read the numbers of the sockets from the command line, and the location from stdin: a list of processes must show no password."""
    log_everything_as_json()
    for ending in (signal.SIGINT, signal.SIGTERM):  # meant for the server, which says when it has ended
        signal.signal(ending, signal.SIG_IGN)
    gc.set_threshold(50_000, 20, 100)
    location = os.fsdecode(sys.stdin.buffer.read())
    write_for(location, [socket.socket(fileno=int(number)) for number in sys.argv[1:]])


if __name__ == "__main__":
    main()
