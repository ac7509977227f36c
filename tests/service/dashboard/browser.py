"""A real Chromium, and a real server in a thread for it to visit."""

from __future__ import annotations

import asyncio
import shutil
import socket
import threading
from contextlib import contextmanager

import pytest
import uvicorn

from rankpolicy.service.config import ServiceConfig
from rankpolicy.service.http import Application
from rankpolicy.service.ranking_service import RankingService
from tests.waits import LONGEST_WAIT, wait_until


@contextmanager
def served(path, **settings):
    """The address of a running service, and its application."""
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    reports = []
    config = ServiceConfig(**{"db": str(path), "window_seconds": 0.2, "list_seconds": 60, "seed": 1} | settings)
    application = Application(RankingService(config), report=reports.append)
    server = uvicorn.Server(uvicorn.Config(application, lifespan="on", log_config=None, timeout_graceful_shutdown=1))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
    thread.start()
    try:
        wait_until(lambda: server.started)
        yield url, application
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
    assert reports == []


@contextmanager
def chromium():
    """Debian's Chromium; tests are skipped where it is missing."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    where = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if where is None:
        pytest.skip("there is no Chromium on this machine: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=where, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


class Watched:
    """A page whose errors, dialogs and requests are noted."""

    def __init__(self, browser, url, **settings):
        self.url = url
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | settings)
        self.page = self.context.new_page()
        self.page.set_default_timeout(1_000 * LONGEST_WAIT)
        self.wrong = []
        self.page.on(
            "console", lambda message: self.wrong.append(message.text) if message.type in ("error", "warning") else None
        )
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.wrong.append("dialog"), dialog.dismiss()))
        self.page.on(
            "request", lambda request: None if request.url.startswith(url + "/") else self.wrong.append(request.url)
        )

    def open(self, path):
        self.page.goto(self.url + path)
        return self.page

    def __enter__(self):
        return self

    def __exit__(self, kind, *failure):
        self.context.close()
        if kind is None:
            assert self.wrong == []
