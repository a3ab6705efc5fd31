import os
import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from srwm.data.numpy_pickle import parse_numpy_pickle, read_numpy_pickle
from srwm.errors import InputError

PROTOCOLS = range(6)
CACHE = {
    "image_data": np.arange(48, dtype=np.uint8).reshape(2, 2, 4, 3),
    "class_dict": {"n01": [0, 1], "n02": np.array([1, 2]), "n03": np.int64(4)},
}
DATA = {
    **CACHE,
    b"bytes": [1, -5, 70_000, 2**40, -(2**70), 1.5, None, True, False, "é\n\\", b"\xff\x00'\n\\\"", b"", ""],
    "fortran": np.asfortranarray(np.arange(6, dtype=">f4").reshape(2, 3)),
    "empty": np.zeros((0, 3)),
    "texts": np.array(["a", "bcd"]),
    "old texts": np.array([b"ab"]),
    "truths": np.array([True, False]),
    "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)],
    7: [[], {}, [{}]],
}
DATA["shared"] = [DATA["fortran"], DATA["fortran"], DATA["tuples"]]


def equal(one, other):
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(equal, one, other))
    return one == other and (type(one) is type(other) or isinstance(one, np.generic))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_plain_data_and_arrays_come_back(protocol):
    assert equal(DATA, parse_numpy_pickle(pickle.dumps(DATA, protocol), "x"))


@pytest.mark.parametrize("core", [b"numpy.core", b"numpy._core"])
def test_arrays_of_numpy_1_and_2_come_back(core):
    data = pickle.dumps(CACHE["image_data"], 2)
    for known in (b"numpy.core.", b"numpy._core."):
        data = data.replace(known, core + b".")
    assert np.array_equal(parse_numpy_pickle(data, "x"), CACHE["image_data"])


# {'data': numpy.array([[97, 98, 99], [100, 101, 102]], 'u1'), 'fine_labels': [1, 2]}, as Python 2 writes it.
PYTHON_2 = (
    b"\x80\x02}q\x01(U\x04dataq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\nq\x04K\x00\x85U\x01b\x87Rq"
    b"\x05(K\x01K\x02K\x03\x86cnumpy\ndtype\nq\x06U\x02u1K\x00K\x01\x87Rq\x07(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff"
    b"\xff\xffK\x00tb\x89U\x06abcdeftbU\x0bfine_labelsq\x08]q\x09(K\x01K\x02eu."
)
# The same array, as Python 2's protocol 0 writes it.
PYTHON_2_TEXT = (
    b"cnumpy.core.multiarray\n_reconstruct\np1\n(cnumpy\nndarray\np2\n(I0\ntS'b'\ntRp3\n(I1\n(I2\nI3\ntcnumpy\ndtype\np4\n"
    b"(S'u1'\nI0\nI1\ntRp5\n(I3\nS'|'\nNNNI-1\nI-1\nI0\ntbI00\nS'abc\\xff\\n\\''\ntb."
)


def test_what_python_2_wrote_comes_back_with_texts_as_bytes():
    found = parse_numpy_pickle(PYTHON_2, "x")
    assert sorted(found) == [b"data", b"fine_labels"]
    assert found[b"data"].tolist() == [[97, 98, 99], [100, 101, 102]]
    assert found[b"fine_labels"] == [1, 2]
    assert parse_numpy_pickle(PYTHON_2_TEXT, "x").tolist() == [[97, 98, 99], [255, 10, 39]]


