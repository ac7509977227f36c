"""The process that runs the blocks of one page: reads them as JSON from stdin, writes what they printed and drew to stdout."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import subprocess
import sys
import traceback
import warnings
from typing import Any

# An event that the service did not accept, or an error message: only a block marked "fails" may show these.
_FAILURE_SHOWN = re.compile(
    r"""'accepted': 0\b|'(?:orphan|late)': [1-9]|'rejected': \[[^]]|^(?:error: |Traceback )""", re.M
)


def run_blocks(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The output and the images of every block.

    Parameters
    ----------
    blocks
        Fields of ``Block``, in the order of the page.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    results = []
    for number, block in enumerate(blocks, start=1):
        run = _run_python if block["language"] == "python" else _run_bash
        try:
            output, value = run(block["code"], namespace)
            failure = None
        except BlockFailedError as failed:
            output, value, failure = failed.output, None, failed.message
        if (failure is not None) != block["must_fail"]:
            raise SystemExit(f"block {number}: {failure or 'it should have failed'}\n{block['code']}\n{output}")
        images = _images(value, block["alt"], namespace)
        if images and not block["alt"]:
            raise SystemExit(f'block {number} draws a figure: say what it shows, ```python alt="...".\n{block["code"]}')
        if block["alt"] and not images:
            raise SystemExit(f"block {number} draws no figure, but describes one.\n{block['code']}")
        if failure is not None:
            output += failure
        elif value is not None and not images:
            output += f"{value!r}\n"
        if failure is None and _FAILURE_SHOWN.search(output):
            raise SystemExit(
                f"block {number} shows a failure: mend it, or mark it ```{block['language']} fails.\n{output}"
            )
        results.append({"output": output, "images": images})
    return results


class BlockFailedError(Exception):
    """A block ended with an error."""

    def __init__(self, message: str, output: str) -> None:
        super().__init__(message)
        self.message, self.output = message, output


def _run_python(code: str, namespace: dict[str, Any]) -> tuple[str, Any]:
    """What the code prints, and the value of its last line where that is an expression."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    try:
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("error")  # a page that warns teaches a bad habit
            # Deprecations inside other libraries are not the reader's.
            warnings.filterwarnings("ignore", category=DeprecationWarning)
            exec(compile(tree, "<page>", "exec"), namespace)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), "<page>", "eval"), namespace)
    except Exception as error:
        message = "".join(traceback.format_exception_only(error))
        if not isinstance(error, ValueError):
            traceback.print_exc()
        raise BlockFailedError(message, printed.getvalue()) from None
    return printed.getvalue(), value


def _run_bash(code: str, _: dict[str, Any]) -> tuple[str, None]:
    done = subprocess.run(["bash", "-euc", code], capture_output=True, text=True)
    if done.returncode != 0:
        raise BlockFailedError(done.stderr, done.stdout)
    if "Traceback" in done.stderr or "arning" in done.stderr:
        raise BlockFailedError(f"it warns: {done.stderr}", done.stdout)
    return done.stdout, None


def _images(value: Any, alt: str | None, namespace: dict[str, Any]) -> list[str]:
    if isinstance(value, str) and value.startswith("<svg"):
        return [value]
    from rankpolicy.reports import figures

    found = [value] if hasattr(value, "savefig") else []
    if "matplotlib.pyplot" in sys.modules:
        pyplot = sys.modules["matplotlib.pyplot"]
        found += [pyplot.figure(number) for number in pyplot.get_fignums() if pyplot.figure(number) is not value]
        pyplot.close("all")
    return [figures.svg(figure, alt or "") for figure in found]


def _prepare_figures() -> None:
    """Figures of pages have the style of the library's reports, which follows the page into dark mode."""
    import matplotlib

    from rankpolicy.reports.figures import PALETTE, STYLE

    matplotlib.use("agg")
    matplotlib.rcParams.update(STYLE)
    matplotlib.rcParams["axes.prop_cycle"] = matplotlib.cycler(color=PALETTE)
    matplotlib.rcParams["figure.constrained_layout.use"] = True
    matplotlib.rcParams["figure.figsize"] = (7.2, 3.6)


if __name__ == "__main__":
    _prepare_figures()
    answer = json.dumps(run_blocks(json.load(sys.stdin)))
    sys.stdout.write(answer)
