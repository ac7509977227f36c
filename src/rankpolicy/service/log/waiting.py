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
        self._is_there: asyncio.Future[None] = loop.create_future()
        self._outcome: Any = None

    def done(self, outcome: Any) -> None:
        """Hand the outcome over, or an exception.

        Parameters
        ----------
        outcome
            What is waited for.
        """
        if not self._is_there.done():  # it is done already where the caller has gone
            self._outcome = outcome
            self._is_there.set_result(None)

    async def outcome(self) -> Any:
        """The outcome; an exception is raised."""
        await self._is_there
        found, self._outcome = self._outcome, None
        if not isinstance(found, Exception):
            return found
        try:
            raise found
        finally:
            del found  # with it, error and traceback would hold each other in memory
