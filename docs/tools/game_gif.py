"""Draws a short GIF of an agent at play with its matrices beside the game.

    python docs/tools/game_gif.py MODEL OUT.gif [--level 1000] [--from-step 40] [--steps 120]

To the right of the game stands, for each layer, the change of the matrix of every head since the episode began: its
rows are those of the input, its columns y, then query, key and learning rates; blue is less than at the beginning, red
more.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from srwm.rl.loading import load_agent
from srwm.video import MatrixView, View, play

GAME, SCALE, GAP, HEAD = 256, 2, 8, 20
PAPER, INK = (18, 21, 27), (232, 235, 240)


def colours(values: np.ndarray, most: float) -> np.ndarray:
    """Blue below zero, dark at zero, red above."""
    share = np.clip(values / most, -1, 1)[..., None]
    zero, high, low = np.array(PAPER) + 12.0, np.array((250, 120, 90)), np.array((90, 150, 250))
    mixed = zero + np.where(share > 0, share * (high - zero), -share * (low - zero))
    return mixed.astype(np.uint8)


def heads(matrix: MatrixView, most: float) -> Image.Image:
    """The matrices of all heads, one below the other."""
    rows = [np.pad(head, ((0, 1), (0, 0), (0, 0))) for head in colours(matrix.weights, most)]
    return Image.fromarray(np.concatenate(rows)).resize(
        (matrix.weights.shape[2] * SCALE, GAME), Image.Resampling.NEAREST
    )


def picture(view: View, most: list[float]) -> Image.Image:
    """The game, and its matrices beside it."""
    parts = [heads(matrix, limit) for matrix, limit in zip(view.matrices, most, strict=True)]
    width = GAME + sum(part.width + GAP for part in parts)
    image = Image.new("RGB", (width, GAME + HEAD), PAPER)
    image.paste(Image.fromarray(view.picture).resize((GAME, GAME), Image.Resampling.HAMMING), (0, HEAD))
    pen, left = ImageDraw.Draw(image), GAME + GAP
    pen.text((4, 4), f"{view.game}: return {view.total:.0f}, step {view.step}", fill=INK)
    for matrix, part in zip(view.matrices, parts, strict=True):
        image.paste(part, (left, HEAD))
        pen.text((left, 4), matrix.title, fill=INK)
        left += part.width + GAP
    return image


def main() -> None:
    """Play, draw and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("out", type=Path)
    parser.add_argument("--level", type=int, default=1000)
    parser.add_argument("--from-step", type=int, default=40)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--colours", type=int, default=64)
    args = parser.parse_args()
    agent, config = load_agent(args.model)
    views = list(play(agent, config.games.names[0], [args.level], max_steps=args.from_step + args.steps))
    views = views[args.from_step :: 2]
    # One scale for the whole film: the size that all but the largest changes stay below.
    most = [
        float(np.quantile([np.abs(view.matrices[place].weights) for view in views], 0.995)) or 1.0
        for place in range(len(views[0].matrices))
    ]
    images = [picture(view, most).quantize(args.colours, dither=Image.Dither.NONE) for view in views]
    images[0].save(args.out, save_all=True, append_images=images[1:], duration=120, loop=0, optimize=True)


if __name__ == "__main__":
    main()
