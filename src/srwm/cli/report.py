"""`srwm report`: the results of runs, on one page."""

import argparse
from pathlib import Path

from ._parser import EXIT_OK, Parser, printable

_EPILOG = """\
One HTML file that needs no network: figures beside the paper's, curves, the pictures of `srwm inspect` where there are
some, and how to repeat each run. Several runs become a comparison; those of one recipe, with different seeds, a mean.

  srwm report runs/omniglot-1shot-0
  srwm report runs/omniglot-1shot-* runs/omniglot-1shot-deltanet-* --out comparison.html --tables tables
"""


def add(report: Parser) -> None:
    """Add its options."""
    report.epilog = _EPILOG
    report.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="folders of runs")
    report.add_argument(
        "--out", type=Path, metavar="FILE", help="the page (default: report.html, in the run's folder if it is one)"
    )
    report.add_argument("--tables", type=Path, metavar="FOLDER", help="also write results.md, results.tex, results.csv")
    report.set_defaults(run=_report)


def _report(args: argparse.Namespace) -> int:
    from srwm.errors import InputError
    from srwm.report import read_runs, write_report

    runs = read_runs(args.runs)
    out = args.out or (args.runs[0] if len(args.runs) == 1 else Path()) / "report.html"
    # The page takes the place of what is there: that must be no device, such as /dev/null.
    if out.exists() and not out.is_file():
        raise InputError(f"--out {out} is no file; expected the name of one, or of none that is there yet")
    for path in write_report(runs, out, args.tables):
        print(printable(path))
    return EXIT_OK
