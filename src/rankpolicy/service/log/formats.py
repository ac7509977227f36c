"""Databases of other versions of rankpolicy: what is said about them."""

from __future__ import annotations

from rankpolicy.types import RankPolicyError


def check_format(name: str, found: int, own: int) -> None:
    """Refuse a database of another format, and say what to do with it.

    >>> check_format("shop.db", 2, 1)
    Traceback (most recent call last):
    rankpolicy.types.RankPolicyError: shop.db has format 2, of a newer rankpolicy; this one reads format 1. Update rankpolicy.
    """
    if found > own:
        raise RankPolicyError(
            f"{name} has format {found}, of a newer rankpolicy; this one reads format {own}. Update rankpolicy."
        )
    if found < own:
        raise RankPolicyError(
            f"{name} has format {found}, of an older rankpolicy; this one reads format {own}. "
            "Nothing was changed. A server converts a file that it can read when it starts: rankpolicy serve."
        )
