"""The trained models that come with the package, and how a model is found by its name."""

from pathlib import Path

from srwm.errors import InputError
from srwm.hub import fetch_files, is_hub_address, parse_address

from .atomic import unreadable_as_sentence
from .model_files import CARD_FILE, MODEL_FILES, kind_of
from .suggestions import did_you_mean

__all__ = ["SHIPPED", "find_model", "shipped_models"]

SHIPPED = Path(__file__).parent.parent / "models"
"""Where the models lie that come with the package."""


def shipped_models(kind: str | None = None) -> list[str]:
    """Name the models that come with the package, all of them or those of a kind."""
    names = sorted(path.parent.name for path in SHIPPED.glob("*/model.json"))
    return [name for name in names if kind in (None, kind_of(SHIPPED / name))]


def find_model(name: str | Path, kind: str | None = None) -> Path:
    """Find the folder of a model by its path or, where there is no model, by its name in the package.

    Args:
        name: of the model, the path of its folder, or its address on the Hub, `hf:owner/name`; it is then downloaded.
        kind: that a model of the package must be of; None for any. What lies at a path is for its reader to judge.

    Raises:
        InputError: if there is no such folder, or the model in the package is of another kind.
        RunError: if it cannot be downloaded.
    """
    if is_hub_address(name):
        return fetch_files(parse_address(name), MODEL_FILES, CARD_FILE)
    path, shipped = Path(name), SHIPPED / name
    with unreadable_as_sentence(path):
        is_there = any((path / file).is_file() for file in ("model.json", "config.json"))
        if not is_there and (shipped / "model.json").is_file():
            _check_kind(str(name), kind)
            return shipped
        exists = path.exists()
    if not exists:
        known = shipped_models(kind)
        come = f"with the package come {', '.join(known)}, and the" if known else "the"
        raise InputError(
            f"there is no model {str(name)!r}{did_you_mean(str(name), known)}; {come} folder of a run can be named by "
            "its path"
        )
    return path


def _check_kind(name: str, kind: str | None) -> None:
    found = kind_of(SHIPPED / name)
    if kind not in (None, found):
        known = ", ".join(shipped_models(kind))
        come = f"; with the package come {known}" if known else ""
        raise InputError(f"the model {name!r} is of kind {found!r}; expected one of kind {kind!r}{come}")
