"""The page: everything of some runs in one HTML file that needs nothing else."""

import base64
import html
import json
from importlib import resources
from pathlib import Path

from srwm.errors import InputError
from srwm.runs.reading import read_file

from .runs import ReportedRun, joined
from .svg import chart_svg
from .tables import Table, results_table

PICTURES = {".png": "image/png", ".gif": "image/gif"}
CAPTIONS = {
    "film": "The matrices of the layer that moved most, rewriting themselves",
    "past": "Which past images each answer rests on",
    "rates": "The four learning rates over time",
    "rates-by-head": "The learning rates of each head",
    "change": "How far the matrices, and the function they compute, have moved",
    "ranks": "In how many directions they changed",
    "heads": "The heads compared, at the last step",
}
"""What `srwm inspect` draws, in the order of the page."""
MOST_PICTURE_BYTES = 8 << 20
"""Larger pictures are named and not shown."""


def page_html(runs: list[ReportedRun]) -> str:
    """Write the report of some runs; the same runs give the same text."""
    title = runs[0].label if len(runs) == 1 else f"{len(runs)} runs compared"
    sections = {
        "Results": results_table(runs).to_html(),
        "Curves": '<div class="charts">' + "\n".join(map(chart_svg, joined(runs))) + "</div>",
        "Inside": "\n".join(filter(None, (_inspection(run, alone=len(runs) == 1) for run in runs))),
        "Runs": "\n".join(map(_details, runs)),
    }
    body = "\n".join(
        f'<section id="{name.lower()}"><h2>{name}</h2>\n{content}\n</section>'
        for name, content in sections.items()
        if content
    )
    style = resources.files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    links = " ".join(f'<a href="#{name.lower()}">{name}</a>' for name, content in sections.items() if content)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{html.escape(title)}</title>
<style>
{style}</style>
</head>
<body>
<header><h1>{html.escape(title)}</h1><nav>{links}</nav></header>
<main>
{body}
</main>
</body>
</html>
"""


def _inspection(run: ReportedRun, *, alone: bool) -> str:
    """The pictures that `srwm inspect` has drawn of a run."""
    folder = run.folder.path / "inspect"
    pictures = sorted(path for path in folder.glob("*") if path.suffix in PICTURES) if folder.is_dir() else []
    known = list(CAPTIONS)
    pictures.sort(key=lambda path: known.index(path.stem) if path.stem in known else len(known))
    return "\n".join(_picture(path, "" if alone else f" ({run.label})") for path in pictures)


def _picture(path: Path, whose: str) -> str:
    caption = html.escape(CAPTIONS.get(path.stem, path.stem) + whose)
    try:
        data = read_file(path, MOST_PICTURE_BYTES)
    except InputError as error:
        return f'<p class="faint">{html.escape(path.name + whose)} is not shown: {html.escape(str(error))}</p>'
    encoded = base64.b64encode(data).decode("ascii")
    source = f"data:{PICTURES[path.suffix]};base64,{encoded}"
    return f'<figure class="picture"><figcaption>{caption}</figcaption><img alt="{caption}" src="{source}"></figure>'


def _details(run: ReportedRun) -> str:
    """How to repeat a run, where it was made, and its whole configuration."""
    rows: list[tuple[str, str]] = [
        ("folder", run.folder.path.name),
        ("seed", str(run.seed)),
        ("srwm", run.folder.version),
    ]
    result = run.result
    if result is None:
        rows.append(("state", "has not ended yet"))
    else:
        hardware = result.get("hardware", {})
        versions = hardware.get("versions", {})
        rows += [
            ("date", str(result.get("date", "-"))),
            ("steps", f"{result.get('step', 0):,}"),
            ("seconds", f"{result.get('seconds', 0):,.0f}"),
            ("parameters", f"{result.get('parameters', 0):,}"),
            *((name, str(value)) for name, value in hardware.items() if name != "versions"),
            *((name, str(value)) for name, value in versions.items() if value is not None and name != "srwm"),
        ]
    table = Table(("", ""), tuple(rows), words=2).to_html()
    config = html.escape(json.dumps(run.folder.config, indent=2))
    return (
        f"<h3>{html.escape(run.label)}</h3>\n<pre><code>{html.escape(run.command)}</code></pre>\n{table}\n"
        f"<details><summary>The whole configuration</summary><pre><code>{config}</code></pre></details>"
    )
