"""Configurations: to JSON and back, by assignments, and as help."""

import json
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srwm.errors import InputError
from srwm.runs.config import REQUIRED, describe, from_json, override, to_json


@dataclass(frozen=True)
class Model:
    """A part."""

    hidden_size: int = 8
    """Width of everything."""
    num_heads: int = 2
    """Heads; must divide
    `hidden_size`."""
    memory_options: dict[str, Any] = field(default_factory=dict)
    scales: dict[str, float] = field(default_factory=dict)

    def __post_init__(self):
        if self.num_heads < 1 or self.hidden_size % self.num_heads:
            raise ValueError(f"hidden_size={self.hidden_size} is not a multiple of num_heads={self.num_heads}")


@dataclass(frozen=True)
class Base:
    """What recipes share."""

    name: str
    """Name of the run."""


@dataclass(frozen=True)
class Recipe(Base):
    """The whole."""

    model: Model = field(default_factory=Model)
    schedule: Literal["constant", "noam", "none"] = "constant"
    learning_rate: float = 0.001
    """Highest step size."""
    clip: float | None = None
    note: str | None = None
    seeds: tuple[int, ...] = (0,)
    betas: tuple[float, float] = (0.9, 0.999)
    is_long: bool = False
    limit: int | Literal["all"] = "all"
    teacher: Model | None = None


RECIPE = Recipe("r")


def changed(**values):
    return Recipe(**{"name": "r", **values})


@pytest.mark.parametrize(
    "config",
    [
        RECIPE,
        changed(clip=0.5, note="n\u00e9\n", seeds=(), limit=3, teacher=Model(4, 4), schedule="none"),
        changed(model=Model(memory_options={"norm": "input", "deep": {"x": [1, None, True]}}, scales={"a": 1.0})),
    ],
)
def test_json_round_trip_gives_the_same_configuration(config):
    assert from_json(Recipe, json.loads(json.dumps(to_json(config)))) == config


def test_a_missing_key_takes_its_default():
    assert from_json(Recipe, {"name": "r", "model": {"hidden_size": 4}}) == changed(model=Model(4))


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({}, "the key 'name' is missing; expected a word"),
        ({"name": "r", "modle": {}}, "unknown key 'modle'; did you mean 'model'?"),
        (
            {"name": "r", "model": {"hiden_size": 3}},
            "unknown key 'model.hiden_size'; did you mean 'model.hidden_size'?",
        ),
        ({"name": "r", "model": {"hidden_size": "big"}}, "model.hidden_size is 'big'; expected a whole number"),
        ({"name": "r", "model": {"hidden_size": True}}, "model.hidden_size is True; expected a whole number"),
        ({"name": "r", "model": {"hidden_size": 2.0}}, "model.hidden_size is 2.0; expected a whole number"),
        ({"name": "r", "model": []}, "model is []; expected an object with named values"),
        ({"name": "r", "model": {"hidden_size": 9}}, "model: hidden_size=9 is not a multiple of num_heads=2"),
        ({"name": "r", "model": {"scales": {"a": "b"}}}, "model.scales.a is 'b'; expected a number"),
        (
            {"name": "r", "schedule": "naom"},
            "schedule is 'naom'; expected one of constant, noam, none; did you mean 'noam'?",
        ),
        ({"name": "r", "clip": "x"}, "clip is 'x'; expected a number or none"),
        ({"name": "r", "learning_rate": None}, "learning_rate is None; expected a number"),
        ({"name": "r", "learning_rate": float("nan")}, "learning_rate is nan; expected a finite number"),
        ({"name": "r", "betas": [0.9]}, "betas has 1 values; expected 2"),
        ({"name": "r", "seeds": [1, "2"]}, "seeds[1] is '2'; expected a whole number"),
        ({"name": "r", "limit": 1.5}, "limit is 1.5; expected a whole number or one of all"),
    ],
)
def test_wrong_values_are_refused_with_their_key(values, sentence):
    with pytest.raises(InputError) as caught:
        from_json(Recipe, values)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("assignments", "wanted"),
    [
        (["name=other=x"], changed(name="other=x")),
        (["model.hidden_size=1e2"], changed(model=Model(100))),
        (["model.hidden_size=1_000"], changed(model=Model(1000))),
        (["model.hidden_size=9", "model.num_heads=3"], changed(model=Model(9, 3))),
        (["model.memory_options.norm=input"], changed(model=Model(memory_options={"norm": "input"}))),
        (
            ["model.memory_options.a=1e-3", "model.memory_options.b=true", "model.memory_options.c=[1, 2]"],
            changed(model=Model(memory_options={"a": 0.001, "b": True, "c": [1, 2]})),
        ),
        (['model.memory_options={"a": null}'], changed(model=Model(memory_options={"a": None}))),
        (["model.scales.x=1"], changed(model=Model(scales={"x": 1.0}))),
        (["schedule=none"], changed(schedule="none")),
        (["learning_rate=1"], changed(learning_rate=1.0)),
        (["clip=2e-1"], changed(clip=0.2)),
        (["clip=3", "clip=none"], RECIPE),
        (["note=5"], changed(note="5")),
        (["note=None"], RECIPE),
        (["seeds=1,2, 3"], changed(seeds=(1, 2, 3))),
        (["seeds=[4]"], changed(seeds=(4,))),
        (["seeds="], changed(seeds=())),
        (["betas=0.5,1"], changed(betas=(0.5, 1.0))),
        (["is_long=yes"], changed(is_long=True)),
        (["is_long=False"], RECIPE),
        (["limit=7"], changed(limit=7)),
        (["limit=7", "limit=all"], RECIPE),
        (["teacher.num_heads=4"], changed(teacher=Model(num_heads=4))),
        (["teacher.num_heads=4", "teacher=none"], RECIPE),
    ],
)
def test_assignments_change_what_they_name(assignments, wanted):
    came = override(RECIPE, assignments)
    assert came == wanted
    assert to_json(came) == to_json(wanted)


