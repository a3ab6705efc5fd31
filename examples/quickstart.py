"""What self-modification is good for, in two parts of a few minutes.

Parity: is the number of ones so far odd? Two small networks learn it on sequences of up to 50 bits, one with a gated
SRWM and one with a DeltaNet, and are then asked at every position of sequences of up to 10,000.

New characters: a small SRWM is trained on made-up handwriting, then learns characters it has never seen. It is trained
on episodes: five characters, one labelled drawing of each, then questions. Afterwards what was trained stays as it is;
what the network learns about new characters, it learns by rewriting its self-referential matrices as it runs.

Everything is made on the spot: no download, no GPU, a few minutes on two CPU cores.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import torch
from rich.console import Console
from rich.table import Table

from srwm.data import ImageSet, draw_episodes, load_images
from srwm.data.sheet import episode_sheet
from srwm.errors import InputError, RunError
from srwm.fewshot import FewShotConfig, FewShotModel, load_model, recipe, train_run
from srwm.fewshot.evaluation import accuracy_by_shots
from srwm.languages import recipe as language_recipe
from srwm.languages import train_run as train_language
from srwm.languages.plots import plot_lengths
from srwm.runs.config import override
from srwm.runs.metrics import read_metrics

SHOTS = (1, 2, 3, 5, 8)
"""Labelled drawings of each character that the trained model is tested with; it was trained with one."""

PARITY = {"gated SRWM": "parity", "DeltaNet": "parity-deltanet"}
"""Who tracks parity: names and recipes."""


def parity_table(results: dict[str, dict[str, Any]]) -> Table:
    """Put the networks side by side: how many sequences of a length are right at every position."""
    table = Table(title="Parity, right at every position")
    for heading in ("length", *results):
        table.add_column(heading, justify="right")
    for rows in zip(*(result["test"]["by_length"] for result in results.values()), strict=True):
        shortest, longest = rows[0]["shortest"], rows[0]["longest"]
        length = f"{longest:,}" if shortest == longest else f"{shortest:,} to {longest:,}"
        table.add_row(length, *(f"{row['whole']:.1%}" for row in rows))
    table.caption = "; ".join(
        f"{name}: {result['parameters']:,} parameters, {result['step']:,} steps in {result['seconds']:.0f} s"
        for name, result in results.items()
    )
    return table


def track_parity(out: Path, changes: Sequence[str], console: Console) -> None:
    """Train both networks on parity, and show up to which length each is right."""
    console.print(
        "Parity: is the number of ones so far odd? Two networks read up to 50 bits and are told the\n"
        "answer at every position. Then they read up to 10,000, two hundred times as many.\n"
    )
    results, folders = {}, {}
    for name, key in PARITY.items():
        config = override(language_recipe(key).config, ["train.test_sequences=50", *changes])
        folder = out.with_name(f"{out.name}-{key}")
        console.print(f"{name}:")
        outcome, result = train_language(config, folder, device="cpu", console=console)
        if result is None:
            stop(console, outcome.step, folder)
        results[name], folders[name] = result, folder
    console.print(parity_table(results))
    picture = folders["gated SRWM"] / "lengths.png"
    plot_lengths(folders, picture)
    console.print(f"{picture}: the same as a picture\n", soft_wrap=True, highlight=False)


def stop(console: Console, step: int, folder: Path) -> NoReturn:
    """Say where a training was stopped, and end."""
    console.print(f"Stopped at step {step:,}; everything is saved in {folder}.", soft_wrap=True)
    raise KeyboardInterrupt


def accuracy_table(result: dict[str, Any], by_shots: Sequence[float], ways: int) -> Table:
    """Put what the test measured into a table."""
    table = Table(title=f"Strokes, {ways}-way, characters never seen in training")
    for heading in ("drawings of each to learn from", "accuracy", "chance"):
        table.add_column(heading, justify="right")
    for shots, accuracy in zip(SHOTS, by_shots, strict=True):
        table.add_row(f"{shots}", f"{accuracy:.1%}", f"{1 / ways:.0%}")
    test = result["test"]
    table.caption = (
        f"1 drawing, by the standard protocol: {test['accuracy']:.1%} ± {test['interval_sets']:.1%} "
        f"(95%, {test['episodes']:,} episodes); {result['parameters']:,} parameters, "
        f"{result['step']:,} steps in {result['seconds']:.0f} s"
    )
    return table


def save_plot(metrics: Sequence[dict[str, Any]], by_shots: Sequence[float], ways: int, path: Path) -> None:
    """Draw the accuracy over training, and over the number of examples, into a PNG file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    over_training, over_shots = figure.subplots(1, 2, sharey=True)
    for key, label in (("train/accuracy", "training characters"), ("validation/accuracy", "other characters")):
        points = [(record["step"], record[key]) for record in metrics if key in record]
        over_training.plot(*zip(*points, strict=True), label=label)
    over_shots.plot(SHOTS, by_shots, marker="o", label="test characters")
    for axes in (over_training, over_shots):
        axes.axhline(1 / ways, color="gray", linestyle="--", linewidth=1, label="chance")
        axes.set_ylim(0, 1.03)
        axes.grid(alpha=0.3)
    over_training.set(title="While training", xlabel="training step", ylabel="accuracy")
    over_training.legend(loc="lower right")
    over_shots.set(title="After training with one drawing of each", xlabel="drawings of each character to learn from")
    over_shots.set_xticks(SHOTS)
    figure.savefig(path, dpi=150)


