"""Bandits as files and as plain values, and back. What comes back is checked: a file may be from a stranger."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self, cast, final

import numpy as np
from numpy.typing import NDArray

from rankpolicy.bandits.members import BANDITS, COMPOSED, KnowsOtherSettings
from rankpolicy.bundle import write_bundle
from rankpolicy.declarations.arguments import checked_path
from rankpolicy.types import RankPolicyError

_ARRAYS = "arrays.safetensors"
_LARGEST_CUTOFF = 100_000  # where no array has that size
_SMALL = 1000  # what takes little memory may be made before its arrays are compared


class SavedBandit(KnowsOtherSettings, ABC):
    """A bandit, or one per query, that can be saved and restored."""

    name: ClassVar[str]

    @final
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the bandit to a file. ``rp.load(path)`` gives it back, and it decides as this one would have.

        Parameters
        ----------
        path
            Where the file goes; an existing file is replaced.
        """
        from safetensors.numpy import save

        arrays = {name: np.ascontiguousarray(array) for name, array in self._all_arrays().items()}
        content = {"kind": "bandit", "bandit": self.name, "settings": self._plain_settings()}
        write_bundle(Path(checked_path(path)), content, {_ARRAYS: save(arrays)})

    @final
    def to_dict(self) -> dict[str, Any]:
        """Everything the bandit knows as plain values, which JSON can hold; ``from_dict`` gives the bandit back."""
        arrays = {name: array.tolist() for name, array in self._all_arrays().items()}
        return {"bandit": self.name, "settings": self._plain_settings(), "arrays": arrays}

    @final
    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """The bandit that ``to_dict`` described; it decides as that one would have. ``Bandit.from_dict`` accepts every kind.

        Parameters
        ----------
        document
            What ``to_dict`` returned, also after a round trip through JSON.
        """
        if not isinstance(document, Mapping) or not isinstance(document.get("arrays"), Mapping):
            raise RankPolicyError(
                "a bandit must be a mapping with bandit, settings and arrays, as to_dict() returns it."
            )
        bandit_class = _class_named(document.get("bandit"))
        if not issubclass(bandit_class, cls):
            raise RankPolicyError(
                f"{cls.__name__}.from_dict got a {document['bandit']} bandit. "
                f"Use {bandit_class.__name__}.from_dict, or Bandit.from_dict for any."
            )
        arrays = {str(name): value for name, value in document["arrays"].items()}
        return cast(Self, _made(document["bandit"], document.get("settings"), arrays))

    def _all_arrays(self) -> dict[str, NDArray[Any]]:
        return self._array_settings() | self._arrays()

    @abstractmethod
    def _plain_settings(self) -> dict[str, Any]:
        """Settings that are no arrays."""

    def _array_settings(self) -> dict[str, NDArray[Any]]:
        return {}

    @classmethod
    def _with_arrays(cls, settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """Settings with the arrays among them put back in their place."""
        return settings | arrays

    @abstractmethod
    def _arrays(self) -> dict[str, NDArray[Any]]:
        """What was learned, and the state of the generator."""

    @abstractmethod
    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over arrays of the right shapes and kinds, after a check that step functions can work on them."""


def restore_bandit(manifest: dict[str, Any], files: dict[str, bytes], path: Path) -> Any:
    """The bandit that a file holds."""
    from safetensors.numpy import load

    if _ARRAYS not in files:
        raise RankPolicyError(f"{path} is damaged: {_ARRAYS} is missing. Copy the file or save the bandit again.")
    try:
        return _made(manifest.get("bandit"), manifest.get("settings"), load(files[_ARRAYS]))
    except RankPolicyError as error:
        raise RankPolicyError(f"{path} does not hold a bandit that this version can use: {error}") from None


def _class_named(name: Any) -> type[Any]:
    return cast(type[Any], COMPOSED[name] if name in COMPOSED else BANDITS.named(name))


def _made(name: Any, settings: Any, arrays: Mapping[str, Any]) -> Any:
    cls = _class_named(name)
    if not isinstance(settings, Mapping):
        raise RankPolicyError("settings of a bandit must be a mapping of names and values.")
    plain_settings = {str(key): _tuples(value) for key, value in settings.items()}
    _check_sizes(plain_settings, arrays)
    learned = ("steps", "statistics", "window_rankings", "window_clicks", "generator", "keys", "counts")
    array_settings = {key: array for key, array in arrays.items() if key not in learned}
    try:
        bandit: SavedBandit = cls(**cls._with_arrays(plain_settings, array_settings))
    except TypeError as error:  # a required setting is missing
        raise RankPolicyError(f"settings of {name} are incomplete ({error}).") from None
    bandit._restore({key: _checked(key, arrays, expected) for key, expected in bandit._arrays().items()})
    return bandit


def _check_sizes(settings: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Refuse sizes far above those of the arrays, before a bandit of that size is made."""
    sizes: dict[str, int] = {}
    if len(shape := _shape(arrays.get("statistics"))) == 3:
        sizes["num_items"] = shape[1]
    if len(shape := _shape(arrays.get("window_rankings"))) == 2:
        sizes["window"], sizes["cutoff"] = shape
    for name in ("num_items", "window", "cutoff"):
        value = settings.get(name) or 0
        largest = sizes.get(name, _LARGEST_CUTOFF)
        if isinstance(value, int) and value > max(4 * largest, _SMALL):
            raise RankPolicyError(f"{name} is {value}, but the arrays are of {largest}.")


def _shape(values: Any) -> tuple[int, ...]:
    try:
        return np.shape(values)
    except ValueError:  # lists of different lengths, which are refused later
        return ()


def _checked(name: str, arrays: Mapping[str, Any], expected: NDArray[Any]) -> NDArray[Any]:
    """An array of the shape and kind of the expected one; the first axis of ``keys`` and ``counts`` is free."""
    if name not in arrays:
        raise RankPolicyError(f"the array {name} is missing.")
    is_free = name in ("keys", "counts")
    array = _numbers(name, arrays[name], expected.dtype)
    if array.size == 0 and (expected.size == 0 or is_free):  # nested lists lose the shape of an empty array
        return np.empty((0, *expected.shape[1:]) if is_free else expected.shape, expected.dtype)
    if array.shape[is_free:] != expected.shape[is_free:] or array.ndim != expected.ndim:
        shape = ("any number", *expected.shape[1:]) if is_free else expected.shape
        raise RankPolicyError(f"the array {name} must have shape ({', '.join(map(str, shape))}); got {array.shape}.")
    return array


def _numbers(name: str, values: Any, kind: np.dtype[Any]) -> NDArray[Any]:
    """Values, an array or nested lists, as numbers of this kind; nothing is rounded or cut off."""
    # Nested lists of large integers would become floating-point numbers on the way: they are kept as objects.
    array = values if isinstance(values, np.ndarray) else np.array(values, dtype=object)
    if array.dtype == object:
        allowed = int if kind.kind in "iu" else int | float
        is_right = all(isinstance(value, allowed) and not isinstance(value, bool) for value in array.flat)
    else:
        is_right = np.can_cast(array.dtype, kind)
    if not is_right:
        raise RankPolicyError(f"the array {name} must hold {kind} numbers, in lists of equal lengths; got others.")
    try:
        return array.astype(kind)
    except OverflowError:
        raise RankPolicyError(f"the array {name} must hold {kind} numbers; got larger ones.") from None


def _tuples(value: Any) -> Any:
    return tuple(_tuples(member) for member in value) if isinstance(value, list) else value


_LOW_WORD = (1 << 64) - 1


def generator_words(generator: np.random.Generator) -> NDArray[np.uint64]:
    """The state (6,) of a PCG64 generator: its two 128-bit numbers, high word first, and the unused half of the last 64-bit draw."""
    state = generator.bit_generator.state
    numbers = state["state"]["state"], state["state"]["inc"]
    words = [word for number in numbers for word in (number >> 64, number & _LOW_WORD)]
    return np.array([*words, state["has_uint32"], state["uinteger"]], np.uint64)


def generator_from_words(words: NDArray[np.uint64]) -> np.random.Generator:
    """The generator that continues from the state in ``words``.

    >>> generator = np.random.default_rng(0)
    >>> copy = generator_from_words(generator_words(generator))
    >>> generator.random() == copy.random()
    True
    """
    high, low, high_step, low_step, has_half, half = (int(word) for word in words)
    if has_half > 1 or half >= 1 << 32:
        raise RankPolicyError("the state of the generator must end with 0 or 1 and a 32-bit number; got others.")
    bits = np.random.PCG64()
    bits.state = {
        "bit_generator": "PCG64",
        "state": {"state": high << 64 | low, "inc": high_step << 64 | low_step},
        "has_uint32": has_half,
        "uinteger": half,
    }
    return np.random.Generator(bits)
