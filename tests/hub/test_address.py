"""Addresses of models on the Hub."""

from pathlib import Path

import pytest

import srwm.hub
from srwm.errors import InputError
from srwm.hub import HubAddress, is_hub_address, parse_address

COMMIT, DIGEST = "0123456789" * 4, "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("hf:me/my-model", HubAddress("me/my-model")),
        ("hf:me/my_model.v2@next/try", HubAddress("me/my_model.v2", "next/try")),
        (f"hf:me/x@{COMMIT}", HubAddress("me/x", COMMIT)),
        ("hf:a/" + 94 * "b", HubAddress("a/" + 94 * "b")),
        (f"hf:me/x#sha256={DIGEST}", HubAddress("me/x", "main", DIGEST)),
        (f"hf:me/x@{COMMIT}#sha256={DIGEST}", HubAddress("me/x", COMMIT, DIGEST)),
    ],
)
def test_an_address_is_read_and_written_alike(text, address):
    assert parse_address(text) == address
    assert str(address) == text
    assert parse_address(Path(text)) == address


@pytest.mark.parametrize(
    "text",
    [
        "hf:",
        "hf:model",
        "hf:a/b/c",
        "hf:../b",
        "hf:a/..",
        "hf:a/b--c",
        "hf:a/b@",
        "hf:a/b@../../x",
        "hf:a/b@/x",
        "hf:a/b@x/../y",
        "hf:a/b c",
        "hf:a/b?x=1",
        "hf:a/b#sha256=abc",
        f"hf:a/b#sha256={DIGEST.upper()}",
        f"hf:a/b#md5={DIGEST}",
        "hf:a/" + 95 * "b",
        "hf:ä/b",
        "hf:a/b\n",
        "me/model",
    ],
)
def test_what_is_no_address_gets_a_sentence(text):
    with pytest.raises(InputError, match="is no address of a model; expected hf:owner/name, hf:owner/name@REVISION or"):
        parse_address(text)


def test_public_names_are_pinned():
    assert sorted(srwm.hub.__all__) == [
        "HubAddress",
        "PREFIX",
        "fetch_files",
        "hub_card",
        "is_hub_address",
        "parse_address",
        "push_files",
    ]


def test_only_the_hash_of_a_commit_is_pinned():
    assert parse_address(f"hf:me/x@{COMMIT}").is_pinned
    assert not parse_address("hf:me/x@0123456").is_pinned
    assert not parse_address(f"hf:me/x#sha256={DIGEST}").is_pinned


def test_names_of_folders_and_models_are_no_addresses():
    assert is_hub_address("hf:me/x")
    assert not any(is_hub_address(name) for name in ("omniglot-1shot", "runs/hf:me", Path("me/x")))
