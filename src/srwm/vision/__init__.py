"""The networks that turn images into features."""

from .batch_norm import BatchNorm
from .conv4 import Conv4, Norm
from .impala import Impala
from .instance_norm import InstanceNorm, instance_norm_pool_relu
from .max_pool import max_pool_bias
from .norm_pool import norm_pool_relu
from .res12 import DropoutVariant, Res12

__all__ = [
    "BatchNorm",
    "Conv4",
    "DropoutVariant",
    "Impala",
    "InstanceNorm",
    "Norm",
    "Res12",
    "instance_norm_pool_relu",
    "max_pool_bias",
    "norm_pool_relu",
]
