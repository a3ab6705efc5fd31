"""Configurations: frozen dataclasses, as JSON in the run folder and as `name=value` on the command line.

A dataclass is the single source. Its fields are the keys, their annotations say what may stand there, the text under a
field is its help, and `__post_init__` raises `ValueError` where values do not fit together.
"""

import ast
import dataclasses
import functools
import inspect
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from srwm.errors import InputError

from ._values import build, choices_of, dataclass_in, field_types, is_dictionary, parse_text, type_name
from .suggestions import did_you_mean

T = TypeVar("T")

REQUIRED = dataclasses.MISSING
"""Stands in the place of a default where a field has none."""


@dataclass(frozen=True)
class RecipeConfig:
    """What the configurations of all experiments begin with."""

    recipe: str = "custom"
    """Name of the recipe that this came from."""
    seed: int = 0
    """Seed of everything that is random: the weights, what is drawn, the dropout."""

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**62:
            raise ValueError(f"seed={self.seed}; expected 0 or more and less than 2**62")


@dataclass(frozen=True)
class Field:
    """One line of a help page."""

    name: str
    """Dotted name, as it stands before the `=` on the command line."""
    type: str
    """What may stand there, in words."""
    default: Any
    """Its value where none is given; `REQUIRED` if it must be given."""
    text: str
    """The text under the field in the source, on one line; empty if there is none."""


def to_json(config: Any) -> dict[str, Any]:
    """Turn a configuration into JSON values: tuples become lists, dataclasses become objects.

    Raises:
        InputError: if a number is not finite.
        TypeError: if a value is none that a configuration may hold.

    Example:
        >>> to_json(Optimizer(learning_rate=0.001, betas=(0.9, 0.999)))
        {'learning_rate': 0.001, 'betas': [0.9, 0.999]}
    """
    return {name: _to_json(getattr(config, name), name) for name in field_types(type(config))}


def from_json(cls: type[T], values: Mapping[str, Any]) -> T:
    """Make a configuration from JSON values.

    A key that is missing takes the field's default, so that a run of an earlier version, which did not know the field,
    still opens; a field without default must be there.

    Raises:
        InputError: if a key is unknown or missing, a value has the wrong type, or the dataclass refuses the values.
    """
    config: T = build(cls, values, "")
    return config


def override(config: T, assignments: Sequence[str]) -> T:
    """Change a configuration by assignments such as `model.hidden_size=128`.

    All are applied before the whole is checked, so that values which only fit together can be changed together. Words
    stand as they are, lists with commas (`seeds=1,2,3`), nothing as `none`, and whole numbers may be written `1e5`.
    Names inside a dictionary can be new: `model.memory_options.norm=input`.

    Raises:
        InputError: if a name is unknown or a value cannot stand there, with the nearest right one.
    """
    values = to_json(config)
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals or not name:
            raise InputError(f"{assignment!r} sets nothing; write name=value")
        _assign(type(config), values, name.strip(), text.strip())
    return from_json(type(config), values)


def with_parts(config: T, **parts: Any) -> T:
    """Change single values of the parts of a configuration: `with_parts(base, model={"memory": "lstm"})`."""
    found: Any = config
    changed = {name: dataclasses.replace(getattr(found, name), **values) for name, values in parts.items()}
    made: T = dataclasses.replace(found, **changed)
    return made


def describe(config: Any) -> list[Field]:
    """List every field that can be set, for a help page.

    Args:
        config: a dataclass, or an instance, whose values then stand as the defaults.

    Returns:
        The fields in order, those of inner dataclasses under their dotted names.
    """
    cls = config if isinstance(config, type) else type(config)
    fields = []
    for name, kind in field_types(cls).items():
        value = _default(cls, name) if isinstance(config, type) else getattr(config, name)
        inner = dataclass_in(kind)
        if inner:
            group = value if dataclasses.is_dataclass(value) else inner
            fields += [dataclasses.replace(field, name=f"{name}.{field.name}") for field in describe(group)]
        else:
            fields.append(Field(name, type_name(kind), value, field_texts(cls).get(name, "")))
    return fields


def _to_json(value: Any, where: str) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: _to_json(getattr(value, name), f"{where}.{name}") for name in field_types(type(value))}
    if isinstance(value, Mapping):
        return {str(name): _to_json(part, f"{where}.{name}") for name, part in value.items()}
    if isinstance(value, tuple | list):
        return [_to_json(part, f"{where}[{i}]") for i, part in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{where} is {value}; expected a finite number")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{where} is a {type(value).__name__}; a configuration cannot hold that")


def _assign(cls: type, values: dict[str, Any], name: str, text: str) -> None:
    """Set one dotted name in the JSON values of `cls`."""
    first, *rest = name.split(".")
    known = _names(cls)
    while True:
        kind = field_types(cls).get(first)
        if kind is None:
            raise InputError(f"unknown name {name!r}{did_you_mean(name, known)}")
        inner = dataclass_in(kind)
        if inner is None or not rest:
            break
        cls = inner
        if values.get(first) is None:
            values[first] = {}
        values = values[first]
        first, *rest = rest
    dictionary = next((choice for choice in choices_of(kind) if is_dictionary(choice)), None)
    if inner is not None and not (type(None) in choices_of(kind) and text.lower() == "none"):
        names = ", ".join(f"{name}.{field}" for field in field_types(inner))
        raise InputError(f"{name!r} is a group of values; set one of {names}")
    if not rest:
        values[first] = parse_text(kind, text, name)
    elif dictionary is not None and len(rest) == 1:
        item = (*getattr(dictionary, "__args__", ()), Any, Any)[1]
        values[first] = {**(values.get(first) or {}), rest[0]: parse_text(item, text, name)}
    else:
        raise InputError(f"unknown name {name!r}{did_you_mean(name, known)}")


def _names(cls: type) -> list[str]:
    """List the dotted names of all fields."""
    names = []
    for name, kind in field_types(cls).items():
        inner = dataclass_in(kind)
        names += [f"{name}.{part}" for part in _names(inner)] if inner else [name]
    return names


def _default(cls: type, name: str) -> Any:
    field = cls.__dataclass_fields__[name]  # type: ignore[attr-defined]
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


@functools.cache
def field_texts(cls: type) -> dict[str, str]:
    """Find the text under each field in the source of a dataclass and of those it inherits from."""
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not dataclasses.is_dataclass(base):
            continue
        try:
            source = inspect.getsource(base)
        except OSError:  # Made without a file, in an interactive session: there is no text to find.
            continue
        (definition,) = ast.parse(textwrap.dedent(source)).body
        assert isinstance(definition, ast.ClassDef)
        for field, below in zip(definition.body, definition.body[1:], strict=False):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    texts[name] = " ".join(text.split())
    return texts


def at_least(least: int, **values: int | float) -> None:
    """Refuse values of a configuration that are below a limit."""
    for name, value in values.items():
        if value < least:
            raise ValueError(f"{name}={value}; expected at least {least}")


def below_one(**values: float) -> None:
    """Refuse values of a configuration that are no shares below 1."""
    for name, value in values.items():
        if not 0 <= value < 1:
            raise ValueError(f"{name}={value}; expected 0 or more and less than 1")


def positive_or_none(**values: float | None) -> None:
    """Refuse values of a configuration that are there and not above 0."""
    for name, value in values.items():
        if value is not None and value <= 0:
            raise ValueError(f"{name}={value}; expected more than 0, or none")
