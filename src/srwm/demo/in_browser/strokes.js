// Strokes, the made-up characters: the test split of `srwm.data.strokes`, the same pixels.

import { clip } from "./arithmetic.js";
import { drawPaths } from "./pen.js";
import { assemble, boxOf, compose, traceStroke } from "./strokes_grammar.js";
import { childKey, firstKey, normal } from "./strokes_random.js";

const FIRST_OF_TEST = 2n << 32n;
const DRAWINGS = 1n << 32n;
const MAX_STROKES = 4;
// How much drawings of one character differ; see `srwm.data.strokes`.
const [HEADING, CORNER, LENGTH, TURN, TURN_SHARE, JOINT, AIM] = [0.015, 0.02, 0.13, 0.02, 0.1, 0.03, 0.7];
const [BEND, SIZE, STRETCH, SLANT, TILT, SHIFT] = [0.03, 0.11, 0.12, 0.15, 0.09, 0.04];
const [PEN, PEN_SHARE, PRESS_SHARE, THINNEST_PEN, BORDER_PIXELS] = [0.029, 0.14, 0.08, 0.016, 1];

// Draw `perClass` images of each of `classes` characters, class by class. seed: which alphabets, a BigInt.
export function drawStrokes({ seed, size, classes, perClass }) {
  const first = firstKey(seed);
  return Array.from({ length: classes }, (_, c) => {
    const key = childKey(first, FIRST_OF_TEST + BigInt(c));
    const strokes = compose(key);
    return Array.from({ length: perClass }, (_, i) => draw(strokes, childKey(key, DRAWINGS + BigInt(i)), size));
  }).flat();
}

// Draw a program once, by the hand that a key stands for.
function draw(strokes, key, size) {
  const [strokeKey, pageKey, penKey] = [0, 1, 2].map((i) => childKey(key, i));
  const paths = deform(write(strokes, strokeKey, Math.max(8, Math.floor(size / 4))), pageKey);
  const [pen, ...press] = normal(penKey, 1 + MAX_STROKES);
  const radii = press.map((each) => Math.max(PEN * (1 + PEN_SHARE * pen) * (1 + PRESS_SHARE * each), THINNEST_PEN));
  return drawPaths(keepInside(paths, Math.max(...radii) + BORDER_PIXELS / size), radii, size);
}

// The strokes as a hand writes them, around the middle of the image.
function write(strokes, key, steps) {
  const written = strokes.map((stroke, s) => {
    const [heading, jointX, jointY, size, ...parts] = normal(childKey(key, s), 13);
    const [corner, length, turn] = [parts.slice(0, 3), parts.slice(3, 6), parts.slice(6)];
    return {
      ...stroke,
      heading: stroke.heading + HEADING * heading,
      offset: [stroke.offset[0] + JOINT * jointX, stroke.offset[1] + JOINT * jointY],
      // Where a stroke has no corner, its parts go over into each other smoothly.
      corner: stroke.corner.map((each, p) => (each === 0 ? 0 : each + CORNER * corner[p])),
      length: stroke.length.map((each, p) => each * (1 + LENGTH * length[p]) * (1 + (LENGTH / 2) * size)),
      turn: stroke.turn.map((each, p) => each + (TURN + TURN_SHARE * Math.abs(each)) * turn[p]),
    };
  });
  const paths = written.map((stroke, s) => {
    const path = traceStroke(stroke, steps);
    const last = path.length - 1;
    const goal = traceStroke(strokes[s], steps)[last];
    const error = [path[last][0] - goal[0], path[last][1] - goal[1]];
    return path.map((point, i) => point.map((at, axis) => at - ((AIM * i) / last) * error[axis]));
  });
  return assemble(written, paths);
}

// Bend, stretch, slant, tilt and move a whole character.
function deform(paths, key) {
  const [a, b, c, d, e, f, size, stretchX, slant, stretchY, tilt, shiftX, shiftY] = normal(key, 13);
  const scale = 1 + SIZE * size;
  const move = ([x, y]) => {
    // Quadratic in coordinates that reach from -1 to 1.
    const [xx, xy, yy] = [4 * x * x, 4 * x * y, 4 * y * y];
    const bentX = x + BEND * (a * xx + b * xy + c * yy);
    const bentY = y + BEND * (d * xx + e * xy + f * yy);
    const slanted = scale * ((1 + STRETCH * stretchX) * bentX + SLANT * slant * bentY);
    const tilted = scale * ((1 + STRETCH * stretchY) * bentY + TILT * tilt * bentX);
    return [slanted + SHIFT * shiftX, tilted + SHIFT * shiftY];
  };
  return paths.map((path) => path.map(move));
}

// Move what lies over the border back, shrink what is too large, and put the origin into the image's corner.
function keepInside(paths, border) {
  const [low, high] = boxOf(paths);
  const room = 1 - 2 * border;
  const shrink = Math.min(1, room / Math.max(high[0] - low[0], high[1] - low[1], 1e-9));
  const axes = [0, 1].map((axis) => {
    const middle = (low[axis] + high[axis]) / 2;
    const free = Math.max(room / 2 - (shrink * (high[axis] - low[axis])) / 2, 0);
    return { middle, goal: clip(middle, -free, free) + 0.5 };
  });
  return paths.map((path) => path.map((point) => point.map((at, i) => (at - axes[i].middle) * shrink + axes[i].goal)));
}
