"""The process that writes the log: ``python -m rankpolicy.service.log.writer_process`` commits what a server sends it."""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
from contextlib import suppress

from rankpolicy.service.json_log import log_everything_as_json
from rankpolicy.service.log.locations import open_store
from rankpolicy.service.log.store import Store
from rankpolicy.service.log.writer_messages import ENCODER, Answer, Incoming, Order, answer_of, framed, order_in
from rankpolicy.types import RankPolicyError


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
    store = open_store(location, role="writer", check="none")
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
