"""The arguments and options of a verb, from its signature and its docstring.

Parameters before ``*`` are arguments, the others options; one with the default False is a flag. A parameter that is a dataclass,
``columns: Columns``, stands for its fields. The docstring of the class, or of the module of the verb, holds the help of each in its
section of parameters:

    run_files : --run NAME=FILE, default none takes part
        The help text. Before it, all of them optional: another name than that of the parameter, the kind of value, the default in words.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import typer

_SECTION = re.compile(r"^(\w+)\n-+\n", re.M)
_PARAMETER = re.compile(r"^(\w+)(?: : (.*))?\n((?: {4}.*\n?)+)", re.M)
_FACTS = re.compile(r"(--[\w-]+)? ?((?!default )\S+?)?(?:,? ?default (.+))?")


class Documentation(NamedTuple):
    """The docstring of a verb, or of a class of options, in parts: paragraphs, and sections by their titles."""

    paragraphs: str
    sections: dict[str, str]

    @property
    def examples(self) -> str:
        """The examples as they stand below the options of a help page."""
        return "\n\n".join(["[bold]Examples[/bold]", *self.sections.get("Examples", "").splitlines()])

    def parameters(self) -> Iterator[tuple[str, str, str]]:
        """Name, facts and help text of each parameter."""
        for name, facts, help in _PARAMETER.findall(self.sections.get("Parameters", "")):
            yield name, facts, " ".join(help.split())


def documentation_of(owner: Any) -> Documentation:
    """The docstring of a verb or a class, with each paragraph in one line: the width of the terminal breaks it, not that of the source.

    The summary of a verb is its own docstring; the other paragraphs and the sections stand below the title of its module's.
    """
    texts: list[str] = []
    sections: dict[str, str] = {}
    for documented in (owner, inspect.getmodule(owner)) if inspect.isfunction(owner) else (owner,):
        text, *titled = _SECTION.split(inspect.cleandoc(documented.__doc__ or ""))
        paragraphs = text.split("\n\n")
        texts += paragraphs if documented is owner else paragraphs[1:]  # without its title
        sections = dict(zip(titled[::2], titled[1::2], strict=True)) | sections
    return Documentation("\n\n".join(" ".join(paragraph.split()) for paragraph in texts).rstrip(), sections)


def for_typer(verb: Callable[..., Any]) -> Callable[..., Any]:
    """The verb as typer takes it: one annotated parameter per argument and option."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for parameter in inspect.signature(verb, eval_str=True).parameters.values():
        if is_dataclass(parameter.annotation):
            group: Any = parameter.annotation
            groups[parameter.name] = group
            hints = get_type_hints(group, include_extras=True)
            members = [
                parameter.replace(name=field.name, annotation=hints[field.name], default=_default(field))
                for field in fields(group)
            ]
            for base in reversed(group.__mro__):
                members = _described(members, base)
            parameters += members
        else:
            parameters += _described([parameter], verb)

    def call(**values: Any) -> Any:
        options = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        return verb(**values, **options)

    keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    call.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def _default(field: Field[Any]) -> Any:
    return inspect.Parameter.empty if field.default is MISSING else field.default


def _described(parameters: list[inspect.Parameter], owner: Any) -> list[inspect.Parameter]:
    """The parameters, those with a help text of the owner annotated for typer."""
    texts = {name: (facts, help) for name, facts, help in documentation_of(owner).parameters()}
    return [
        parameter.replace(annotation=_annotated(parameter, *texts[parameter.name]))
        if parameter.name in texts
        else parameter
        for parameter in parameters
    ]


def _annotated(parameter: inspect.Parameter, facts: str, help: str) -> Any:
    annotation = parameter.annotation
    kind, *declared = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    is_argument = parameter.kind is not inspect.Parameter.KEYWORD_ONLY
    info: Any = copy(declared[0]) if declared else typer.Argument() if is_argument else typer.Option()
    match = _FACTS.fullmatch(facts)
    assert match is not None, f"{parameter.name} : {facts}"
    option, metavar, default = match.groups()
    if option is None and parameter.default is False and not info.param_decls:
        option = f"--{parameter.name.replace('_', '-')}"  # typer itself would add --no-...
    info.help, info.metavar, info.show_default = help, metavar or info.metavar, default or parameter.default != ""
    info.param_decls = (option,) if option else info.param_decls
    return Annotated[kind, info]
