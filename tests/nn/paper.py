"""The layers as the paper writes them: column vectors, one head and one row at a time, plain loops in NumPy.

Nothing here is shared with the library, so agreement means something.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def softmax(z: Array) -> Array:
    e = np.exp(z - z.max())
    return e / e.sum()


def sigmoid(z: Array) -> Array:
    return 1 / (1 + np.exp(-z))


def srwm(xs: Array, w: Array, out: int, *, softmax_input: bool = False) -> tuple[Array, Array]:
    """Eqs. 5-8 for a sequence [t, d] and a matrix [out + 2 d + rates, d]; returns the ys and the last matrix."""
    d = xs.shape[1]
    w = w.copy()
    ys = []
    for x in xs:
        result = w @ (softmax(x) if softmax_input else x)
        y, q, k, beta = np.split(result, [out, out + d, out + 2 * d])
        v_bar = w @ softmax(k)
        v = w @ softmax(q)
        rates = sigmoid(beta)
        if len(rates) == 4:
            rates = np.repeat(rates, [out, d, d, 4])
        w = w + np.outer(rates * (v - v_bar), softmax(k))
        ys.append(y)
    return np.array(ys), w


def deltanet(qkvb: Array) -> tuple[Array, Array]:
    """Eqs. 2-4 for a sequence [t, 3 d + 1] of q, k, v and beta; returns the ys and the last fast matrix [d, d]."""
    d = (qkvb.shape[1] - 1) // 3
    w = np.zeros((d, d))
    ys = []
    for q, k, v, beta in (np.split(row, [d, 2 * d, 3 * d]) for row in qkvb):
        v_bar = w @ softmax(k)
        w = w + sigmoid(beta) * np.outer(v - v_bar, softmax(k))
        ys.append(w @ softmax(q))
    return np.array(ys), w


def layer_norm(h: Array) -> Array:
    """LayerNorm over the last axis, with its initial weight and bias."""
    centred = h - h.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
