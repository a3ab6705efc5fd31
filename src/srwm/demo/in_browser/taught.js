// What this window has taught its network, as `srwm.demo.session` has it: all follows from the examples and their order.

import { drawImage } from "./drawing.js";
import { layersOf, matrixView, startOf, textOf } from "./matrices_view.js";
import { Network } from "./network.js";
import { bytesOf } from "./picture.js";
import { GONE, Refusal } from "./refusal.js";

const KEY = "taught"; // Where the window keeps the examples, so that a reload loses nothing.
const UNABLE = 409;
const UNKNOWN = -1;

export class Taught {
  #about;
  #shape;
  #network;
  #examples = [];
  #moments = [];
  #tasks = [];
  #next = 1;

  // about: what the page was built with, for this model; network: a promise of it.
  constructor(about, network) {
    this.#about = about;
    this.#shape = { channels: about.model.channels, size: about.model.image_size };
    this.#network = network;
    this.#begin();
  }

  reset() {
    this.#begin();
    this.#keep();
  }

  #begin() {
    this.#examples = [];
    this.#moments = [{ state: Network.start(this.#about.io), layers: startOf(this.#about.model.layers) }];
    this.#tasks = [this.#classNames(0)];
    this.#next = 1;
  }

  async teach({ label, drawing }) {
    const most = this.#about.model.limits.examples;
    if (this.#examples.length >= most) throw new Refusal(UNABLE, `there are ${most} examples, as many as fit; forget one, or reset`);
    await this.#learn({ number: this.#next, task: this.#tasks.length - 1, label, image: this.#imageOf(drawing) });
    this.#next++;
    this.#keep();
  }

  // Take an example away, and learn again from those after it, as if it had never been.
  async forget({ number }) {
    const place = this.#examples.findIndex((example) => example.number === number);
    if (place < 0) throw new Refusal(UNABLE, `there is no example ${number}`);
    const [examples, moments] = [this.#examples, this.#moments];
    this.#examples = examples.slice(0, place);
    this.#moments = moments.slice(0, place + 1);
    try {
      for (const example of examples.slice(place + 1)) await this.#learn(example);
    } catch (error) {
      [this.#examples, this.#moments] = [examples, moments];
      throw error;
    }
    this.#keep();
  }

  // Begin another task, with other classes; the network goes on as it is.
  switch() {
    const most = this.#about.most_tasks;
    if (this.#tasks.length >= most) throw new Refusal(UNABLE, `there are ${most} tasks, as many as fit; reset to begin anew`);
    this.#tasks.push(this.#classNames(this.#tasks.length));
    this.#keep();
  }

  rename({ label, name }) {
    this.#tasks.at(-1)[label] = name.trim().slice(0, this.#about.model.limits.name);
    this.#keep();
  }

  // Answer a drawing at a moment, and say what the network would become if it stayed; nothing is kept.
  async predict({ drawing, time, label }) {
    const image = this.#imageOf(drawing);
    const { outputs, layers } = await this.#step(image, label, this.#moments[time]);
    return {
      on: [...outputs.probabilities],
      off: [...outputs.unmodified_probabilities],
      pixels: textOf(image),
      layers: layers.map(matrixView),
    };
  }

  moment(time) {
    return { layers: this.#moments[time].layers.map(matrixView) };
  }

  view() {
    const sizes = this.#about.sizes;
    return {
      tasks: this.#tasks.map((names) => [...names]),
      examples: this.#examples.map(({ image, ...example }) => ({ ...example, pixels: textOf(image) })),
      moments: this.#moments.map(({ layers }) =>
        layers.map(({ norm, peak }, i) => ({ moved: norm / sizes[i], peak })),
      ),
      layers: this.#moments.at(-1).layers.map(matrixView),
    };
  }

  // Learn again what this window was taught before it was loaded anew.
  async restore() {
    const kept = sessionStorage.getItem(KEY);
    if (kept === null) throw new Refusal(GONE, "there is no such session; begin anew");
    const { tasks, examples, next } = JSON.parse(kept);
    this.#begin();
    for (const { pixels, ...example } of examples) await this.#learn({ ...example, image: bytesOf(pixels) });
    this.#tasks = tasks;
    this.#next = next;
    this.#keep();
  }

  #keep() {
    const examples = this.#examples.map(({ image, ...example }) => ({ ...example, pixels: textOf(image) }));
    sessionStorage.setItem(KEY, JSON.stringify({ tasks: this.#tasks, examples, next: this.#next }));
  }

  async #learn(example) {
    const { state, layers } = await this.#step(example.image, example.label, this.#moments.at(-1));
    this.#moments.push({ state, layers });
    this.#examples.push(example);
  }

  async #step(image, label, moment) {
    const network = await this.#network;
    const { outputs, state } = await network.step({ image, label: label ?? UNKNOWN }, moment.state);
    const layers = layersOf(outputs, this.#about.model.layers);
    if (!layers.every(({ norm }) => Number.isFinite(norm))) {
      throw new Refusal(UNABLE, "the matrices have grown beyond all numbers; reset, or forget an example");
    }
    return { outputs, state, layers };
  }

  #imageOf(drawing) {
    return drawing.pixels ? bytesOf(drawing.pixels) : drawImage(drawing.strokes, this.#about.look, this.#shape);
  }

  #classNames(task) {
    const { ways } = this.#about.model;
    return Array.from({ length: ways }, (_, i) => lettersOf(task * ways + i));
  }
}

// A, B, C, ... and AA, AB, ... after Z.
function lettersOf(number) {
  const more = Math.floor(number / 26);
  return (more ? lettersOf(more - 1) : "") + String.fromCharCode("A".charCodeAt(0) + (number % 26));
}
