"""Reports: results of runs beside the paper, on one page that needs nothing else."""

from pathlib import Path

from srwm.runs.atomic import failures_as_sentences, write_atomically

from .page import page_html
from .runs import ReportedRun, read_runs
from .tables import Table, results_table

__all__ = ["ReportedRun", "Table", "page_html", "read_runs", "results_table", "write_report"]


def write_report(runs: list[ReportedRun], out: Path, tables: Path | None = None) -> list[Path]:
    """Write the page of some runs and, where asked for, their table of results as Markdown, LaTeX and CSV.

    Args:
        runs: what `read_runs` gave.
        out: the HTML file.
        tables: a folder for `results.md`, `results.tex` and `results.csv`; None for none.

    Returns:
        The files, in the order in which they were written.

    Raises:
        RunError: if one cannot be written.
    """
    texts = {out: page_html(runs)}
    if tables is not None:
        table = results_table(runs)
        with failures_as_sentences(tables):
            tables.mkdir(parents=True, exist_ok=True)
        texts |= {
            tables / "results.md": table.to_markdown(),
            tables / "results.tex": table.to_latex(),
            tables / "results.csv": table.to_csv(),
        }
    for path, text in texts.items():
        # Names of files may hold bytes that are no text; they are shown as such.
        write_atomically(path, text.encode(errors="backslashreplace"))
    return list(texts)
