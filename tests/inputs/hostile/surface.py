"""The public methods, found by reflection, and what each of their parameters may be."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints, is_typeddict
from uuid import UUID

from mnemic import Filter, MemoryManager, MemorySettings, Scope, Trust
from mnemic.tier.tiers import Tiers

__all__ = ["Leaf", "Method", "kind_of", "methods"]

PACKAGE = "mnemic."
_KINDS: dict[Any, str] = {
    str: "text",
    int: "whole",
    float: "number",
    bool: "flag",
    UUID: "id",
    datetime: "time",
    Scope: "scope",
    Any: "json",
    Path: "path",
    Trust: "trust",
    MemorySettings: "settings",
    Filter: "filter",
}
# What a reply gave is handed back as it is: its parts are the product's own.
_GIVEN_BACK = {"Episode"}


@dataclass(frozen=True, slots=True)
class Leaf:
    """A parameter, or a field of a value that is one; `path` leads there from the parameter."""

    path: tuple[str, ...]
    kind: str
    optional: bool
    annotation: Any = None

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path[-1]


@dataclass(frozen=True, slots=True)
class Method:
    """A public method, as a caller reaches it: `at.semantic.store_fact`."""

    path: tuple[str, ...]
    leaves: tuple[Leaf, ...]
    required: tuple[Leaf, ...]

    def __str__(self) -> str:
        return ".".join(self.path)

    def bound(self, memory: MemoryManager, scope: Scope) -> Callable[..., Any]:
        """The method on a manager; a tier's on the tiers of the scope."""
        *owners, name = self.path
        found: Any = memory
        for owner in owners:
            found = found.at(scope) if owner == "at" else getattr(found, owner)
        method: Callable[..., Any] = getattr(found, name)
        return method


def methods(front_door: type = MemoryManager) -> list[Method]:
    """All of them, in the order of their names."""
    return sorted(_of_class(front_door, ()), key=str)


def _of_class(kind: type, before: tuple[str, ...]) -> Iterator[Method]:
    for name, member in inspect.getmembers_static(kind):
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            handle = get_type_hints(member.fget)["return"]
            if not issubclass(handle, MemorySettings):
                yield from _of_class(handle, (*before, name))
            continue
        yield _method(kind, name, before)
        if name == "at":
            for tier, held in vars(Tiers(_Nothing(), Scope.user("u"))).items():
                if type(held).__module__.startswith(PACKAGE) and not isinstance(held, Scope):
                    yield from _of_class(type(held), ("at", tier))


class _Nothing:
    """Tools that nobody uses."""

    working = None


def _method(kind: type, name: str, before: tuple[str, ...]) -> Method:
    function = inspect.unwrap(getattr(kind, name))
    hints = get_type_hints(function)
    signature = inspect.signature(function)
    leaves: list[Leaf] = []
    required: list[Leaf] = []
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        annotation = hints[parameter.name]
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            for option, type_ in _options(annotation).items():
                leaves += _leaves((option,), type_, optional=False)
            continue
        found = _leaves((parameter.name,), annotation, optional=parameter.default is None)
        leaves += found
        if parameter.default is inspect.Parameter.empty:
            required.append(found[0])
    return Method((*before, name), tuple(leaves), tuple(required))


def _options(annotation: Any) -> dict[str, Any]:
    """The keywords of `**options: Unpack[Options]`."""
    [options] = get_args(annotation)
    assert is_typeddict(options), f"keywords of {annotation} cannot be told"
    return get_type_hints(options)


def _leaves(path: tuple[str, ...], annotation: Any, *, optional: bool) -> list[Leaf]:
    """The parameter itself and, of a value that is built by the caller, all its fields."""
    chosen = [one for one in _choices(annotation) if one is not type(None)]
    optional = optional or type(None) in _choices(annotation)
    leaf = Leaf(path, kind_of(annotation), optional, annotation)
    built = [one for one in (_element(each) for each in chosen) if _is_built(one)]
    leaves = [leaf]
    for one in built:
        hints = get_type_hints(one)
        for field in fields(one):
            if field.init:
                may_miss = field.default is None
                inner = _leaves((*path, field.name), hints[field.name], optional=may_miss)
                leaves += [each for each in inner if len(each.path) <= len(path) + 2]
    return leaves


def _choices(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) in {Union, types.UnionType}:
        return get_args(annotation)
    return (annotation,)


def _element(annotation: Any) -> Any:
    """What a list is a list of."""
    origin = get_origin(annotation)
    if origin in {list, tuple, Sequence, Iterable}:
        return get_args(annotation)[0]
    return annotation


def _is_built(annotation: Any) -> bool:
    return (
        is_dataclass(annotation)
        and annotation is not Scope
        and getattr(annotation, "__name__", "") not in _GIVEN_BACK
    )


def kind_of(annotation: Any) -> str:
    """Which hostile values fit; a type that is not known fails, so that it is given some."""
    chosen = [one for one in _choices(annotation) if one is not type(None)]
    supertypes = [getattr(one, "__supertype__", one) for one in chosen]
    named = [kind for known, kind in _KINDS.items() if known in supertypes]
    if any(inspect.isclass(one) and issubclass(one, StrEnum) for one in supertypes):
        return "choice"
    if named:
        return next((kind for kind in named if kind != "text"), "text")
    [only] = supertypes
    return _kind_of_whole(only)


def _kind_of_whole(annotation: Any) -> str:
    origin = get_origin(annotation) or annotation
    if origin in {dict, Mapping}:
        return "object"
    if origin in {list, tuple, Sequence, Iterable}:
        return {"text": "texts", "id": "ids", "object": "objects"}.get(
            kind_of_element(annotation), "many"
        )
    if is_dataclass(annotation):
        return "given"
    if origin is get_origin(Callable[..., Any]):
        return "function"
    message = f"{annotation}: say in surface.py what kind of value this is"
    raise AssertionError(message)


def kind_of_element(annotation: Any) -> str:
    """The kind of what a list holds; a union of values that are built is `many` of them."""
    element = _element(annotation)
    if _is_built(element) or len(_choices(element)) > 1:
        return "given"
    return kind_of(element)
