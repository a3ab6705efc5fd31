// The grammar of Strokes: `srwm.data._strokes_program`, one program at a time.

import { rint } from "./arithmetic.js";
import { childKey, uniform } from "./strokes_random.js";

const PARTS = 3;
const MAX_STROKES = 4;
const STROKE_COUNTS = [0.14, 0.44, 0.32, 0.1];
const HEADINGS = [0.25, 0.25, 0.25, 0, 0, 0.125, 0.375, 0.875];
const PARENT_POINTS = [0, 0, 1, 1, 0.33, 0.5, 0.67];
const OWN_POINTS = [0, 0, 0, 0.5, 1];
const TOUCHING = 0.75;
const CHARACTER_SIZES = [0.46, 0.68];
const CHECK_STEPS = 6;

const part = (length, turn = [-0.008, 0.008], corner = [0, 0]) => ({ length, turn, corner });
const same = (one) => [one, one, one];
const LINE = part([0.33, 0.33]);

// How often a kind is chosen, the range of its size, its parts, and whether it can be a whole character.
const kind = (weight, size, parts, standsAlone = true) => ({ weight, size, parts, standsAlone });
const KINDS = [
  kind(3, [0.5, 1.1], same(LINE), false),
  kind(2, [0.6, 1.1], same(part([0.3, 0.4], [0.04, 0.09])), false),
  kind(2, [0.9, 1.5], same(part([0.3, 0.36], [0.14, 0.22])), false),
  kind(1, [0.8, 1.5], same(part([0.32, 0.34], [0.315, 0.34])), false),
  kind(0.5, [0.05, 0.07], same(LINE), false),
  kind(1.6, [0.9, 1.4], [LINE, part([0.2, 0.35]), part([0.25, 0.4], [0.3, 0.55])]),
  kind(1.4, [0.9, 1.4], [part([0.25, 0.4], [0.3, 0.55]), part([0.2, 0.35]), LINE]),
  kind(1.6, [0.9, 1.5], [part([0.4, 0.5]), part([0.2, 0.4], undefined, [0.2, 0.4]), part([0.05, 0.25])], false),
  kind(0.7, [1.2, 1.7], [
    part([0.25, 0.4]), part([0.25, 0.4], undefined, [0.28, 0.42]), part([0.25, 0.4], undefined, [-0.42, -0.28]),
  ]),
  kind(1, [1.2, 1.8], [
    part([0.2, 0.4]), part([0.25, 0.45], undefined, [0.2, 0.3]), part([0.2, 0.4], undefined, [0.2, 0.3]),
  ]),
  kind(1.4, [1, 1.6], [part([0.3, 0.4], [0.25, 0.45]), part([0.15, 0.3]), part([0.3, 0.4], [-0.45, -0.25])]),
  kind(1, [1.4, 1.9], [
    part([0.35, 0.4], [0.35, 0.5]), part([0.02, 0.1], undefined, [-0.5, -0.35]), part([0.4, 0.5], [0.4, 0.55]),
  ]),
  kind(0.8, [1.5, 2.1], [part([0.4, 0.46], [0.3, 0.4]), part([0.3, 0.34], [0.35, 0.45]), part([0.16, 0.24], [0.35, 0.5])]),
  kind(1.2, [1.4, 1.9], [part([0.25, 0.4], [0, 0.08]), part([0.35, 0.5], [0.7, 0.95]), part([0.2, 0.4], [0, 0.1])]),
  kind(1.2, [1.3, 1.8], [part([0.4, 0.5]), part([0.2, 0.3], [0.3, 0.4], [0.3, 0.45]), part([0.15, 0.25], [0.2, 0.35])]),
];
const DOT = 4;

// The strokes of the program that a key stands for: of its attempts, the first sound one.
export function compose(key) {
  for (let attempt = 0; ; attempt++) {
    const strokes = attemptOf(childKey(key, attempt));
    if (isSound(strokes)) return strokes;
  }
}

// The path of a stroke from its own start, in `steps` steps a part.
export function traceStroke(stroke, steps) {
  const path = [[0, 0]];
  let [turned, x, y] = [0, 0, 0];
  for (let i = 0; i < PARTS * steps; i++) {
    const p = Math.floor(i / steps);
    const turn = stroke.turn[p] / steps;
    turned += (i % steps ? 0 : stroke.corner[p]) + turn;
    // A chord of an arc heads for the mean of the headings at its ends.
    const heading = stroke.heading + turned - turn / 2;
    x += (stroke.length[p] / steps) * sine(heading + 0.25);
    y += (stroke.length[p] / steps) * sine(heading);
    path.push([x, y]);
  }
  return path;
}

// Hang every stroke on its parent; the middle of the image is the origin.
export function assemble(strokes, paths) {
  const placed = [];
  strokes.forEach((stroke, s) => {
    const last = paths[s].length - 1;
    const own = paths[s][rint(stroke.ownPoint * last)];
    const at = s ? placed[stroke.parent][rint(stroke.parentPoint * last)] : [0, 0];
    const move = [0, 1].map((axis) => stroke.offset[axis] + at[axis] - own[axis]);
    placed.push(paths[s].map((point) => [point[0] + move[0], point[1] + move[1]]));
  });
  return placed;
}

