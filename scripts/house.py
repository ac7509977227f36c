"""Check that the code stays small enough to live in: its size, its names, its folders, and the files that common jobs pass through.

    python scripts/house.py            # every measure with its ceiling; exit status 1 where one is exceeded

A ceiling is the value that was reached, rounded up. Lower it when a change makes the value smaller; raise it only with a
reason in the commit.
"""

from __future__ import annotations

import ast
import collections
import io
import os
import sys
import tempfile
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "rankpolicy"

CEILINGS: dict[str, float] = {
    "lines of code": 53_600,
    "modules": 558,
    "modules in the largest folder": 20,
    "functions over 60 lines": 26,
    "vague names, %": 0.44,
    "PGRank.fit, files": 32,
    "PGRank.fit, functions": 235,
    "PGRank.rank, files": 12,
    "rankpolicy train, files": 59,
    "FairExposure.fit, files": 49,
    "DcmTS make, rank, learn, files": 5,
}
# Names that fit anything and so say nothing of what they hold.
# fmt: off
VAGUE = {
    "own", "found", "one", "mine", "said", "told", "known", "given", "each", "there", "more", "wanted", "taken", "asked", "who",
    "here", "others", "apart", "away", "soon", "beside", "part", "parts", "place", "places", "kept", "made", "of", "about",
    "where", "whole", "rest", "left",
}
# fmt: on
FUNCTION_NODES = (ast.FunctionDef, ast.AsyncFunctionDef)


def docstring_lines(tree: ast.AST) -> set[int]:
    """Numbers of the lines that docstrings take."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, (ast.Module, ast.ClassDef, *FUNCTION_NODES))
            and ast.get_docstring(node, clean=False) is not None
        ):
            lines.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return lines


def code_lines(text: str, tree: ast.AST) -> int:
    """Lines that hold code: no blank lines, comments or docstrings.

    >>> text = '"Sums."' + chr(10) + "total = (1 +" + chr(10) + "         2)  # three" + chr(10) + "# done" + chr(10)
    >>> code_lines(text, ast.parse(text))
    2
    """
    layout = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.COMMENT}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in layout:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstring_lines(tree))


def bound_names(tree: ast.AST) -> Iterator[str]:
    """Names that are assigned, and names of arguments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def sizes() -> dict[str, float]:
    """Measures of the text of the package."""
    code = long_functions = num_names = num_vague = 0
    folders: collections.Counter[Path] = collections.Counter()
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf8")
        tree = ast.parse(text)
        code += code_lines(text, tree)
        functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTION_NODES)]
        long_functions += sum((node.end_lineno or 0) - node.lineno > 60 for node in functions)
        names = list(bound_names(tree))
        num_names += len(names)
        num_vague += sum(name in VAGUE for name in names)
        folders[path.parent] += 1
    return {
        "lines of code": code,
        "modules": folders.total(),
        "modules in the largest folder": max(folders.values()),
        "functions over 60 lines": long_functions,
        "vague names, %": round(100 * num_vague / num_names, 2),
    }


class Walk:
    """Files and functions of the package that a call enters; compiled functions are not seen."""

    def __init__(self, job: Callable[[], object]) -> None:
        self.files: set[str] = set()
        self.functions: set[tuple[str, str]] = set()
        sys.setprofile(self._profile)
        try:
            job()
        finally:
            sys.setprofile(None)

    def _profile(self, frame: object, event: str, _: object) -> None:
        code = frame.f_code  # type: ignore[attr-defined]
        if event == "call" and code.co_filename.startswith(str(PACKAGE)) and code.co_name != "<module>":
            self.files.add(code.co_filename)
            self.functions.add((code.co_filename, code.co_qualname))


def walks() -> dict[str, float]:
    """Files, and for a fit also functions, that common jobs enter on their second run: nothing is loaded or compiled any more."""
    import numpy as np

    import rankpolicy as rp
    from rankpolicy.bandits import DcmTS
    from rankpolicy.cli.main import run

    assert Path(rp.__file__).parent == PACKAGE, f"walks need the package of this checkout; installed is {rp.__file__}"
    data = rp.make_web_search(40, random_state=0)
    train, valid = rp.split_queries(data, (0.7, 0.3), random_state=0)

    def protected(dataset: rp.RankingDataset) -> np.ndarray:
        return np.array(["a", "b"])[np.arange(dataset.num_items) % 2]

    def learn_one_click() -> None:
        bandit = DcmTS(num_items=4, cutoff=2)
        bandit.learn(bandit.rank(), [1, 0])

    with tempfile.TemporaryDirectory() as folder:
        rp.data.write_letor(train, f"{folder}/train.txt")
        rp.data.write_letor(valid, f"{folder}/valid.txt")
        files = ["--data", f"{folder}/train.txt", "--valid", f"{folder}/valid.txt"]

        def train_by_command() -> None:
            command = [
                "train",
                "--method",
                "pg-rank",
                *files,
                "--out",
                f"{folder}/model.rp",
                "--set",
                "epochs=1",
                "--json",
            ]
            status = run(command)
            assert not status, status

        ranker = rp.PGRank(epochs=1)
        jobs: dict[str, Callable[[], object]] = {
            "PGRank.fit": lambda: ranker.fit(train, valid=valid, progress=False),
            "PGRank.rank": lambda: ranker.rank(valid),
            "FairExposure.fit": lambda: rp.FairExposure().fit(train, valid=valid, protected=protected, progress=False),
            "DcmTS make, rank, learn": learn_one_click,
            "rankpolicy train": train_by_command,
        }
        measured: dict[str, float] = {}
        stdout, sys.stdout = sys.stdout, io.StringIO()
        try:
            for name, job in jobs.items():
                job()
                walk = Walk(job)
                measured[f"{name}, files"] = len(walk.files)
                measured[f"{name}, functions"] = len(walk.functions)
        finally:
            sys.stdout = stdout
    return measured


def main() -> int:
    """Print every measure that has a ceiling."""
    os.environ.setdefault("RANKPOLICY_PROGRESS", "0")
    measured = sizes() | walks()
    exceeded = [name for name, ceiling in CEILINGS.items() if measured[name] > ceiling]
    for name, ceiling in CEILINGS.items():
        print(f"{name:32} {measured[name]:8g}   at most {ceiling:g}{'   EXCEEDED' if name in exceeded else ''}")
    if exceeded:
        print(
            "Find out what the change made longer; scripts/house.py says when a ceiling may be raised.", file=sys.stderr
        )
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
