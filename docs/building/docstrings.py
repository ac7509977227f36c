"""Docstrings (numpydoc) as Markdown."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator

_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.M)
_ENTRY = re.compile(r"^(\S.*)\n((?:(?: {4}.*)?\n)*)", re.M)
_CODE = re.compile(r"``(.+?)``|`([^`]+)`|(\*\*\w[^*]*\*\*)")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|$~^])")


def as_markdown(docstring: str, *, level: int) -> str:
    """A docstring as Markdown: prose, doctests as code, and one definition list per section.

    Parameters
    ----------
    docstring
        Its text.
    level
        How many # the headings of its sections have; 0 writes them in bold.
    """
    text = inspect.cleandoc(docstring) + "\n"
    parts = _SECTION.split(text)
    lines = [prose(parts[0])]
    for title, content in zip(parts[1::2], parts[2::2], strict=True):
        entries, rest = _entries_and_rest(content.lstrip("\n"))
        lines.append(f"{'#' * level} {title}" if level else f"**{title}**")
        lines += [_entry(head, body) for head, body in entries]
        if rest.strip():
            lines.append(prose(rest))
    return "\n\n".join(line for line in lines if line.strip()) + "\n"


def first_line(docstring: str | None) -> str:
    """The first sentence-like line of a docstring, as Markdown on one line."""
    paragraph = inspect.cleandoc(docstring or "").split("\n\n")[0]
    return inline(" ".join(paragraph.split()))


def prose(text: str) -> str:
    """Paragraphs as Markdown: indented ones and doctests are code, lists stay lists.

    >>> prose("Use ``a_b``, not <x>:\\n\\n    a_b + 1\\n").splitlines()
    ['Use `a_b`, not \\\\<x\\\\>:', '', '```text', 'a_b + 1', '```']
    """
    return "\n\n".join(_paragraphs(text))


def inline(text: str) -> str:
    """Text as Markdown in which nothing but ``code`` and **bold** is special."""
    parts, end = [], 0
    for found in _CODE.finditer(text):
        parts += [_SPECIAL.sub(r"\\\1", text[end : found.start()]), found[3] or f"`{found[1] or found[2]}`"]
        end = found.end()
    return "".join([*parts, _SPECIAL.sub(r"\\\1", text[end:])])


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        if not paragraph.strip():
            continue
        if paragraph.lstrip().startswith(">>>"):
            yield f"```pycon\n{inspect.cleandoc(paragraph)}\n```"
        elif paragraph.startswith("    "):
            yield f"```text\n{textwrap.dedent(paragraph)}\n```"
        elif re.match(r"(?:[-*]|\d+\.) ", paragraph):
            yield re.sub(
                r"^( *(?:[-*]|\d+\.) )?(.*)$", lambda line: (line[1] or "") + inline(line[2]), paragraph, flags=re.M
            )
        else:
            before, marker, code = paragraph.partition("\n>>>")
            yield inline(before)
            if marker:
                yield f"```pycon\n>>>{code}\n```"


def _entries_and_rest(content: str) -> tuple[list[tuple[str, str]], str]:
    """Entries (a line, then an indented body) at the start of a section, and what follows them."""
    entries, end = [], 0
    while found := _ENTRY.match(content, end):
        if not found[2].strip() or found[1].startswith(">>>"):
            break
        entries.append((found[1], inspect.cleandoc(found[2])))
        end = found.end()
    return entries, content[end:]


def _entry(head: str, body: str) -> str:
    names, _, kind = head.partition(" : ")
    code = ", ".join(f"`{name}`" for name in names.split(", "))
    described = prose(body).replace("\n", "\n    ")
    return f"{code}{f' <small>{inline(kind)}</small>' if kind else ''}\n:   {described}"
