"""How values are shown: a short plain text everywhere, and small tables and curves in notebooks. Needs nothing but the standard library."""

from __future__ import annotations

import dataclasses
import html
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")

_MOST_CHARACTERS = 60  # of one value
_MOST_VALUES = 6  # of one list
_CELL = "padding:2px 10px 2px 0;text-align:left;border:0"


def short_repr(owner: Any) -> str:
    """A dataclass in one line: the fields that differ from their defaults, with arrays by kind and shape and long lists by length."""
    shown = []
    for field in dataclasses.fields(owner):
        value = getattr(owner, field.name)
        if field.repr and field.init and not _is_default(value, field):
            shown.append(f"{field.name}={short(value)}")
    return f"{type(owner).__name__}({', '.join(shown)})"


@dataclass_transform(frozen_default=True, eq_default=False)
def frozen_value(*, kw_only: bool = False) -> Callable[[type[T]], type[T]]:
    """A dataclass that never changes and holds arrays, so that two are equal only where they are the same; its repr is short."""

    def decorate(cls: type[T]) -> type[T]:
        cls.__repr__ = short_repr  # type: ignore[method-assign]
        return dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=kw_only)(cls)

    return decorate


class ShortRepr:
    """Base of dataclasses whose subclasses, dataclasses themselves, all have ``short_repr`` as their repr."""

    __slots__ = ()

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "__repr__" not in vars(cls):
            cls.__repr__ = short_repr  # type: ignore[method-assign]


def short(value: Any) -> str:
    """A value in few characters.

    >>> short([1, 2]), short(list(range(500))), short({"a": 0.25})
    ('[1, 2]', '<500 values>', "{'a': 0.25}")
    >>> short("x" * 100)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'"
    """
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        if len(value.shape) <= 1 and math.prod(value.shape) <= _MOST_VALUES:
            return _clipped(str(value.tolist() if hasattr(value, "tolist") else list(value)))
        return f"<{str(value.dtype).removeprefix('torch.')} {'x'.join(map(str, value.shape))}>"
    if isinstance(value, str):
        return repr(value) if len(value) <= _MOST_CHARACTERS else repr(value[: _MOST_CHARACTERS - 5] + "...")
    if isinstance(value, Mapping):
        if len(value) > _MOST_VALUES:
            return f"<{len(value)} entries>"
        return "{" + ", ".join(f"{key!r}: {short(member)}" for key, member in value.items()) + "}"
    if isinstance(value, list | tuple | set | frozenset):
        if len(value) > _MOST_VALUES:
            return f"<{len(value)} values>"
        listed = ", ".join(map(short, value))
        return f"[{listed}]" if isinstance(value, list) else f"({listed}{',' if len(value) == 1 else ''})"
    return _clipped(repr(value), most=4 * _MOST_CHARACTERS)


def html_table(rows: Iterable[Sequence[Any]], *, header: Sequence[str] = ()) -> str:
    """A table for notebooks; all texts are escaped.

    >>> html_table([("a<b", 1)]).count("&lt;")
    1
    """
    head = "".join(f'<th style="{_CELL}">{html.escape(str(name))}</th>' for name in header)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{html.escape(str(cell))}</td>' for cell in row) + "</tr>" for row in rows
    )
    return (
        f'<table style="border-collapse:collapse">{f"<thead><tr>{head}</tr></thead>" if head else ""}'
        f"<tbody>{body}</tbody></table>"
    )


def html_block(title: str, *fragments: str) -> str:
    """A titled block for notebooks."""
    return f"<div><strong>{html.escape(title)}</strong>{''.join(fragments)}</div>"


def html_curve(values: Sequence[float], *, label: str) -> str:
    """A small line of numbers over iterations, as inline SVG in the colour of the text around it."""
    finite = [(index, value) for index, value in enumerate(values) if math.isfinite(value)]
    if len(finite) < 2:
        return f"<div>{html.escape(label)}: {finite[0][1]:.4f}</div>" if finite else ""
    low, high = min(value for _, value in finite), max(value for _, value in finite)
    wide, tall = 160, 36
    points = " ".join(
        f"{2 + index / (len(values) - 1) * (wide - 4):.1f},"
        f"{tall - 3 - (value - low) / ((high - low) or 1) * (tall - 6):.1f}"
        for index, value in finite
    )
    caption = f"{label}: {finite[-1][1]:.4f} (from {low:.4f} to {high:.4f} in {len(values)})"
    return (
        f'<div><svg width="{wide}" height="{tall}" role="img" aria-label="{html.escape(caption)}">'
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.5"/></svg> {html.escape(caption)}</div>'
    )


def _is_default(value: Any, field: dataclasses.Field[Any]) -> bool:
    default = field.default
    if field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    try:
        return default is not dataclasses.MISSING and bool(value is default or value == default)
    except (TypeError, ValueError, RuntimeError):  # arrays compare element by element
        return False


def _clipped(text: str, most: int = 2 * _MOST_CHARACTERS) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."
