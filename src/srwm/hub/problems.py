"""What goes wrong between here and the Hub, as sentences without a word of the server's, which may quote a token."""

import contextlib
from collections.abc import Iterator
from types import ModuleType
from typing import Literal

from srwm.errors import InputError, RunError

from .address import HubAddress

__all__ = ["UnreachableError", "answers_read", "as_sentences", "require_package"]

_LOG_IN = "log in with `hf auth login`, or set HF_TOKEN"


class UnreachableError(RunError):
    """The Hub gave no answer, or none that could be used; what was downloaded before may serve."""


def require_package(what: str) -> ModuleType:
    """Import `huggingface_hub`.

    Raises:
        InputError: if it is not installed.
    """
    try:
        import huggingface_hub
    except ModuleNotFoundError as error:
        raise InputError(f"{what} needs the package {error.name}; run `pip install 'srwm[hub]'`") from error
    return huggingface_hub


@contextlib.contextmanager
def as_sentences(address: HubAddress, doing: Literal["read", "write"]) -> Iterator[None]:
    """Make sentences of what `huggingface_hub` and the connection below it raise.

    Raises:
        InputError: there is no such repository or revision, or it may not be read or written.
        UnreachableError: there was no answer.
        RunError: the server would not do it, or a file could not be written.
    """
    from huggingface_hub import constants, errors
    from huggingface_hub.utils import httpx  # type: ignore[attr-defined]

    name, place = address.repository, constants.ENDPOINT
    try:
        yield
    except (InputError, RunError):
        raise
    except errors.GatedRepoError as error:
        raise InputError(
            f"{name} is gated: accept its conditions at {place}/{name}, then {_LOG_IN} to a token that may {doing} it"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise InputError(f"{name} has no revision {address.revision!r} on {place}") from error
    except errors.HfHubHTTPError as error:
        raise _of_status(error.response.status_code, name, place, doing) from error
    except errors.OfflineModeIsEnabled as error:
        raise UnreachableError(
            f"{place} cannot be asked for {name}: HF_HUB_OFFLINE says to stay offline; unset it to go on"
        ) from error
    except (errors.LocalEntryNotFoundError, errors.FileMetadataError, httpx.HTTPError, httpx.InvalidURL) as error:
        raise UnreachableError(
            f"{place} cannot be reached for {name} ({type(error).__name__}); try again when you are online"
        ) from error
    except OSError as error:
        # The package has no class of its own for a file that ended too early, and gives it no number.
        if error.errno is None:
            raise UnreachableError(
                f"the download of {name} was cut off, and nothing was kept of that file; try again"
            ) from error
        raise RunError(f"{error.filename or name} could not be written: {error.strerror}") from error
    except RuntimeError as error:
        if doing != "write" or error.__cause__ is None:
            raise
        # As the package says it of large files, whatever went wrong.
        raise RunError(
            f"the upload to {name} failed ({type(error.__cause__).__name__}); run the command again"
        ) from error


@contextlib.contextmanager
def answers_read(address: HubAddress) -> Iterator[None]:
    """Make a sentence of what `huggingface_hub` raises for answers that are no JSON, or not the JSON of a Hub.

    Raises:
        UnreachableError: for such an answer.
    """
    from huggingface_hub import constants

    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError | OSError):
            raise
        raise UnreachableError(
            f"{constants.ENDPOINT} gave no answer of a Hub for {address.repository} ({type(error).__name__}); a login "
            "page may stand in between, or HF_ENDPOINT may lead elsewhere"
        ) from error


def _of_status(status: int, name: str, place: str, doing: str) -> InputError | RunError:
    """Say what an answer with an error's number means."""
    if status == 401 and doing == "write":
        return InputError(f"{place} does not know who writes to {name}: {_LOG_IN} to a token that may write")
    if status in (401, 404):
        return InputError(
            f"there is no repository {name} on {place}, or it is private; for a private one, {_LOG_IN} to a token that "
            f"may {doing} it"
        )
    if status == 403:
        return InputError(f"the token in use may not {doing} {name} on {place}; {_LOG_IN} to one that may")
    if status in (408, 425, 429) or status >= 500:
        return UnreachableError(f"{place} answered {status} for {name}; try again later")
    return RunError(f"{place} answered {status} for {name}, and would not {doing} it")
