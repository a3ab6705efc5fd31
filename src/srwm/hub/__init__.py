"""Models by name in repositories of the Hugging Face Hub, or of a server that speaks its API (`HF_ENDPOINT`).

`srwm.load("hf:owner/name")` comes here, and so does every command that takes a model; `srwm push` writes. Only files
on a list are downloaded, and each is compared with the size and the digest that its commit has on record.
Needs `pip install 'srwm[hub]'`.
"""

from .address import PREFIX, HubAddress, is_hub_address, parse_address
from .card import hub_card
from .download import fetch_files
from .push import push_files

__all__ = ["PREFIX", "HubAddress", "fetch_files", "hub_card", "is_hub_address", "parse_address", "push_files"]
