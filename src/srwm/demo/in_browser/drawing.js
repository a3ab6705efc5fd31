// From strokes to an image like those that the network was trained on: `srwm.demo.drawing`.

import { clip } from "./arithmetic.js";
import { drawPaths } from "./pen.js";
import { resize } from "./resize.js";

// Draw strokes as an image of `channels` x `size` x `size` bytes.
// look: pen, raster, and what sizes and places training images have, as the server's code has them.
export function drawImage(strokes, look, { channels, size }) {
  const pieces = strokes.flatMap((stroke) =>
    stroke.length === 1 ? [[stroke[0], stroke[0]]] : stroke.slice(1).map((point, i) => [stroke[i], point]),
  );
  const placed = place(pieces, look);
  let image = drawPaths(placed, placed.map(() => look.pen), look.raster ?? size);
  if (look.raster !== null) {
    const ink = image.map((value) => (value > 127 ? 255 : 0));
    image = resize(ink, look.raster, look.raster, size);
  }
  return repeated(image, channels);
}

// The same image in each channel.
export function repeated(image, channels) {
  const all = new Uint8Array(channels * image.length);
  for (let c = 0; c < channels; c++) all.set(image, c * image.length);
  return all;
}

// Bring a drawing to the nearest size and place that training images have.
function place(pieces, { pen, sizes, shift, most_growth: mostGrowth }) {
  const axes = [0, 1].map((axis) => pieces.flatMap((piece) => piece.map((point) => point[axis])));
  const low = axes.map((values) => values.reduce((a, b) => Math.min(a, b)));
  const high = axes.map((values) => values.reduce((a, b) => Math.max(a, b)));
  const extent = Math.max(high[0] - low[0], high[1] - low[1]);
  const [smallest, largest] = sizes.map((side) => side - 2 * pen);
  const scale = extent > 0 ? Math.min(clip(extent, smallest, largest) / extent, mostGrowth) : 1;
  const move = (point, axis) => {
    const reach = (scale * (high[axis] - low[axis])) / 2 + pen;
    const middle = (low[axis] + high[axis]) / 2;
    const goal = clip(middle, Math.max(0.5 - shift, reach), Math.min(0.5 + shift, 1 - reach));
    return clip((point[axis] - middle) * scale + goal, 0, 1);
  };
  return pieces.map((piece) => piece.map((point) => [move(point, 0), move(point, 1)]));
}
