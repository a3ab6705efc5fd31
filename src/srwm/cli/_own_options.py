"""Options that belong to one experiment: taken from the dataclass of its options, and refused by the others."""

import argparse
import dataclasses
import typing
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from srwm.errors import InputError

from ._parser import Parser

T = TypeVar("T")


def add_own_options(parser: Parser, base: type, classes: Mapping[str, type]) -> None:
    """Add the options that experiments have beside those of all."""
    from srwm.runs.config import field_texts

    general = {field.name for field in dataclasses.fields(base)}
    found: dict[str, dict[str, Any]] = {}
    owners: dict[str, list[str]] = {}
    for experiment, cls in classes.items():
        for field in dataclasses.fields(cls):
            if field.name in general:
                continue
            text = f"{experiment}: {_begun_small(field_texts(cls)[field.name])}"
            if field.name in found:
                found[field.name]["help"] += f"; {text}"
            else:
                kinds = [each for each in typing.get_args(field.type) or (field.type,) if each is not type(None)]
                found[field.name] = {"dest": f"own_{field.name}", "help": text, **_reader(kinds[0])}
            owners.setdefault(field.name, []).append(experiment)
    for name, words in found.items():
        parser.add_argument(f"--{name.replace('_', '-')}", **words)
    parser.set_defaults(owners=owners)


def read_own_options(args: argparse.Namespace, cls: type[T], general: Mapping[str, Any], experiment: str) -> T:
    """Make the options of an experiment of what was given on the command line.

    Raises:
        InputError: if an option of another experiment was given, or one makes no sense.
    """
    given = {name.removeprefix("own_"): each for name, each in vars(args).items() if name.startswith("own_")}
    given = {name: each for name, each in given.items() if each is not None}
    known = {field.name for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for name in given:
        if name not in known:
            owners = " and ".join(args.owners[name])
            raise InputError(f"--{name.replace('_', '-')} is for {owners} models; {args.model} is of {experiment!r}")
    try:
        return cls(**general, **given)
    except ValueError as error:
        raise InputError(str(error)) from error


def _reader(kind: Any) -> dict[str, Any]:
    """How `argparse` reads a field of a type."""
    if kind is bool:
        return {"action": "store_const", "const": True}
    if typing.get_origin(kind) is Literal:
        return {"choices": typing.get_args(kind)}
    return {"type": kind}


def _begun_small(text: str) -> str:
    """A sentence as the end of a line of help."""
    text = text.removesuffix(".")
    return text[:1].lower() + text[1:]
