"""`srwm data`: the images and games that there are, and how to get more."""

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from srwm.errors import InputError

from ._parser import EXIT_FAILED, EXIT_OK, Commands, Parser

if TYPE_CHECKING:
    from srwm.data.sources import Source

_SPLITS = ("train", "validation", "test")


def add(data: Parser) -> None:
    """Add its verbs."""
    verbs = data.add_subparsers(title="verbs", metavar="VERB")

    listing = _verb(data, verbs, "list", "List the sources of images, and the games, and say which are there.")
    listing.set_defaults(run=_list)

    fetch = _verb(
        data, verbs, "fetch", "Download a source's official archives, check them and make its pack; or ProcGen's games."
    )
    fetch.add_argument("name", metavar="NAME", help="a source that `srwm data list` shows, or procgen")
    fetch.add_argument("--again", action="store_true", help="fetch it even if it is there")
    fetch.add_argument("--keep-archives", action="store_true", help="keep the archives once they have served")
    fetch.set_defaults(run=_fetch)

    importing = _verb(data, verbs, "import", "Make a pack of files that are on this machine.")
    importing.add_argument(
        "kind",
        choices=("folder", "features", "mini-imagenet"),
        help="`folder`: a folder that holds a folder of images for each class; `features`: feature vectors and labels, "
        "in a .npz file or two .npy files; `mini-imagenet`: its three caches",
    )
    importing.add_argument(
        "paths", type=Path, nargs="+", metavar="PATH", help="the folder, the files, or the three caches"
    )
    importing.add_argument("--name", help="what to call the images of a folder, or the features, from now on")
    importing.set_defaults(run=_import)

    verify = _verb(
        data, verbs, "verify", "Check what is there: every image and every number of the packs, every file of ProcGen."
    )
    verify.add_argument("names", nargs="*", metavar="NAME", help="sources, or procgen (default: all that are there)")
    verify.set_defaults(run=_verify)

    show = _verb(data, verbs, "show", "Draw a contact sheet of some classes.")
    show.add_argument("name", metavar="SOURCE", help="a source that `srwm data list` shows, or folder:PATH")
    show.add_argument("--split", choices=_SPLITS, default="train", help="(default: train)")
    show.add_argument("--classes", type=_count, default=10, metavar="N", help="how many classes (default: 10)")
    show.add_argument("--images", type=_count, default=10, metavar="N", help="how many images of each (default: 10)")
    show.add_argument(
        "--out", type=_output_file, metavar="FILE", help="the PNG file to write (default: SOURCE-SPLIT.png)"
    )
    show.set_defaults(run=_show)


def _verb(data: Parser, verbs: "Commands[Parser]", name: str, text: str) -> Parser:
    verb = data.add_command(verbs, name, text)
    verb.add_data_option()
    return verb


def _count(text: str) -> int:
    if not text.isdecimal() or len(text) > 4 or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text[:100]!r} is not a number from 1 to 1000")
    return int(text)