class Call:
    """Pickles as a call of a function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


class Thing:
    def __init__(self):
        self.x = 1

    def __repr__(self):
        # Without its address: tests are named after it, and every process must find the same names.
        return "Thing()"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("function", "arguments", "name"),
    [
        (os.mkdir, (), "mkdir"),
        (eval, ("__import__('os').mkdir('{canary}')",), "eval"),
        (open, ("w",), "open"),
        (getattr, (np, "load"), "getattr"),
        (np.save, (np.zeros(1),), "save"),
    ],
)
def test_calls_are_refused_by_name_and_not_run(protocol, function, arguments, name, tmp_path):
    canary = str(tmp_path / "canary")
    arguments = tuple(x.format(canary=canary) if isinstance(x, str) else x for x in arguments)
    call = Call(function, *((canary,) if function is not eval else ()), *arguments)
    try:
        data = pickle.dumps({"image_data": call}, protocol)
    except TypeError:  # Modules cannot be pickled.
        data = b"c__builtin__\ngetattr\n(S'os'\nS'mkdir'\ntR."
    with pytest.raises(InputError, match=rf"evil\.pkl holds [a-z_.]*{name}"):
        parse_numpy_pickle(data, "evil.pkl")
    assert not os.path.exists(canary)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "value",
    [
        np.array([None]),
        np.array([Thing()]),
        np.zeros(2, [("a", "i4")]),
        np.array(1j),
        np.datetime64("2000"),
        Thing(),
        Thing,
        {1, 2},
        1j,
        {(1, 2): 3},
        np.ma.zeros(2),
        slice(1),
    ],
    ids=repr,
)
def test_other_values_are_refused(protocol, value):
    with pytest.raises(InputError, match="are read from a pickle"):
        parse_numpy_pickle(pickle.dumps([value], protocol), "x")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b".",
        b"(.",
        b"N",
        b"NN.",
        b"I1",
        b"a.",
        b"Na.",
        b"(NNu.",
        b"}(NNNu.",
        b"h\x00.",
        b"(q\x00.",
        b"cnumpy\nndarray\n.",
        b"cnumpy\ndtype\n(S'u1'\ntR.",
        b"cnumpy\ndtype\n(S'u1'\ntRp0\ng0\n.",
        b"cnumpy\ndtype\n)R.",
        b"c_codecs\nencode\n(Vx\nVrot13\ntR.",
        b"c__builtin__\nbytes\n(I1000000\ntR.",
        b"X\xff\xff\xff\xffa.",
        b"\x8e\xff\xff\xff\xff\xff\xff\xff\xff.",
        b"\x8b\xff\xff\xff\x7f.",
        b"T\xff\xff\xff\xff.",
        b"I" + b"9" * 5000 + b"\n.",
        b"S'\\q'\n.",
        b"S\n.",
        b"NNb.",
        b"\x80\x06N.",
        PYTHON_2[:-40] + b".",
        PYTHON_2.replace(b"U\x06abcdef", b"U\x05abcde"),
        PYTHON_2.replace(b"K\x02K\x03\x86", b"J\xff\xff\xff\xffK\x03\x86"),
    ],
)
def test_broken_programs_are_refused(data):
    with pytest.raises(InputError, match=r"^x "):
        parse_numpy_pickle(data, "x")


@pytest.mark.parametrize(
    "repeated",
    [
        b"h\x00h\x01h\x02\x86R",  # _codecs.encode(text, "latin1")
        b"h\x03h\x04h\x05\x86R",  # scalar(dtype, bytes)
    ],
)
def test_one_text_is_not_made_into_gigabytes(repeated):
    size = 100_000
    text = size.to_bytes(4, "little") + b"a" * size
    known = (
        b"c_codecs\nencode\nq\x000X" + text + b"q\x010X\x06\0\0\0latin1q\x020"
        b"cnumpy.core.multiarray\nscalar\nq\x030"
        b"cnumpy\ndtype\n(U\x07S%dI0\nI1\ntR(I3\nS'|'\nNNNI-1\nI-1\nI0\ntbq\x040T" % size + text + b"q\x050"
    )
    assert len(parse_numpy_pickle(known + repeated + b".", "x")) == size
    with pytest.raises(InputError, match=r"x is broken at byte .* its calls make more text than it holds"):
        parse_numpy_pickle(known + b"(" + repeated * 1000 + b"l.", "x")


def test_a_program_of_too_many_instructions_is_refused(monkeypatch):
    monkeypatch.setattr("srwm.data.numpy_pickle._MAX_INSTRUCTIONS", 1000)
    assert parse_numpy_pickle(b"(" + b"]" * 997 + b"l.", "x") == [[]] * 997
    with pytest.raises(InputError, match="x is broken at byte 1000: it has more than 1000 instructions"):
        parse_numpy_pickle(b"(" + b"]" * 998 + b"l.", "x")


def test_a_name_that_cannot_be_printed_is_shown_in_escapes():
    with pytest.raises(InputError, match=r"x holds 'os\.\\x1b\[2Jaaaa*\.\.\.'; only"):
        parse_numpy_pickle(b"cos\n\x1b[2J" + b"a" * 10_000 + b"\n.", "x")


def test_a_file_is_read_and_a_missing_or_empty_one_is_named(tmp_path):
    path = tmp_path / "a.pkl"
    with pytest.raises(InputError, match=r"a\.pkl does not exist"):
        read_numpy_pickle(path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match=r"pipe is a pipe; expected a file"):
        read_numpy_pickle(tmp_path / "pipe")
    path.write_bytes(b"")
    with pytest.raises(InputError, match=r"a\.pkl is empty"):
        read_numpy_pickle(path)
    path.write_bytes(pickle.dumps(CACHE, 2))
    assert equal(CACHE, read_numpy_pickle(path))
    path.write_bytes(pickle.dumps(CACHE, 2)[:-9])
    with pytest.raises(InputError, match=r"a\.pkl is broken at byte"):
        read_numpy_pickle(path)


@given(st.binary(max_size=60))
@settings(max_examples=300)
def test_random_bytes_are_read_or_refused(data):
    try:
        parse_numpy_pickle(data, "x")
    except InputError as error:
        assert str(error).startswith("x ")  # noqa: PT017


@given(
    protocol=st.sampled_from(PROTOCOLS),
    changes=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=3),
    cut=st.integers(0, 10**6) | st.none(),
)
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
def test_damaged_pickles_are_read_or_refused(protocol, changes, cut):
    data = bytearray(pickle.dumps(DATA, protocol))
    for place, byte in changes:
        data[place % len(data)] = byte
    try:
        parse_numpy_pickle(bytes(data[: cut % len(data) if cut is not None else None]), "x")
    except InputError as error:
        assert str(error).startswith("x ")  # noqa: PT017
