"""Reading one step ahead of the one who uses what is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from rankpolicy.threads import one_thread_each

Value = TypeVar("Value")


def read_ahead(values: Iterator[Value]) -> Iterator[Value]:
    """The same values in the same order; while one is used, a thread makes the next.

    >>> list(read_ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    with ThreadPoolExecutor(1, thread_name_prefix="read-ahead") as reader:
        coming = reader.submit(_alone, values.__next__)
        while True:
            try:
                value = coming.result()
            except StopIteration:
                return
            coming = reader.submit(_alone, values.__next__)
            yield value


def _alone(read: Callable[[], Value]) -> Value:
    with one_thread_each():  # the threads of kernels belong to training
        return read()
