"""How numba compiles what kernels are made of: into whatever calls it, and nowhere else.

By itself numba makes a program of its own of each function, with entries for Python and for C, before it copies it into
its callers: more than half of the time that a kernel took to compile went there. Here a part stays what numba made of
it, and is optimised once, within the kernel.
"""

import inspect
from collections.abc import Callable
from typing import Any

from numba import types
from numba.core import codegen, compiler
from numba.core.registry import cpu_target
from numba.core.typing.templates import fold_arguments

from .simd import intrinsic


class _Part(codegen.JITCodeLibrary):
    """The code of one part and of the parts it calls: linked, but neither optimised nor made into a program."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        """Link what this part calls."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True


def _flags() -> compiler.Flags:
    """What numba is told about each part."""
    flags = compiler.Flags()
    flags.error_model = "numpy"  # type: ignore[assignment, misc]
    for name in ("forceinline", "no_compile", "no_cpython_wrapper", "no_cfunc_wrapper", "nrt"):
        setattr(flags, name, True)
    return flags


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Have a function compiled into whatever calls it: a kernel, or another such function."""
    # Tests wrap functions to check their arguments; numba wants the function itself.
    function = inspect.unwrap(function)
    signature = inspect.signature(function)

    def define(typing_context: Any, *arguments: Any) -> Any:
        context = cpu_target.target_context
        folded = fold_arguments(
            signature,
            arguments,
            {},
            lambda index, parameter, kind: kind,
            lambda index, parameter, default: types.Omitted(default),
            lambda index, parameter, kinds: types.StarArgTuple(kinds),
        )
        library = _Part(context.codegen(), function.__qualname__)
        part = compiler.compile_extra(typing_context, context, function, folded, None, _flags(), {}, library=library)

        def build(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
            context.active_code_library.add_linking_library(part.library)
            return context.call_internal(builder, part.fndesc, part.signature, arguments)

        return part.signature, build

    define = inspect.unwrap(define)
    first = inspect.Parameter("typing_context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    define.__signature__ = signature.replace(parameters=[first, *signature.parameters.values()])  # type: ignore[attr-defined]
    for name in ("__doc__", "__module__", "__name__", "__qualname__"):
        setattr(define, name, getattr(function, name))
    part: Callable[..., Any] = intrinsic(define)
    return part
