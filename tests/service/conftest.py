"""Databases that tests share."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

from tests.service.postgres.cluster import Cluster, binaries, running_cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL server; tests that need it are skipped where it is not installed."""
    if importlib.util.find_spec("psycopg") is None:
        pytest.skip("psycopg is not installed: pip install 'rankpolicy[postgres]'")
    if binaries() is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    with running_cluster() as made:
        yield made


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path) -> str:
    """Where a store is: a file, then a PostgreSQL database."""
    if request.param == "sqlite":
        return str(tmp_path / "service.db")
    made: Cluster = request.getfixturevalue("cluster")
    return made.new_database()
