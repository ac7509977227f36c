"""What can go wrong in the service, by what the caller should do about it."""

from __future__ import annotations

from rankpolicy.types import RankPolicyError


class ServiceError(RankPolicyError):
    """The service did not do what it was asked; ``status`` is the HTTP status that says why.

    Parameters
    ----------
    message
        What happened and what to do.
    status
        The HTTP status; 0 where no answer came.
    """

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class ConflictError(ServiceError):
    """An id was used before with another content."""

    def __init__(self, message: str) -> None:
        super().__init__(message, status=409)


class UnavailableError(ServiceError):
    """Nothing was stored, for example because the disk is full; the same request may be sent again later."""

    def __init__(self, message: str) -> None:
        super().__init__(message, status=503)


class TooLateError(UnavailableError):
    """The log did not take it in time; it may still be stored."""


class DamagedStoreError(RankPolicyError):
    """The database holds bytes that were never written to it. It must be restored from a backup; nothing is served from it."""