def _output_file(text: str) -> Path:
    # The sheet takes the place of what is there: a device or a folder must stay.
    if not Path(text).name or (os.path.lexists(text) and not os.path.isfile(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is no file; expected the name of a PNG file to write")
    return Path(text)


def _report(text: str) -> None:
    print(text, file=sys.stderr)


def _print(text: object) -> None:
    """Print a line that may name a file; bytes of its name that are no text are escaped."""
    print(_text(text))


def _text(text: object) -> str:
    return str(text).encode("utf-8", "backslashreplace").decode()


def _list(args: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from srwm.data import data_folder, procgen
    from srwm.data.features import feature_packs
    from srwm.data.places import find_source, own_packs
    from srwm.data.sources import SOURCES

    folder = data_folder(args.data)
    table = Table(
        title=f"Sources of images; packs lie in {escape(_text(folder))}", title_justify="left", show_lines=True
    )
    table.add_column("source", no_wrap=True)
    table.add_column("there?", no_wrap=True)
    table.add_column("what it is; classes to train / validate / test with; licence")
    for source in [*SOURCES.values(), *(find_source(name, folder) for name in own_packs(folder))]:
        table.add_row(escape(source.name), _whether_there(source, folder), "\n".join(_about(source)))
    table.add_row("folder:PATH", "", "A folder on this machine that holds a folder of images for each class.")
    console = Console()
    console.print(table)
    features = feature_packs(folder)
    if features:
        console.print(f"[bold]packs of features[/]: {escape(_text(', '.join(features)))}")
    console.print(f"[bold]{procgen.NAME}[/]: {procgen.ABOUT}", _whether_procgen(folder), sep="\n")
    return EXIT_OK


def _whether_procgen(folder: Path) -> str:
    from rich.markup import escape

    from srwm.data import procgen

    place = procgen.procgen_folder(folder)
    if not place.is_dir():
        return f"Not there; `srwm data fetch {procgen.NAME}` gets it."
    return f"There, in {escape(_text(place))}"


def _whether_there(source: "Source", folder: Path) -> str:
    if source.pack is None:
        return "built in"
    path = folder / source.pack
    return f"{path.stat().st_size / 1e6:.1f} MB" if path.is_file() else "no"


def _about(source: "Source") -> Iterator[str]:
    """Give the lines that describe a source."""
    yield source.about
    if any(source.classes):
        turns = 4 if source.rotations else 1
        numbers = " / ".join(str(number * turns) for number in source.classes)
        rotations = " with rotations" if source.rotations else ""
        size = f"{source.image_size} x {source.image_size}, {'grey' if source.channels == 1 else 'colours'}"
        if source.images_per_class:
            yield f"{numbers} classes{rotations}, {source.images_per_class} images each, {size}"
        else:
            yield f"the same {source.classes[0]} classes in every part, other images, {size}"
        yield f"Licence: {source.licence}"


def _fetch(args: argparse.Namespace) -> int:
    from srwm.data import data_folder
    from srwm.data.fetch import fetch
    from srwm.data.procgen import NAME, fetch_procgen

    folder, options = data_folder(args.data), {"again": args.again, "keep_archives": args.keep_archives}
    if args.name == NAME:
        _print(fetch_procgen(folder, _report, **options))
        return EXIT_OK
    path = fetch(args.name, folder, _report, **options)
    _print(path or f"{args.name} is drawn when it is asked for; there is nothing to fetch.")
    return EXIT_OK


def _import(args: argparse.Namespace) -> int:
    from srwm.data import data_folder, import_features
    from srwm.data.fetch import import_folder, import_mini_imagenet

    folder = data_folder(args.data)
    if args.kind == "mini-imagenet":
        _print(import_mini_imagenet(args.paths, folder, _report))
        return EXIT_OK
    if args.name is None:
        what = "feature vectors" if args.kind == "features" else "the images of a folder"
        raise InputError(f"{what} need a name: add --name NAME")
    if args.kind == "features":
        _print(import_features(args.paths, args.name, folder))
        return EXIT_OK
    if len(args.paths) != 1:
        raise InputError(f"{len(args.paths)} folders came; expected one, which holds a folder of images for each class")
    _print(import_folder(args.paths[0], args.name, folder, _report))
    return EXIT_OK


def _verify(args: argparse.Namespace) -> int:
    from srwm.data import data_folder, procgen
    from srwm.data.places import find_source, own_packs, pack_path
    from srwm.data.sources import SOURCES
    from srwm.data.verify import verify_pack

    folder = data_folder(args.data)
    games = procgen.procgen_folder(folder)
    known = {source.pack for source in SOURCES.values() if source.pack}
    if args.names:
        paths = [games if name == procgen.NAME else pack_path(find_source(name, folder), folder) for name in args.names]
    else:
        paths = [folder / name for name in sorted({*known, *(f"{name}.npz" for name in own_packs(folder))})]
        paths = [path for path in paths if path.is_file()] + ([games] if games.is_dir() else [])
    if not paths:
        raise InputError(f"there is no pack in {folder}: run `srwm data fetch NAME`, or name the folder with --data")
    if games in paths and not games.is_dir():
        raise InputError(
            f"{procgen.NAME} is not in {folder}: run `srwm data fetch {procgen.NAME}`, or name the folder with --data"
        )
    failed = False
    for path in dict.fromkeys(paths):
        problems = procgen.verify_procgen(folder) if path == games else verify_pack(path)
        failed |= bool(problems)
        for line in problems or [f"{path} is sound"]:
            _print(line)
    return EXIT_FAILED if failed else EXIT_OK


def _show(args: argparse.Namespace) -> int:
    import io

    from srwm.data import load_images
    from srwm.data.sheet import contact_sheet
    from srwm.runs.atomic import write_atomically

    found = load_images(args.name, args.split, folder=args.data, rotations=False)
    number = min(args.classes, found.num_classes)
    chosen = [index * found.num_classes // number for index in range(number)]
    rows = []
    for index in chosen:
        start, count = int(found.starts[index]), min(args.images, int(found.counts[index]))
        rows.append(list(found.images[start : start + count]))
    sheet = contact_sheet(rows, row_titles=[found.class_names[index].replace("/", "\n") for index in chosen])
    path = args.out or Path(found.name.replace("/", "-") + ".png")
    buffer = io.BytesIO()
    sheet.save(buffer, "PNG")
    write_atomically(path, buffer.getvalue())
    _print(path)
    return EXIT_OK
