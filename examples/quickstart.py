"""Teach a network to learn: train a small SRWM on made-up handwriting, then let it learn characters it has never seen.

The network is trained on episodes: five characters, one labelled drawing of each, then questions. Afterwards what was
trained stays as it is; what the network learns about new characters, it learns by rewriting its self-referential
matrices as it runs. Everything is made on the spot: no download, no GPU, a few minutes on two CPU cores.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from srwm.data import ImageSet, draw_episodes, load_images
from srwm.data.sheet import episode_sheet
from srwm.errors import InputError, RunError
from srwm.fewshot import FewShotModel, load_model, recipe, train_run
from srwm.fewshot.evaluation import accuracy_by_shots
from srwm.runs.config import override
from srwm.runs.metrics import read_metrics

SHOTS = (1, 2, 3, 5, 8)
"""Labelled drawings of each character that the trained model is tested with; it was trained with one."""


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
        images, torch.tensor(0), batch_size=1, ways=model.ways, shots=1, queries=10, seed=1, stream=99
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
    """Name the first folder of a run that is not there yet."""
    return next(path for number in range(1, 10**6) if not (path := parent / f"quickstart-{number}").exists())


def run(out: Path, changes: Sequence[str]) -> None:
    """Train, test and show."""
    console = Console()
    config = override(recipe("strokes-1shot").config, changes)
    console.print(
        "Each episode shows five made-up characters, one labelled drawing of each, and then asks.\n"
        "The network is tested on characters it has never seen: all it knows of them, it learns\n"
        "from those five drawings, by rewriting its own weights.\n"
    )
    folder = new_folder(out)
    outcome, result = train_run(config, folder, device="cpu", console=console)
    if result is None:
        console.print(f"Stopped at step {outcome.step:,}; everything is saved in {folder}.", soft_wrap=True)
        raise KeyboardInterrupt
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
    parser = argparse.ArgumentParser(description="Train a small SRWM on made-up handwriting, and test it on more.")
    parser.add_argument("--out", type=Path, default=Path("runs"), help="where the run goes (default: %(default)s)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change the recipe strokes-1shot"
    )
    args = parser.parse_args(argv)
    try:
        run(args.out, args.set)
    except KeyboardInterrupt:
        return 130
    except (InputError, RunError) as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
