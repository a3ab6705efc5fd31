"""Self-referential weight matrices: networks that modify their own weights while they run.

The rooms: `srwm.ops` holds the recurrences as functions of tensors, `srwm.nn` the layers built on them. Import what you
use, for example `from srwm.nn import SelfReferentialLinear`; kernels and plots load only when they are needed.

Paper: "A Modern Self-Referential Weight Matrix That Learns to Modify Itself", Irie, Schlag, Csordás and Schmidhuber,
ICML 2022.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
