"""Values against type annotations: JSON values, words of the command line, and the names people read.

A configuration may hold whole numbers, numbers, words, truth values, `Literal` words, `None` beside any of these,
tuples and dictionaries of them, other dataclasses, and words that are registered somewhere (`Words`).
"""

import dataclasses
import math
import types
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Protocol, Union, get_args, get_origin, get_type_hints, runtime_checkable

from srwm.errors import InputError

from .json_objects import parse_json
from .suggestions import did_you_mean

_TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_NOTHING = ("none", "null")
_LONGEST_SHOWN = 200
"""Letters of a refused value that its sentence repeats."""
_NAMES = {int: "a whole number", float: "a number", str: "a word", bool: "true or false", type(None): "none"}


@runtime_checkable
class Words(Protocol):
    """Words that are known only at run time: `Annotated[str, words]` is a field that holds one of them."""

    otherwise: str
    """What else may stand there."""

    def words(self) -> tuple[str, ...]:
        """The words."""

    def accepts(self, word: str) -> bool:
        """Whether a word may stand there."""


def field_types(cls: type) -> dict[str, Any]:
    """Give the annotation of each field of a dataclass, in order."""
    hints = get_type_hints(cls, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls) if field.init}


def dataclass_in(kind: Any) -> type | None:
    """Give the dataclass of an annotation `X` or `X | None`; None if it holds no dataclass."""
    for choice in choices_of(kind):
        if isinstance(choice, type) and dataclasses.is_dataclass(choice):
            return choice
    return None


def choices_of(kind: Any) -> tuple[Any, ...]:
    """Give the members of a union; anything else is its only member."""
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def words_in(kind: Any) -> Words | None:
    """Give the registered words of an annotation; None if it is of another kind."""
    if get_origin(kind) is not Annotated:
        return None
    return next((each for each in get_args(kind)[1:] if isinstance(each, Words)), None)


def is_dictionary(kind: Any) -> bool:
    """Whether an annotation is `dict` or `Mapping`, with or without its arguments."""
    return (get_origin(kind) or kind) in (dict, Mapping)


def type_name(kind: Any) -> str:
    """Name an annotation in words for help and errors."""
    choices = choices_of(kind)
    if len(choices) > 1:
        return " or ".join(type_name(choice) for choice in choices)
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(_written(word) for word in get_args(kind))
    if (registered := words_in(kind)) is not None:
        return f"one of {', '.join(registered.words())}, or {registered.otherwise}"
    if get_origin(kind) is tuple:
        parts = get_args(kind)
        if len(parts) == 2 and parts[1] is Ellipsis:
            return f"a list, each {type_name(parts[0])}"
        return f"a list of {len(parts)} ({', '.join(type_name(part) for part in parts)})"
    if is_dictionary(kind):
        return 'names with values, such as {"name": 1}'
    if dataclass_in(kind):
        return "a group"
    return "any value" if kind is Any else _NAMES[kind]


def build(cls: type, values: Any, where: str) -> Any:
    """Make a dataclass from a JSON object; `where` is its dotted name, empty for the outermost."""
    if not isinstance(values, Mapping):
        raise _refusal(where or cls.__name__, values, "an object with named values")
    kinds = field_types(cls)
    for name in values:
        if name not in kinds:
            full = _join(where, str(name))
            raise InputError(f"unknown key {full!r}{did_you_mean(full, [_join(where, known) for known in kinds])}")
    for field in dataclasses.fields(cls):
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and field.init and field.name not in values:
            wanted = type_name(kinds[field.name])
            raise InputError(f"the key {_join(where, field.name)!r} is missing; expected {wanted}")
    read = {name: read_value(kinds[name], value, _join(where, name)) for name, value in values.items()}
    try:
        return cls(**read)
    except ValueError as error:
        raise InputError(f"{where}: {error}" if where else str(error)) from error


def read_value(kind: Any, value: Any, where: str) -> Any:
    """Turn a JSON value into what the annotation asks for.

    Raises:
        InputError: if it is something else, naming `where`.
        TypeError: if the annotation is none that a configuration may hold.
    """
    choices = choices_of(kind)
    if len(choices) > 1:
        return _read_choice(kind, choices, value, where)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return build(kind, value, where)
    if get_origin(kind) is Literal:
        return _read_word(get_args(kind), value, where)
    if (registered := words_in(kind)) is not None:
        return _read_registered(registered, value, where)
    if get_origin(kind) is tuple:
        return _read_tuple(kind, value, where)
    if is_dictionary(kind):
        if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            raise _refusal(where, value, type_name(kind))
        item = (*get_args(kind), Any, Any)[1]
        return {name: read_value(item, part, _join(where, name)) for name, part in value.items()}
    if kind is Any:
        if type(value) is int:
            _check_size(value, "a number", where)
        return value
    if kind not in _NAMES:
        raise TypeError(f"{where} is annotated {kind}; a configuration cannot hold that")
    return _read_scalar(kind, value, where)


