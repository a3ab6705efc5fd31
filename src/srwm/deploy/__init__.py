"""Trained models for other programs: one step with an explicit state, as a file of `torch.export` or of ONNX.

The file holds plain operators only, and runs where srwm is not installed.
"""

from .check import TOLERANCE, Difference, largest_difference
from .folder import check_free, load_step, write_folder
from .formats import FORMATS, Format
from .program import trace
from .steps import Step, step_of
from .watched import watched_step_of

__all__ = [
    "FORMATS",
    "TOLERANCE",
    "Difference",
    "Format",
    "Step",
    "check_free",
    "largest_difference",
    "load_step",
    "step_of",
    "trace",
    "watched_step_of",
    "write_folder",
]