// The least and the greatest coordinates.
export function boxOf(paths) {
  const points = paths.flat();
  return [Math.min, Math.max].map((end) => [0, 1].map((axis) => points.reduce((a, point) => end(a, point[axis]), points[0][axis])));
}

// One program, sound or not, in the middle of the image and of its final size.
function attemptOf(key) {
  const [countDraw, boxDraw] = uniform(key, 2);
  const count = 1 + choose(countDraw, STROKE_COUNTS);
  const strokes = Array.from({ length: count }, (_, s) => strokeOf(key, s, count));
  const [low, high] = boxOf(assemble(strokes, strokes.map((stroke) => traceStroke(stroke, CHECK_STEPS))));
  const scale = within(boxDraw, CHARACTER_SIZES) / Math.max(high[0] - low[0], high[1] - low[1]);
  strokes[0].offset = strokes[0].offset.map((at, axis) => at - (low[axis] + high[axis]) / 2);
  for (const stroke of strokes) {
    stroke.length = stroke.length.map((length) => length * scale);
    stroke.offset = stroke.offset.map((at) => at * scale);
  }
  return strokes;
}

function strokeOf(key, s, count) {
  const draws = uniform(childKey(key, s + 1), 11);
  const [kindDraw, size, side, heading, sway, touch, distance, direction, parent, parentPoint, ownPoint] = draws;
  const parts = uniform(childKey(key, s + 1 + MAX_STROKES), 3 * PARTS);
  // No character begins with a dot, and lone strokes must be able to stand alone.
  const isWanted = ({ standsAlone }, i) => s > 0 || (count === 1 ? standsAlone : i !== DOT);
  const chosen = choose(kindDraw, KINDS.map((each, i) => each.weight * isWanted(each, i)));
  const mirror = side < 0.5 ? -1 : 1;
  const beside = (0.3 + 0.4 * distance) * (touch >= TOUCHING || chosen === DOT);
  const drawn = (name, i) => KINDS[chosen].parts.map((each, p) => within(parts[i * PARTS + p], each[name]));
  const factor = within(size, KINDS[chosen].size);
  return {
    kind: chosen,
    heading: pick(heading, HEADINGS) + 0.08 * (sway - 0.5),
    corner: drawn("corner", 0).map((corner) => corner * mirror),
    length: drawn("length", 1).map((length) => length * factor),
    turn: drawn("turn", 2).map((turn) => turn * mirror),
    parent: Math.trunc(parent * s),
    parentPoint: pick(parentPoint, PARENT_POINTS),
    ownPoint: pick(ownPoint, OWN_POINTS),
    offset: [beside * sine(direction + 0.25), beside * sine(direction)],
  };
}

// Whether a program makes a character: neither thin nor tangled, and no stroke runs along another.
function isSound(strokes) {
  const paths = assemble(strokes, strokes.map((stroke) => traceStroke(stroke, CHECK_STEPS)));
  const [low, high] = boxOf(paths);
  const [longer, shorter] = [Math.max, Math.min].map((end) => end(high[0] - low[0], high[1] - low[1]));
  const ink = strokes.map((stroke) => sum(stroke.length));
  if (!(shorter > 0.35 * longer && sum(ink) > 1.3 * longer && sum(ink) < 4 * longer && breadth(paths) > 0.25)) return false;
  if (strokes.some((stroke, s) => ink[s] < 0.3 * longer && stroke.kind !== DOT)) return false;
  const near = (0.12 * longer) ** 2;
  const isClose = (one, other) => (one[0] - other[0]) ** 2 + (one[1] - other[1]) ** 2 < near;
  const share = (path, other) => path.filter((point) => other.some((each) => isClose(point, each))).length / path.length;
  return !paths.some((path, a) => paths.slice(0, a).some((other) => Math.max(share(path, other), share(other, path)) > 0.45));
}

// How wide the points spread across their main direction, in parts of how wide they spread along it.
function breadth(paths) {
  const points = paths.flat();
  const mean = [0, 1].map((axis) => sum(points.map((point) => point[axis])) / points.length);
  const spread = (a, b) => sum(points.map((point) => (point[a] - mean[a]) * (point[b] - mean[b]))) / points.length;
  const [xx, xy, yy] = [spread(0, 0), spread(0, 1), spread(1, 1)];
  const root = Math.sqrt((xx - yy) * (xx - yy) + 4 * xy * xy);
  return Math.sqrt(Math.max(xx + yy - root, 0) / (xx + yy + root));
}

// An index drawn in proportion to weights, from an even draw.
function choose(draw, weights) {
  let total = 0;
  const edges = weights.map((weight) => (total += weight));
  return edges.filter((edge) => edge / total <= draw).length;
}

const pick = (draw, values) => values[choose(draw, values.map(() => 1))];
const within = (draw, [least, most]) => least + draw * (most - least);
const sum = (numbers) => numbers.reduce((total, each) => total + each, 0);

// The sine of an angle in turns, right to 1e-7, from operations that are the same everywhere.
function sine(turns) {
  let x = turns - rint(turns);
  x = (Math.abs(x) > 0.25 ? (x > 0 ? 0.5 : -0.5) - x : x) * (2 * Math.PI);
  const y = x * x;
  return x * (1 - (y / 6) * (1 - (y / 20) * (1 - (y / 42) * (1 - (y / 72) * (1 - y / 110)))));
}
