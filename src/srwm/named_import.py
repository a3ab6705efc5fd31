"""Classes of others by name: `package.module:Class` in a recipe, a configuration or on the command line."""

import importlib
import sys
from typing import Any

from srwm.errors import InputError

__all__ = ["import_named", "is_import_name"]


def is_import_name(word: str) -> bool:
    """Whether a word has the form `package.module:Class`."""
    module, colon, name = word.partition(":")
    return bool(colon) and name.isidentifier() and all(part.isidentifier() for part in module.split("."))


def import_named(word: str, *, said: str, holds: str) -> Any:
    """Import what a word names, as Python imports it.

    Args:
        word: `package.module:Class`.
        said: how a sentence names the word, such as `memory='own:Layer'`.
        holds: what such a module holds, for the sentence.

    Raises:
        InputError: if there is no such module or class.
    """
    module_name, _, name = word.partition(":")
    # Importing some of its modules does things, such as opening windows; none of them has what is looked for.
    if module_name.partition(".")[0] in sys.stdlib_module_names:
        raise InputError(f"{said}: {module_name} is of Python's standard library; expected a module of {holds}")
    try:
        module = importlib.import_module(module_name)
    except (ImportError, SyntaxError) as error:
        raise InputError(
            f"{said}: {module_name} cannot be imported ({error}); install it, or name its folder in PYTHONPATH"
        ) from error
    if not hasattr(module, name):
        raise InputError(f"{said}: {module_name} has no {name}")
    return getattr(module, name)
