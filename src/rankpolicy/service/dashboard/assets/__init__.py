"""Style and script of the dashboard, read once and served from memory."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files

ASSETS = {
    "dashboard.css": "text/css; charset=utf-8",
    "dashboard.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


@cache
def asset(name: str) -> bytes:
    """The content of an asset."""
    return (files(__name__) / name).read_bytes()


@cache
def asset_url(name: str) -> str:
    """Where a page finds an asset; another content has another address, so browsers may keep it."""
    return f"/assets/{name}?{sha256(asset(name)).hexdigest()[:12]}"
