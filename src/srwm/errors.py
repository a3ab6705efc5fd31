"""The two errors that a user is meant to read: the command line prints their sentence and no stack trace."""


class InputError(ValueError):
    """What was asked for cannot be done as asked: a missing file, a wrong value, too few images (exit status 2)."""


class RunError(RuntimeError):
    """What was asked for went wrong on the way: a full disk, a cut download, NaN in the loss (exit status 1)."""
