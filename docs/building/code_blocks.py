"""The code blocks of a page, run in order as a reader would type them; output and figures go under each block.

``python`` blocks share one interpreter per page, ``bash`` blocks its folder; blocks in other languages are only shown. A block that fails
stops the build. After the language a fence may say:

    hide            run it, show nothing of it
    hide-code       show only what it prints and draws
    alt="..."       what the figure under the block shows; required where there is one
    fails           it must fail: the error message is what the page shows

A block that is not marked so stops the build as well when it prints an error message, or an event that the service did not accept.

A figure is the value of the last line of a block (as in a notebook), any matplotlib figure or the text of an SVG image.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_KEPT = ROOT / "build" / "docs"
_FENCE = re.compile(r"^```(python|bash)([^\n]*)\n(.*?)^```$", re.M | re.S)
_ALT = re.compile(r'alt="([^"]*)"')
_LONGEST_RUN_S = 900


class BlockError(Exception):
    """A code block of a page cannot be read, or failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block that is run."""

    language: str
    code: str
    is_hidden: bool
    is_code_hidden: bool
    must_fail: bool
    alt: str | None


def blocks_of(markdown: str) -> list[Block]:
    """The blocks of a page that are run, in order."""
    return [_block(found) for found in _FENCE.finditer(markdown)]


def run_page(name: str, markdown: str) -> str:
    """The page with what its blocks print and draw; from the last build where nothing changed since.

    Parameters
    ----------
    name
        Path of the page, for error messages.
    markdown
        Its text.
    """
    blocks = blocks_of(markdown)
    if not blocks:
        return markdown
    key = hashlib.sha256(json.dumps([name, [repr(block) for block in blocks], _state_of_code()]).encode()).hexdigest()
    kept = _KEPT / f"{key[:32]}.json"
    if kept.exists():
        results = json.loads(kept.read_text())
    else:
        results = _run(name, blocks)
        _KEPT.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(results))
    parts = iter(zip(blocks, results, strict=True))

    def shown(_: re.Match[str]) -> str:
        block, result = next(parts)
        return "" if block.is_hidden else "\n".join(_shown(block, result))

    return _FENCE.sub(shown, markdown)


def _block(found: re.Match[str]) -> Block:
    language, options, code = found.groups()
    alt = _ALT.search(options)
    words = _ALT.sub("", options).split()
    if unknown := set(words) - {"hide", "hide-code", "fails"}:
        raise BlockError(f"unknown word after ```{language}: {', '.join(sorted(unknown))}")
    return Block(
        language=language,
        code=code,
        is_hidden="hide" in words,
        is_code_hidden="hide-code" in words,
        must_fail="fails" in words,
        alt=alt[1] if alt else None,
    )


def _shown(block: Block, result: dict[str, Any]) -> Iterator[str]:
    if not block.is_code_hidden:
        yield f"```{block.language}\n{block.code}```\n"
    if result["output"]:
        yield f"```{{code-block}} text\n:class: output\n\n{result['output'].rstrip()}\n```\n"
    for image in result["images"]:
        yield f'```{{raw}} html\n<figure class="drawn">{image}</figure>\n```\n'


def _run(name: str, blocks: list[Block]) -> list[dict[str, Any]]:
    """What each block printed and drew, from a process of its own in an empty folder."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    search = os.pathsep.join(filter(None, [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"PATH": path, "PYTHONPATH": search, "COLUMNS": "100", "NO_COLOR": "1"}
    environment.pop("RANKPOLICY_DATA", None)  # pages are the same on machines without datasets
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", "docs.building.page_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=environment,
            text=True,
            start_new_session=True,
        )
        try:
            output, errors = process.communicate(
                json.dumps([asdict(block) for block in blocks]), timeout=_LONGEST_RUN_S
            )
        except subprocess.TimeoutExpired:
            raise BlockError(f"{name}: its blocks take longer than {_LONGEST_RUN_S} s") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # also servers that a page started and did not stop
    if process.returncode != 0:
        raise BlockError(f"{name}: {errors.strip()[-4000:]}")
    return json.loads(output)


def _state_of_code() -> str:
    """A digest of everything that decides what a block prints."""
    installed = sorted(f"{package.name} {package.version}" for package in importlib.metadata.distributions())
    digest = hashlib.sha256(json.dumps([sys.version, installed]).encode())
    libraries = [file for folder in ("src", "reproductions") for file in (ROOT / folder).rglob("*.py")]
    for file in sorted([*libraries, Path(__file__).with_name("page_process.py")]):
        digest.update(file.read_bytes())
    return digest.hexdigest()
