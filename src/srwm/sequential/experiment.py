"""Streams as one experiment among others."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from rich.table import Table

from srwm.data.sources import described_source
from srwm.errors import InputError
from srwm.runs.experiment import CardText, EvaluateOptions, Experiment
from srwm.runs.results import read_own, read_part
from srwm.supervised.config import MAY_CHANGE

from .bank import INVERTED, distinct_sources, load_bank
from .config import SequentialConfig
from .evaluation import StreamEvaluation, evaluate
from .inspection import inspect_stream
from .loading import KIND, build_model
from .metrics import charts, measures
from .model import StreamModel
from .recipes import RECIPES, Figures
from .tables import evaluation_table, result_table
from .trainer import train


class Sequential(Experiment):
    """Streams with delayed labels."""

    name = KIND
    hub_task = "image-classification"
    recipes = RECIPES
    may_change = MAY_CHANGE
    build = staticmethod(build_model)
    train = staticmethod(train)
    measures = staticmethod(measures)
    charts = staticmethod(charts)
    inspect = staticmethod(inspect_stream)

    def test(self, model: StreamModel, config: SequentialConfig, options: EvaluateOptions) -> dict[str, Any]:
        sets = 5 if options.sets is None else options.sets
        streams = 816 if options.episodes is None else options.episodes
        if min(sets, streams) < 1:
            raise InputError(f"{sets} sets of {streams} streams; expected at least one of each")
        bank = load_bank(config.stream, options.split or "test", options.data).to(model.mean.device)
        tested = evaluate(model, bank, sets=sets, streams=streams, seed=options.seed)
        return {"stream": dataclasses.asdict(config.stream), **dataclasses.asdict(tested)}

    def evaluation_table(self, name: str, config: SequentialConfig, tested: Mapping[str, Any]) -> Table:
        return evaluation_table(f"{name}: accuracy in %", read_own(StreamEvaluation, tested), _figures(config.recipe))

    def result_table(self, result: Mapping[str, Any]) -> Table:
        return result_table(result, _figures(result["recipe"]))

    def card_text(self, config: SequentialConfig, result: Mapping[str, Any]) -> CardText:
        stream, tested = config.stream, read_part(StreamEvaluation, result["test"])
        rows = {"data": "; ".join(_described(word) for word in distinct_sources(stream))}
        for order in tested.orders:
            for number, segment in enumerate(order.segments, start=1):
                interval = "" if segment.total.interval is None else f" ± {segment.total.interval:.2%} (95%)"
                where = f"test accuracy, {', '.join(order.sources)}: segment {number}, {segment.source}"
                rows[where] = f"{segment.total.mean:.2%}{interval}, {tested.streams:,} streams"
        return CardText(
            f"A network that learns from a stream of images while it runs, {stream.ways} classes at a time, each label "
            "one step late.",
            rows,
            "Tested on classes it was not trained on. It has seen no other kind of image, and streams of "
            f"{config.trained_length:,.0f} steps on average: on others, test it before you trust it.",
        )


def _figures(recipe: str) -> Figures:
    return RECIPES[recipe].figures if recipe in RECIPES else {}


def _described(word: str) -> str:
    plain = word.removesuffix(INVERTED)
    return described_source(plain) + ("" if word == plain else ", as negatives")


SEQUENTIAL = Sequential()