@pytest.mark.parametrize(
    ("assignment", "sentence"),
    [
        ("name", "'name' sets nothing; write name=value"),
        ("=3", "'=3' sets nothing; write name=value"),
        ("hidden_size=3", "unknown name 'hidden_size'; did you mean 'model.hidden_size'?"),
        ("model.hiddensize=3", "unknown name 'model.hiddensize'; did you mean 'model.hidden_size'?"),
        ("modle.hidden_size=3", "unknown name 'modle.hidden_size'; did you mean 'model.hidden_size'?"),
        ("learningrate=3", "unknown name 'learningrate'; did you mean 'learning_rate'?"),
        ("zzz=3", "unknown name 'zzz'"),
        ("name.x=3", "unknown name 'name.x'; did you mean 'name'?"),
        ("model.memory_options.a.b=3", "unknown name 'model.memory_options.a.b'; did you mean 'model.memory_options'?"),
        ("model.hidden_size=1.5", "model.hidden_size is 1.5; expected a whole number"),
        ("model.hidden_size=many", "model.hidden_size is 'many'; expected a whole number"),
        ("model.hidden_size=inf", "model.hidden_size is inf; expected a whole number"),
        ("model.hidden_size=3", "model: hidden_size=3 is not a multiple of num_heads=2"),
        ("learning_rate=nan", "learning_rate is nan; expected a finite number"),
        ("schedule=Noam", "schedule is 'Noam'; expected one of constant, noam, none; did you mean 'noam'?"),
        ("is_long=2", "is_long is 2; expected true or false"),
        ("seeds=a", "seeds[0] is 'a'; expected a whole number"),
        ("betas=1,2,3", "betas has 3 values; expected 2"),
        ("limit=most", "limit is 'most'; expected a whole number or one of all"),
        (
            "model=3",
            "'model' is a group of values; set one of "
            "model.hidden_size, model.num_heads, model.memory_options, model.scales",
        ),
    ],
)
def test_wrong_assignments_are_refused_with_the_nearest_right_name(assignment, sentence):
    with pytest.raises(InputError) as caught:
        override(RECIPE, [assignment])
    assert str(caught.value) == sentence


MANY = "9" * 400