def parse_text(kind: Any, text: str, where: str) -> Any:
    """Turn a word of the command line into a JSON value that suits the annotation.

    The result still goes through `read_value`, which says what is wrong with it.
    """
    choices = choices_of(kind)
    words = [word for choice in choices if get_origin(choice) is Literal for word in get_args(choice)]
    for word in words:
        if text == _written(word):
            return word
    if type(None) in choices and text.lower() in _NOTHING:
        return None
    for choice in choices:
        if get_origin(choice) is tuple and not text.startswith("["):
            item, *more = get_args(choice)
            items = [item] if Ellipsis in more else [item, *more]
            parts = [part.strip() for part in text.split(",")] if text else []
            return [parse_text(items[min(i, len(items) - 1)], part, where) for i, part in enumerate(parts)]
    if all(choice in (str, type(None)) or get_origin(choice) in (Literal, Annotated) for choice in choices):
        return text
    if bool in choices or kind is Any:
        truth = _TRUTH.get(text.lower())
        if truth is not None:
            return truth
    return _parse_number_or_json(text, whole=int in choices)


def _parse_number_or_json(text: str, *, whole: bool) -> Any:
    try:
        number = float(text)
    except ValueError:
        try:
            return parse_json(text)
        except ValueError:
            return text
    try:
        return int(text)
    except ValueError:
        # People write 1e5 for a hundred thousand steps.
        return int(number) if whole and math.isfinite(number) and number == int(number) else number


def _read_choice(kind: Any, choices: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in choices:
        return None
    others = [choice for choice in choices if choice is not type(None)]
    if len(others) == 1 and others[0] not in _NAMES:
        return read_value(others[0], value, where)
    # The exact type first: 1 stays a whole number where both kinds of number may stand.
    for choice in sorted(others, key=lambda choice: choice is not type(value)):
        try:
            return read_value(choice, value, where)
        except InputError:
            continue
    raise _refusal(where, value, type_name(kind))


def _read_word(words: tuple[Any, ...], value: Any, where: str) -> Any:
    for word in words:
        if word == value and type(word) is type(value):
            return word
    wanted = ", ".join(_written(word) for word in words)
    raise InputError(f"{where} is {value!r}; expected one of {wanted}{did_you_mean(str(value), map(_written, words))}")


def _read_registered(registered: Words, value: Any, where: str) -> str:
    if isinstance(value, str) and registered.accepts(value):
        return value
    words = registered.words()
    wanted = f"{', '.join(words)}, or {registered.otherwise}"
    raise InputError(f"{where} is {value!r}; expected one of {wanted}{did_you_mean(str(value), words)}")


def _read_tuple(kind: Any, value: Any, where: str) -> tuple[Any, ...]:
    items = get_args(kind)
    if not isinstance(value, list | tuple):
        raise _refusal(where, value, type_name(kind))
    if items[-1] is Ellipsis:
        items = (items[0],) * len(value)
    if len(items) != len(value):
        raise InputError(f"{where} has {len(value)} values; expected {len(items)}")
    return tuple(
        read_value(item, part, f"{where}[{i}]") for i, (item, part) in enumerate(zip(items, value, strict=True))
    )


def _read_scalar(kind: type, value: Any, where: str) -> Any:
    if type(value) is int:
        _check_size(value, _NAMES[kind], where)
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        raise _refusal(where, value, _NAMES[kind])
    if isinstance(value, float) and not math.isfinite(value):
        raise _refusal(where, value, "a finite number")
    return value


def _check_size(value: int, wanted: str, where: str) -> None:
    """Refuse a whole number that is too large to become a float, or the size of a tensor."""
    if not -(2**63) <= value < 2**63:
        raise _refusal(where, value, f"{wanted} that 64 bits can hold")


def _written(word: Any) -> str:
    """Write a `Literal` word as it stands on the command line."""
    return str(word).lower() if word is None or isinstance(word, bool) else str(word)


def _join(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _refusal(where: str, value: Any, wanted: str) -> InputError:
    shown = repr(value)
    if len(shown) > _LONGEST_SHOWN:
        shown = f"{shown[:_LONGEST_SHOWN]}..."
    return InputError(f"{where} is {shown}; expected {wanted}")
