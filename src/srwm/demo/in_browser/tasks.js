// Tasks without end: characters of Strokes that no model has seen, some of them as negatives; `srwm.demo.tasks`.

import { repeated } from "./drawing.js";
import { drawStrokes } from "./strokes.js";
import { randomBits, streamKey } from "./strokes_random.js";

const STREAM = 0xde40;
const SEED_BITS = 2n ** 63n - 1n;

// Draw a task: a function of the seed and its number alone. about: what the page was built with, for this model.
export function drawTask({ model, source_names: names, inverted_ending: ending }, seed, number) {
  const key = streamKey(seed, STREAM, number);
  const { ways, channels, image_size: size } = model;
  const perClass = Math.ceil(Math.max(...model.task_lengths) / ways);
  const drawn = drawStrokes({ seed: key & SEED_BITS, size, classes: ways, perClass });
  const bits = randomBits(key, ways * perClass);
  const order = bits.map((_, i) => i).sort((a, b) => bits[a] - bits[b]);
  const negatives = names.filter((name) => name.endsWith(ending));
  const isInverted = negatives.length > 0 && randomBits(key + 1n, 1)[0] % 2 === 1;
  const positives = names.filter((name) => !name.endsWith(ending));
  const source = (isInverted ? negatives : [...positives, ...negatives])[0];
  const images = order.map((i) => repeated(isInverted ? drawn[i].map((value) => 255 - value) : drawn[i], channels));
  return { images, labels: order.map((i) => Math.floor(i / perClass)), source: names.indexOf(source), isInverted };
}