def save_episode(model: FewShotModel, images: ImageSet, path: Path) -> None:
    """Let the model learn five new characters and answer ten questions about them, as a picture."""
    drawn = draw_episodes(
        images, torch.tensor(0), batch_size=1, ways=model.ways, shots=1, queries=10, seed=1, rng_stream=99
    )
    support, labels, query, wanted = (field[0] for field in drawn)
    state = model.learn(images.images[support], labels)
    predictions = model.predict(images.images[query], state).argmax(dim=-1)
    names = [chr(ord("A") + label) for label in range(model.ways)]
    sheet = episode_sheet(
        images.images[support],
        labels.tolist(),
        images.images[query],
        wanted.tolist(),
        predictions.tolist(),
        label_names=names,
    )
    sheet.save(path)


def new_folder(parent: Path) -> Path:
    """Name the first folder of a run that is not there yet, nor one of parity beside it."""
    taken = {path.name for path in parent.glob("quickstart-*")}
    names = (f"quickstart-{number}" for number in range(1, 10**6))
    return parent / next(name for name in names if not taken & {name, *(f"{name}-{key}" for key in PARITY.values())})


def learn_characters(folder: Path, config: FewShotConfig, console: Console) -> None:
    """Train on made-up characters, test on others and show."""
    console.print(
        "Each episode shows five made-up characters, one labelled drawing of each, and then asks.\n"
        "The network is tested on characters it has never seen: all it knows of them, it learns\n"
        "from those five drawings, by rewriting its own weights.\n"
    )
    outcome, result = train_run(config, folder, device="cpu", console=console)
    if result is None:
        stop(console, outcome.step, folder)
    model = load_model(folder)
    images = load_images("strokes", "test", image_size=config.task.image_size)
    by_shots = accuracy_by_shots(model, images, config.task.ways, SHOTS, episodes=4000)
    console.print(accuracy_table(result, by_shots, config.task.ways))
    save_plot(read_metrics(folder / "metrics.jsonl"), by_shots, config.task.ways, folder / "accuracy.png")
    save_episode(model, images, folder / "episode.png")
    for name, what in (("episode.png", "one test episode"), ("accuracy.png", "the accuracy")):
        console.print(f"{folder / name}: {what} as a picture", soft_wrap=True, highlight=False)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the example and return its exit status."""
    parser = argparse.ArgumentParser(
        description="Train an SRWM and a DeltaNet on parity, then a small SRWM on made-up handwriting; test them."
    )
    parser.add_argument("--out", type=Path, default=Path("runs"), help="where the run goes (default: %(default)s)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change the recipe strokes-1shot"
    )
    parser.add_argument(
        "--parity-set", action="append", default=[], metavar="KEY=VALUE", help="change the recipes of parity"
    )
    args = parser.parse_args(argv)
    console = Console()
    try:
        config = override(recipe("strokes-1shot").config, args.set)
        folder = new_folder(args.out)
        track_parity(folder, args.parity_set, console)
        learn_characters(folder, config, console)
    except KeyboardInterrupt:
        return 130
    except (InputError, RunError) as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
