"""`srwm doctor`: what is here, and does it work."""

import argparse

from ._parser import EXIT_FAILED, EXIT_OK, Parser


def add(doctor: Parser) -> None:
    """Add its options."""
    doctor.add_argument("--json", action="store_true", help="print JSON instead of tables")
    doctor.set_defaults(run=_doctor)


def _doctor(args: argparse.Namespace) -> int:
    from srwm.doctor import examine, print_json, print_tables

    report = examine()
    (print_json if args.json else print_tables)(report)
    return EXIT_OK if report.healthy else EXIT_FAILED
