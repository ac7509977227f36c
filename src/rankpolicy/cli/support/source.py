"""Tables of members and summaries read from source text: listing them imports no package, of which some load torch."""

from __future__ import annotations

import ast
import runpy
from functools import cache
from pathlib import Path

import rankpolicy

_ROOT = Path(rankpolicy.__file__).parents[1]


def read_locations(module: str, name: str) -> dict[str, str]:
    """Module and name of each member of a table, from a module that imports nothing heavy.

    >>> read_locations("rankpolicy.rankers.members", "RANKERS")["pg-rank"]
    'rankpolicy.rankers.networks.pg_rank:PGRank'
    """
    # Run by its path: an import would load the package around it.
    locations: dict[str, str] = runpy.run_path(str(_ROOT.joinpath(*module.split(".")).with_suffix(".py")))[
        name
    ].locations
    return locations


def read_summary(location: str) -> str:
    """The first line of the docstring of a class or function; the ``title`` of a value, or the first line about its ``function``.

    >>> read_summary("rankpolicy.cli.support.source:first_line")
    'The first line of a docstring, or its first paragraph where the sentence goes on.'
    """
    module, _, name = location.partition(":")
    tree = _tree(module)
    # Packages import the names that they export under "if TYPE_CHECKING:".
    exported = [inner for node in tree.body if isinstance(node, ast.If) for inner in node.body]
    for node in [*tree.body, *exported]:
        match node:
            case ast.ClassDef() | ast.FunctionDef() if node.name == name:
                return first_line(ast.get_docstring(node) or "")
            case ast.ImportFrom(module=str(origin)):
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return read_summary(f"{origin}:{alias.name}")
            case (
                ast.Assign(targets=[ast.Name(id=target)], value=ast.Call(keywords=keywords))
                | ast.AnnAssign(target=ast.Name(id=target), value=ast.Call(keywords=keywords))
            ) if target == name:
                for keyword in keywords:
                    match keyword:
                        case ast.keyword(arg="title", value=ast.Constant(value=str(title))):
                            return f"{title[:1].upper()}{title[1:]}."
                        case ast.keyword(arg="function", value=ast.Name(id=function)):
                            return read_summary(f"{module}:{function}")
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
def _tree(module: str) -> ast.Module:
    base = _ROOT.joinpath(*module.split("."))
    file = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8") if file.is_file() else "")
