"""The reports among the results are of the models they speak of, and need nothing from elsewhere."""

import json
import re

from srwm.runs.shipped import SHIPPED

from .pages import DOCS

NAME = "omniglot-1shot"
# Without its pictures, in whose letters anything may stand.
PAGE = re.sub(r'src="data:image/[^"]*"', "", (DOCS / "results" / f"{NAME}.html").read_text(encoding="utf-8"))


def test_its_figures_are_those_of_the_model():
    measured = json.loads((SHIPPED / NAME / "model.json").read_text(encoding="utf-8"))["measured"]
    test = measured["test"]
    assert f"{test['accuracy']:.1%} ± {100 * test['interval_sets']:.1f}" in PAGE
    assert f"srwm train {measured['recipe']} " in PAGE
    for value in (f"{measured['parameters']:,}", measured["hardware"]["device"], measured["date"]):
        assert f"<td>{value}</td>" in PAGE


def test_it_has_curves_and_pictures_and_names_no_place_of_a_machine():
    for words in ("Validation accuracy", "rewriting themselves", "Which past images each answer rests on"):
        assert words in PAGE
    assert places_in(PAGE) == []


def test_the_report_of_the_papers_recipe_has_the_figures_of_the_results():
    page = (DOCS / "results" / f"{NAME}-paper.html").read_text(encoding="utf-8")
    results = (DOCS / "results" / "few-shot.md").read_text(encoding="utf-8")
    assert re.search(rf"^srwm train {NAME} .*--seed 5 ", results, re.MULTILINE)
    row = re.search(r"^\| SRWM[^|]*\| 5 \|.*\*\*([\d.]+)% ± ([\d.]+)%\*\*", results, re.MULTILINE)
    assert f"{float(row[1]):.1f}% ± {float(row[2]):.1f}" in page
    command = re.search(r"srwm train[^<]*", page)[0]
    assert command.startswith(f"srwm train {NAME} ")
    assert command.endswith(" --seed 5")
    assert places_in(page) == []


def places_in(page):
    """Paths of a machine and addresses elsewhere."""
    return re.findall(r"/(?:tmp|root|home|work|Users)\b|https?:", page)
