"""The networks that turn images into features."""

from .batch_norm import BatchNorm
from .conv4 import Conv4
from .impala import Impala
from .max_pool import max_pool_bias
from .norm_pool import norm_pool_relu
from .res12 import DropoutVariant, Res12

__all__ = ["BatchNorm", "Conv4", "DropoutVariant", "Impala", "Res12", "max_pool_bias", "norm_pool_relu"]
