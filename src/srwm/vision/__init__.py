"""The networks that turn images into features."""

from .batch_norm import BatchNorm
from .conv4 import Conv4
from .norm_pool import norm_pool_relu
from .res12 import DropoutVariant, Res12

__all__ = ["BatchNorm", "Conv4", "DropoutVariant", "Res12", "norm_pool_relu"]
