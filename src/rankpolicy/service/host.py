"""What the machine says about a service: disk and memory."""

from __future__ import annotations

import os
import shutil

from rankpolicy.service.config import ServiceConfig


def disk_bytes(config: ServiceConfig) -> tuple[int, int] | None:
    """Free and all bytes of the disk of the database; None where it is another server's. Not for the event loop: a disk may not answer."""
    if config.store is not None:
        return None
    try:
        usage = shutil.disk_usage(os.path.dirname(os.path.abspath(config.db)))
    except OSError:
        return None
    return usage.free, usage.total


def host_gauges(config: ServiceConfig) -> dict[str, float | None]:
    """Disk and memory as metrics. Not for the event loop: a disk may not answer."""
    free, total = disk_bytes(config) or (None, None)
    return {
        "disk_free_bytes": free,
        "disk_total_bytes": total,
        "wal_bytes": _wal_bytes(config),
        "resident_bytes": _resident_bytes(),
    }


def _wal_bytes(config: ServiceConfig) -> int | None:
    """Size of the write-ahead log; None where another server keeps it."""
    if config.store is not None:
        return None
    try:
        return os.path.getsize(f"{config.db}-wal")
    except OSError:
        return 0


def _resident_bytes() -> int | None:
    """Memory of this process; None where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None
