"""How much memory this machine has: what cannot fit is refused before the system ends the process."""

import os


def memory_bytes() -> int | None:
    """Say how much memory this machine has; None where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no such call.
        return None
