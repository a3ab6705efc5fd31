"""Tables that can be written as HTML, Markdown, LaTeX and CSV."""

import csv
import html
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

from srwm.runs.charts import Measure

from .runs import ReportedRun


@dataclass(frozen=True)
class Table:
    """Text in rows and columns; columns after the first `words` are figures, set to the right."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 1

    def to_html(self) -> str:
        """Write it as HTML; nothing in it can be taken for a tag."""
        head = "".join(f"<th{self._align(i)}>{html.escape(name)}</th>" for i, name in enumerate(self.columns))
        body = "\n".join(
            "<tr>" + "".join(f"<td{self._align(i)}>{html.escape(cell)}</td>" for i, cell in enumerate(row)) + "</tr>"
            for row in self.rows
        )
        return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>'

    def to_markdown(self) -> str:
        """Write it as Markdown."""
        rule = ["---" if i < self.words else "---:" for i in range(len(self.columns))]
        lines = (self.columns, rule, *self.rows)
        return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"

    def to_latex(self) -> str:
        """Write it as a LaTeX tabular with the rules of booktabs."""
        letters = "l" * self.words + "r" * (len(self.columns) - self.words)
        lines = [" & ".join(map(_latex, row)) + r" \\" for row in (self.columns, *self.rows)]
        middle = "\n".join(lines[1:])
        return (
            f"\\begin{{tabular}}{{{letters}}}\n\\toprule\n{lines[0]}\n\\midrule\n{middle}\n\\bottomrule\n"
            "\\end{tabular}\n"
        )

    def to_csv(self) -> str:
        """Write it as comma-separated values."""
        file = io.StringIO()
        csv.writer(file, lineterminator="\n").writerows((self.columns, *self.rows))
        return file.getvalue()

    def _align(self, column: int) -> str:
        return "" if column < self.words else ' class="number"'


def results_table(runs: Sequence[ReportedRun]) -> Table:
    """Every figure of every recipe: ours, the paper's, and the difference.

    Runs of one recipe are taken together: with several, the figure is their mean and their standard deviation; with
    one, the interval is that of its own test.
    """
    recipes: dict[str, list[ReportedRun]] = {}
    for run in runs:
        recipes.setdefault(run.recipe, []).append(run)
    rows = []
    for recipe, group in recipes.items():
        measured = [{measure.name: measure for measure in run.measures} for run in group if run.result]
        names = list(dict.fromkeys(name for measures in measured for name in measures))
        for name in names:
            found = [measures[name] for measures in measured if name in measures]
            rows.append((recipe, name, str(len(found)), *_figures(found)))
        if not names:
            rows.append((recipe, "not tested" if measured else "has not ended yet", str(len(group)), "-", "-", "-"))
    return Table(("recipe", "measure", "runs", "ours", "paper", "difference"), tuple(rows), words=2)


def _figures(found: Sequence[Measure]) -> tuple[str, str, str]:
    """Ours, the paper's and the difference, as texts."""
    first = found[0]
    scale, unit = (100, "%") if first.percent else (1, "")
    values = [scale * measure.value for measure in found]
    mean = math.fsum(values) / len(values)
    if len(values) > 1:
        deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
        spread = f" (sd {deviation:.1f})"
    else:
        spread = "" if first.interval is None else f" ± {scale * first.interval:.1f}"
    ours = f"{mean:.1f}{unit}{spread}"
    if first.paper is None:
        return ours, "-", "-"
    paper = scale * first.paper
    return ours, f"{paper:.1f}{unit}", f"{mean - paper:+.1f}"


_LATEX = {
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "±": r"$\pm$",
}


def _latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)
