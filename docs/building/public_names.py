"""Reference pages of the Python interface: every public name of every public package, from its docstring."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any

from docs.building.docstrings import as_markdown, first_line, inline
from rankpolicy.declarations.members import Members
from tests.undocumented import public_packages

_WIDEST = 88
Places = Mapping[int, list[str]]  # the public names of an object, by its id


def reference_pages() -> dict[str, str]:
    """Markdown of the pages by path, the package itself first."""
    packages = _packages()
    places = _places(packages)
    return {_page(name): _package_page(name, module, places) for name, module in packages.items()}


def _packages() -> dict[str, types.ModuleType]:
    return {module.__name__: module for module in public_packages()}


def _page(name: str) -> str:
    short = name.removeprefix("rankpolicy").removeprefix(".") or "rankpolicy"
    return f"reference/python/{short}.md"


def _places(packages: Mapping[str, types.ModuleType]) -> dict[int, list[str]]:
    """The public names of every object, first the one under which it is described: in the package that defines it."""
    places: dict[int, list[str]] = {}
    for package, module in packages.items():
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, types.ModuleType):
                continue
            is_home = package != "rankpolicy" and str(getattr(value, "__module__", "")).startswith(package)
            places.setdefault(id(value), []).insert(
                0 if is_home else len(places.get(id(value), [])), f"{package}.{name}"
            )
    return places


def _package_page(package: str, module: types.ModuleType, places: Places) -> str:
    names = sorted(module.__all__, key=str.lower)
    lines = [f"({package})=\n# {package}", as_markdown(module.__doc__ or "", level=2)]
    rows = []
    for name in names:
        value = getattr(module, name)
        target = value.__name__ if isinstance(value, types.ModuleType) else places[id(value)][0]
        rows.append(f"| [`{name}`](#{target}) | {_summary(value)} |")
    lines.append("| name | what it is |\n|---|---|\n" + "\n".join(rows))
    for name in names:
        value = getattr(module, name)
        if not isinstance(value, types.ModuleType) and places[id(value)][0] == f"{package}.{name}":
            lines += _described(name, value, places)
    return "\n\n".join(lines) + "\n"


def _summary(value: Any) -> str:
    if isinstance(value, Members):
        return f"Every {inline(value.kind)} by its name."
    if isinstance(value, str):
        return f"`{value!r}`"
    return first_line(inspect.getdoc(value)) if _has_docstring(value) else inline(_value_text(value))


def _described(name: str, value: Any, places: Places) -> Iterator[str]:
    names = places[id(value)]
    yield "\n".join(f"({place})=" for place in names) + f"\n## {name}"
    if isinstance(value, Members):
        yield f"Every {inline(value.kind)} by its name: " + ", ".join(f"`{member}`" for member in value) + "."
        return
    if not _has_docstring(value):
        yield f"```python\n{name} = {_value_text(value)}\n```"
        return
    if signature := _signature(name, value):
        yield f"```python\n{signature}\n```"
    if inspect.isclass(value) and (bases := _bases(value, places)):
        yield f"A kind of {bases}."
    yield as_markdown(inspect.getdoc(value) or "", level=0)
    if inspect.isclass(value):
        for method, member in _own_methods(value, places):
            yield f"({names[0]}.{method})=\n### {method}"
            if isinstance(member, property):
                yield f"<small>property of {name}</small>"
            elif signature := _signature(method, member):
                yield f"```python\n{signature}\n```"
            yield as_markdown(inspect.getdoc(member) or "", level=0)


def _has_docstring(value: Any) -> bool:
    return bool(inspect.getdoc(value)) and (inspect.isclass(value) or inspect.isroutine(value))


def _value_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f'"{name}"' for name in value) + "}"
    return str(value)[:300]


def _bases(value: type, places: Places) -> str:
    return ", ".join(f"[`{base.__name__}`](#{places[id(base)][0]})" for base in value.__bases__ if id(base) in places)


def _own_methods(value: type, places: Places) -> Iterator[tuple[str, Any]]:
    """Public methods and properties of a class, in the order of its code.

    Those of bases that are not public themselves belong to it; those of public bases are described there.
    """
    ours = [base for base in value.__mro__[1:] if base.__module__.startswith("rankpolicy")]
    described = {name for base in ours if id(base) in places for name, _ in _own_methods(base, places)}
    seen = set()
    for place in (value, *(base for base in ours if id(base) not in places)):
        for name, member in vars(place).items():
            function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            is_method = inspect.isfunction(function) or isinstance(function, property)
            if name.startswith("_") or name in seen or not is_method or (place is not value and name in described):
                continue
            if not inspect.getdoc(function) or (
                inspect.isfunction(function) and not function.__module__.startswith("rankpolicy")
            ):
                continue
            seen.add(name)
            yield name, member if isinstance(function, property) else getattr(value, name)


def _signature(name: str, value: Any) -> str:
    if inspect.isclass(value) and (issubclass(value, BaseException) or getattr(value, "_is_protocol", False)):
        return ""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parameters = [parameter for parameter in signature.parameters.values() if parameter.name != "self"]
    texts = [_plain(str(parameter)) for parameter in parameters]
    kinds = [parameter.kind for parameter in parameters]
    first = next((place for place, kind in enumerate(kinds) if kind is inspect.Parameter.KEYWORD_ONLY), None)
    if first is not None and inspect.Parameter.VAR_POSITIONAL not in kinds:
        texts.insert(first, "*")
    returns = signature.return_annotation
    gives = (
        ""
        if returns is signature.empty or is_dataclass(value) or inspect.isclass(value)
        else f" -> {_annotation(returns)}"
    )
    line = f"{name}({', '.join(texts)}){gives}"
    if len(line) <= _WIDEST:
        return line
    return f"{name}(\n" + "".join(f"    {text},\n" for text in texts) + f"){gives}"


def _annotation(annotation: Any) -> str:
    return annotation.strip("'") if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _plain(text: str) -> str:
    """A parameter without the quotes of its annotation and without addresses in memory.

    >>> _plain("hidden: 'tuple[int, ...]' = (64,)")
    'hidden: tuple[int, ...] = (64,)'
    >>> _plain("report: 'Callable[[str], None]' = <function serve.<locals>.<lambda> at 0x7f>")
    'report: Callable[[str], None] = ...'
    """
    text = re.sub(r"<factory>|<[^=]*<lambda>[^=]*>$", "...", text)
    text = re.sub(r"^(\*{0,2}\w+): (['\"])(.*?)\2(?= = |$)", r"\1: \3", text)
    return re.sub(r"<(?:function |class ')?([\w.]+).*?>", lambda found: found[1].rpartition(".")[2], text)
