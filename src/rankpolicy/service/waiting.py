"""A coroutine that waits for a function to be called."""

from __future__ import annotations

import asyncio
from typing import Any


class Waiting:
    """An outcome that a coroutine waits for.

    Parameters
    ----------
    loop
        The event loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._future: asyncio.Future[Any] = loop.create_future()

    def done(self, outcome: Any) -> None:
        """Hand the outcome over, or an exception.

        Parameters
        ----------
        outcome
            What is waited for.
        """
        if not self._future.done():  # it is done already where the caller has gone
            self._future.set_result(outcome)

    async def outcome(self) -> Any:
        """The outcome; an exception is raised."""
        found = await self._future
        if isinstance(found, Exception):
            raise found
        return found