@pytest.mark.parametrize(
    ("assignment", "sentence"),
    [
        (f"learning_rate={MANY}", f"learning_rate is {MANY[:200]}...; expected a number that 64 bits can hold"),
        (f"learning_rate=-{MANY}", f"learning_rate is -{MANY[:199]}...; expected a number that 64 bits can hold"),
        (f"seeds={MANY}", f"seeds[0] is {MANY[:200]}...; expected a whole number that 64 bits can hold"),
        ("seeds=9223372036854775808", "seeds[0] is 9223372036854775808; expected a whole number that 64 bits can hold"),
        (f"clip={MANY}", f"clip is {MANY[:200]}...; expected a number or none"),
        ("learning_rate=" + "9" * 10_000, "learning_rate is inf; expected a finite number"),
        (
            f"model.memory_options.a={MANY}",
            f"model.memory_options.a is {MANY[:200]}...; expected a number that 64 bits",
        ),
        ('model.memory_options={"a": 1, "a": 2}', 'model.memory_options is \'{"a": 1, "a": 2}\'; expected names with'),
        ("model.memory_options=" + "[" * 100_000, "model.memory_options is '[[[["),
        ('model.memory_options={"a": ' + "[" * 900 + "]" * 900 + "}", 'model.memory_options is \'{"a": [[[['),
    ],
)
def test_a_number_or_a_nesting_beyond_all_bounds_is_refused(assignment, sentence):
    with pytest.raises(InputError) as caught:
        override(RECIPE, [assignment])
    assert str(caught.value).startswith(sentence)
    assert len(str(caught.value)) < 400


NAMES = [line.name for line in describe(Recipe)]


@settings(max_examples=200, deadline=None)
@given(name=st.text(max_size=12) | st.sampled_from(NAMES), text=st.text(max_size=12))
def test_any_assignment_is_refused_or_gives_what_json_can_hold(name, text):
    try:
        came = override(RECIPE, [f"{name}={text}"])
    except InputError:
        return
    assert from_json(Recipe, json.loads(json.dumps(to_json(came)))) == came


class Colours:
    """Words that are known only at run time."""

    otherwise = "#RRGGBB for any other"

    def __init__(self):
        self.known = ["red", "green"]

    def words(self):
        return tuple(self.known)

    def accepts(self, word):
        return word in self.known or word.startswith("#")


COLOURS = Colours()


@dataclass(frozen=True)
class Painted:
    """Something with a colour."""

    colour: Annotated[str, COLOURS] = "red"
    """Of what is drawn."""
    border: Annotated[str, COLOURS] | None = None


def test_registered_words_are_read_as_they_are_known_now(monkeypatch):
    assert override(Painted(), ["colour=#010203", "border=green"]) == Painted("#010203", "green")
    assert from_json(Painted, to_json(Painted("green"))) == Painted("green")
    assert override(Painted(border="red"), ["border=none"]) == Painted()
    monkeypatch.setattr(COLOURS, "known", [*COLOURS.known, "blue"])
    assert override(Painted(), ["colour=blue"]) == Painted("blue")
    assert describe(Painted)[0].type == "one of red, green, blue, or #RRGGBB for any other"


@pytest.mark.parametrize("colour", ["gren", 3, None, [1]])
def test_a_word_that_is_not_registered_is_refused_with_the_nearest(colour):
    near = "; did you mean 'green'?" if colour == "gren" else ""
    with pytest.raises(InputError) as caught:
        from_json(Painted, {"colour": colour})
    assert str(caught.value) == f"colour is {colour!r}; expected one of red, green, or #RRGGBB for any other{near}"


def test_a_configuration_itself_is_not_changed():
    config = changed(model=Model(memory_options={"a": 1}))
    override(config, ["model.memory_options.a=2"])
    assert config.model.memory_options == {"a": 1}


def test_description_names_every_field_with_the_text_under_it():
    lines = {line.name: line for line in describe(Recipe)}
    assert list(lines)[:4] == ["name", "model.hidden_size", "model.num_heads", "model.memory_options"]
    assert lines["name"].default is REQUIRED
    assert lines["name"].text == "Name of the run."
    assert lines["model.num_heads"].text == "Heads; must divide `hidden_size`."
    assert lines["model.num_heads"].default == 2
    assert lines["model.scales"].text == ""
    assert lines["clip"].type == "a number or none"
    assert lines["schedule"].type == "one of constant, noam, none"
    assert lines["seeds"].type == "a list, each a whole number"
    assert lines["betas"].type == "a list of 2 (a number, a number)"
    assert "teacher.hidden_size" in lines


def test_description_of_an_instance_shows_its_values():
    lines = {line.name: line.default for line in describe(changed(model=Model(16), seeds=(1, 2)))}
    assert (lines["name"], lines["model.hidden_size"], lines["seeds"]) == ("r", 16, (1, 2))


def test_a_type_that_json_cannot_hold_is_our_own_mistake():
    @dataclass(frozen=True)
    class Odd:
        thing: complex = 1j

    with pytest.raises(TypeError, match="thing is a complex"):
        to_json(Odd())
    with pytest.raises(TypeError, match="thing is annotated"):
        from_json(Odd, {"thing": 1})
