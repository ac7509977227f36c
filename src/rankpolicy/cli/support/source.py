"""Tables of members and summaries read from source text, so that listing them imports none of their modules."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import rankpolicy

_ROOT = Path(rankpolicy.__file__).parent


def read_table(module: str, name: str) -> dict[str, str] | None:
    """The places of the members of a table by name; None where the source is no plain table.

    >>> read_table("rankpolicy.rankers", "RANKERS")["pg-rank"]
    'rankpolicy.rankers.networks.pg_rank:PGRank'
    """
    module, name = _definition(module, name)
    value = _assignments(module).get(name)
    if isinstance(value, ast.Call) and value.args:  # Members("kind", {...})
        value = value.args[-1]
    if not isinstance(value, ast.Dict):
        return None
    locations = {}
    for key, member in zip(value.keys, value.values, strict=True):
        location = _text(module, member)
        if not isinstance(key, ast.Constant) or location is None:
            return None
        locations[str(key.value)] = location
    return locations


def read_summary(location: str) -> str:
    """The first line of the docstring of a class or function; the ``title`` of a value, or the first line about its ``function``.

    >>> read_summary("rankpolicy.cli.support.source:read_table")
    'The places of the members of a table by name; None where the source is no plain table.'
    """
    module, _, attribute = location.partition(":")
    module, attribute = _definition(module, attribute)
    tree = _tree(module)
    if tree is None:
        return ""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == attribute:
            return first_line(ast.get_docstring(node) or "")
    value = _assignments(module).get(attribute)
    for keyword in value.keywords if isinstance(value, ast.Call) else ():
        if keyword.arg == "title" and isinstance(keyword.value, ast.Constant):
            title = str(keyword.value.value)
            return f"{title[:1].upper()}{title[1:]}."
        if keyword.arg == "function" and isinstance(keyword.value, ast.Name):
            return read_summary(f"{module}:{keyword.value.id}")
    return first_line(ast.get_docstring(tree) or "")


def first_line(docstring: str) -> str:
    """The first line of a docstring, or its first paragraph where the sentence goes on.

    >>> first_line("A ranker that\\n    sorts.\\n\\n    More.")
    'A ranker that sorts.'
    """
    paragraph = docstring.strip().split("\n\n")[0]
    line = paragraph.split("\n")[0].strip()
    return (line if line.endswith(".") else " ".join(paragraph.split())).replace("``", "")


@cache
def _tree(module: str) -> ast.Module | None:
    base = _ROOT.joinpath(*module.split(".")[1:])
    for file in (base / "__init__.py", base.with_suffix(".py")):
        if file.is_file():
            return ast.parse(file.read_text(encoding="utf-8"))
    return None


@cache
def _imports(module: str) -> dict[str, str]:
    """Place of every name that a module imports from this package, also under ``if TYPE_CHECKING:``."""
    tree = _tree(module)
    nodes = [] if tree is None else [*tree.body, *(piece for node in tree.body for piece in getattr(node, "body", ()))]
    return {
        alias.asname or alias.name: f"{node.module}:{alias.name}"
        for node in nodes
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rankpolicy")
        for alias in node.names
    }


def _definition(module: str, name: str) -> tuple[str, str]:
    """The module that defines a name, and its name there."""
    while name in _imports(module):
        module, _, name = _imports(module)[name].partition(":")
    return module, name


@cache
def _assignments(module: str) -> dict[str, ast.expr]:
    """The values that a module assigns to names, also several at once: ``_NETWORKS, _TREES = "...", "..."``."""
    values: dict[str, ast.expr] = {}
    tree = _tree(module)
    for node in tree.body if tree is not None else ():
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            values[node.target.id] = node.value
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            if isinstance(target, ast.Name):
                values[target.id] = node.value
            elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = zip(target.elts, node.value.elts, strict=True)
                values |= {piece.id: value for piece, value in pairs if isinstance(piece, ast.Name)}
    return values


def _text(module: str, value: ast.expr | None) -> str | None:
    """A string, or an f-string of strings that the module assigns to names."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value
    if isinstance(value, ast.JoinedStr):
        pieces = [
            _text(module, piece.value if isinstance(piece, ast.FormattedValue) else piece) for piece in value.values
        ]
        return None if None in pieces else "".join(map(str, pieces))
    if isinstance(value, ast.Name):
        return _text(module, _assignments(module).get(value.id))
    return None
