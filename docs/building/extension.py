"""What Sphinx calls while it builds the site: generated pages, code blocks that run, formulas as MathML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from docs.building.code_blocks import BlockError, run_page
from docs.building.commands import command_page
from docs.building.http_interface import http_page
from docs.building.public_names import reference_pages
from docs.building.results_pages import results_pages, with_results

# Pages whose commands are for other machines, or which have none; they are not run here.
NOT_RUN = ("reference/command-line", "service/http-api", "service/deployment", "service/threat-model")


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the parts of this package to Sphinx."""
    app.connect("builder-inited", _write_generated_pages)
    app.connect("source-read", _run_code_blocks)
    app.add_html_math_renderer("mathml", inline_renderers=(_inline_formula, None), block_renderers=(_formula, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def generated_pages() -> dict[str, str]:
    """Markdown of the pages that nobody writes, by their path in docs/."""
    return {
        **reference_pages(),
        **results_pages(),
        "reference/command-line.md": command_page(),
        "service/http-api.md": http_page(),
    }


def _write_generated_pages(app: Sphinx) -> None:
    pages = {Path(app.srcdir) / path: text for path, text in generated_pages().items()}
    for file in (Path(app.srcdir) / "reference" / "python").glob("*.md"):
        if file not in pages:
            file.unlink()
    for file, text in pages.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_text(encoding="utf-8") != text:  # unchanged pages are not built again
            file.write_text(text, encoding="utf-8")


def _run_code_blocks(app: Sphinx, name: str, content: list[str]) -> None:
    if name.startswith(("reference/python/", "results/")) or name in NOT_RUN:
        return
    try:
        content[0] = run_page(name, with_results(content[0]))
    except BlockError as error:
        raise ExtensionError(str(error)) from None


def _inline_formula(writer: Any, node: Any) -> None:
    writer.body.append(convert(node.astext(), display="inline"))
    raise _skipped()


def _formula(writer: Any, node: Any) -> None:
    writer.body.append(f'<div class="formula">{convert(node.astext(), display="block")}</div>')
    raise _skipped()


def _skipped() -> Exception:
    """What tells the writer that a node needs nothing more."""
    from docutils.nodes import SkipNode

    return SkipNode()
