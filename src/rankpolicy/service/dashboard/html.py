"""HTML in which every text is escaped: only what ``element`` made counts as markup."""

from __future__ import annotations

from html import escape
from typing import Any

_EMPTY = {"input", "link", "meta"}  # of HTML; elements of SVG are closed


class Markup(str):
    """Text that is HTML already; only this module makes it."""

    __slots__ = ()


def element(tag: str, /, *children: Any, **attributes: Any) -> Markup:
    """An element of HTML or SVG. Children that are not markup are escaped; None and False are left out, as attributes too.

    Parameters
    ----------
    tag
        Its name.
    children
        Markup, texts, numbers, or lists of them.
    attributes
        ``class_`` and ``for_`` lose their line, other lines become hyphens.

    >>> element("p", "a < b", class_="note", data_id='"')
    '<p class="note" data-id="&quot;">a &lt; b</p>'
    """
    parts = []
    for key, value in attributes.items():
        if value is not None and value is not False:
            key = key.rstrip("_").replace("_", "-")
            parts.append(f" {key}" if value is True else f' {key}="{_escaped(value)}"')
    opening = f"<{tag}{''.join(parts)}>"
    return Markup(opening if tag in _EMPTY else f"{opening}{joined(*children)}</{tag}>")


def joined(*children: Any) -> Markup:
    """Children one after the other.

    Parameters
    ----------
    children
        Markup, texts, numbers, or lists of them.
    """
    return Markup("".join(map(_rendered, children)))


def user_text(text: str) -> Markup:
    """A text that a stranger chose: escaped, and in a frame of its own so that right-to-left marks do not leak out of it.

    Parameters
    ----------
    text
        The text.
    """
    return element("bdi", text)


def _rendered(child: Any) -> str:
    if child is None or child is False:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, list | tuple):
        return "".join(map(_rendered, child))
    return _escaped(child)


def _escaped(value: Any) -> str:
    # Half of a surrogate pair cannot be sent, and U+0000 is not allowed in HTML.
    return escape(str(value).encode("utf-8", "replace").decode().replace("\0", "�"))
