"""Calls of Triton kernels, without what Triton works out anew at every call.

Triton looks at the type, the alignment and the value of each argument, and puts a key together from all of them under
which it finds the compiled kernel: with fifty arguments, this takes longer than a short sequence does on the GPU. What
can differ between calls of one of our kernels with the same constants is little: dtypes, flags, the device. Alignment
is looked at, too: a compiled kernel reads its memory 16 bytes at a time.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor

ALIGNMENT = 16
"""Bytes; what Triton calls divisible, and what PyTorch's allocator gives."""


class Launch(NamedTuple):
    """How threads share the tiles of one program; measured on an H200, see docs/benchmarks."""

    lanes: int
    """Threads that share a column."""
    warps: int
    """Warps along the columns. Few are best: every exchange between warps waits for all of them."""
    block: int = 0
    """Columns of one program, where they are spread over several."""


class Launcher:
    """A Triton kernel with the compiler's constants that are the same at every call.

    Its integer arguments must not be specialised (`do_not_specialize`), and its flags come last in the signature or by
    name anywhere behind the arguments.

    Args:
        kernel: what `triton.jit` made.
        constants: by name; also the options of a launch, such as `num_warps`.
    """

    def __init__(self, kernel: Any, constants: dict[str, Any]) -> None:
        self.kernel, self.constants = kernel, constants
        self._compiled: dict[tuple[Any, ...], tuple[Any, list[Any]]] = {}

    def __call__(self, grid: tuple[int, int], args: Sequence[Tensor | int], **flags: bool) -> None:
        """Run it on the current device.

        Args:
            grid: programs along both axes.
            args: all arguments before the constants, in their order.
            flags: further constants.
        """
        tensors = [each for each in args if isinstance(each, Tensor)]
        if any(each.data_ptr() % ALIGNMENT for each in tensors):
            self.kernel[grid](*args, **flags, **self.constants)
            return
        key = (tensors[0].device, *[each.dtype for each in tensors], *flags.values())
        found = self._compiled.get(key)
        if found is not None:
            compiled, constants = found
            compiled[(*grid, 1)](*args, *constants)
            return
        compiled = self.kernel[grid](*args, **flags, **self.constants)
        # The interpreter compiles nothing.
        if compiled is not None:
            given = {**flags, **self.constants}
            self._compiled[key] = compiled, [given[name] for name in self.kernel.arg_names[len(args) :]]
