"""The card of a model as the Hub shows it: what it can search by in YAML, the card, and how to load it."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from .address import PREFIX

__all__ = ["HubMeasure", "hub_card"]

_LICENCES = {
    "afl-3.0", "agpl-3.0", "apache-2.0", "artistic-2.0", "bsd-2-clause", "bsd-3-clause", "bsl-1.0", "cc-by-2.0",
    "cc-by-3.0", "cc-by-4.0", "cc-by-nc-4.0", "cc-by-nc-nd-4.0", "cc-by-nc-sa-4.0", "cc-by-nd-4.0", "cc-by-sa-3.0",
    "cc-by-sa-4.0", "cc0-1.0", "ecl-2.0", "epl-2.0", "eupl-1.2", "gpl-2.0", "gpl-3.0", "isc", "lgpl-2.1", "lgpl-3.0",
    "mit", "mpl-2.0", "odbl", "osl-3.0", "pddl", "unlicense", "wtfpl", "zlib",
}  # fmt: skip
"""Licences by the names that the Hub has for them."""
_HEADING = "## How to load it"


@runtime_checkable
class HubMeasure(Protocol):
    """What a test measured, as the charts of a run have it."""

    @property
    def name(self) -> str:
        """What was measured."""
        ...

    @property
    def value(self) -> float:
        """The number."""
        ...

    @property
    def percent(self) -> bool:
        """Whether it is a share that is shown in percent."""
        ...


def hub_card(
    card: str,
    repository: str,
    *,
    licence: str,
    kind: str,
    recipe: str,
    task: str | None,
    memory: str | None,
    measures: Sequence[HubMeasure],
) -> str:
    """Write the card of a model for a repository of the Hub.

    Args:
        card: its `README.md`, with or without what this function adds.
        repository: `owner/name`.
        licence: of the weights.
        kind: name of the experiment that it comes from.
        recipe: name of the recipe.
        task: the Hub's word for what it does (`pipeline_tag`); None if it has none.
        memory: name of the memory, if it has one.
        measures: what a test measured.
    """
    from huggingface_hub import EvalResult, ModelCardData

    results = [
        EvalResult(
            task_type=task or kind,
            dataset_type=kind,
            dataset_name=recipe,
            metric_type="accuracy" if each.percent else "value",
            metric_name=each.name,
            metric_value=round(each.value * (100 if each.percent else 1), 4),
        )
        for each in measures
    ]
    word = licence.strip().lower()
    data = ModelCardData(
        license=word if word in _LICENCES else "other",
        license_name=None if word in _LICENCES else licence.strip(),
        library_name="srwm",
        pipeline_tag=task,
        tags=["self-referential-weight-matrix", "fast-weights", "meta-learning", kind, *([memory] if memory else [])],
        model_name=recipe if results else None,
        eval_results=results or None,
    )
    return f"---\n{data.to_yaml()}\n---\n\n{_without_additions(card)}\n\n{_section(repository)}"


def _section(repository: str) -> str:
    return f"""{_HEADING}

With `pip install 'srwm[hub]'`:

```python
import srwm

model = srwm.load("{PREFIX}{repository}")
```

`srwm evaluate {PREFIX}{repository}` tests it again. Nothing here is a pickle, and to load it runs no code of this
repository.
"""


def _without_additions(card: str) -> str:
    """The card as `srwm export` writes it, of one that may come from the Hub."""
    if card.startswith("---\n") and "\n---\n" in card[3:]:
        card = card[3:].partition("\n---\n")[2]
    return card.partition(f"\n{_HEADING}\n")[0].strip()
