// A stream and its history: `srwm.demo.stream_session`. Step n is a function of the seed and n alone.

import { History } from "./history.js";
import { layersOf, matrixView, normOf, startOf, textOf } from "./matrices_view.js";
import { Network } from "./network.js";
import { GONE, Refusal } from "./refusal.js";
import { drawTask } from "./tasks.js";

const UNKNOWN = -1;

export class Life {
  #about;
  #network;
  #seed;
  #taskLength;
  #task;
  #place;
  #drawn;
  #history;
  #state;
  #previous; // The label of the image before.
  #layers;
  #norm;
  #isDead;

  // about: what the page was built with, for this model; network: a promise of it.
  constructor(about, network) {
    this.#about = about;
    this.#network = network;
    this.#taskLength = about.model.task_lengths[1];
    this.reset({ seed: 0 });
  }

  reset({ seed }) {
    [this.#seed, this.#task, this.#place, this.#drawn] = [seed, 0, 0, null];
    [this.#state, this.#previous] = [Network.start(this.#about.io), UNKNOWN];
    [this.#layers, this.#norm, this.#isDead] = [startOf(this.#about.model.layers), 0, false];
    this.#history = new History({ ...this.#about.bounds, recent: this.#about.model.recent, running: this.#about.model.running });
  }

  // A life cannot be had back after a reload: it would have to be lived again.
  restore() {
    throw new Refusal(GONE, "there is no such session; begin anew");
  }

  // Show so many more images, each with the label of the one before; fewer if the matrices die of it.
  async steps({ count }) {
    for (let left = count; left > 0 && !this.#isDead; left--) await this.#step();
  }

  // Say how many images classes stay for, those of the present task too.
  task_length({ images }) {
    this.#taskLength = images;
  }

  // Let other classes come with the next image.
  change() {
    if (this.#place) this.#beginNextTask();
  }

  #beginNextTask() {
    [this.#task, this.#place, this.#drawn] = [this.#task + 1, 0, null];
  }

  async #step() {
    const network = await this.#network;
    if (this.#place >= this.#taskLength) this.#beginNextTask();
    this.#drawn ??= drawTask(this.#about, this.#seed, this.#task);
    const { images, labels, source, isInverted } = this.#drawn;
    const [image, label] = [images[this.#place], labels[this.#place]];
    const { outputs, state } = await network.step({ image, previous_label: this.#previous, source }, this.#state);
    const probabilities = [...outputs.probabilities];
    const norm = normOf(this.#about.learnt.map((name) => normOf(state[name])));
    if (!Number.isFinite(norm) || !probabilities.every(Number.isFinite)) {
      this.#isDead = true;
      return;
    }
    [this.#state, this.#previous, this.#norm] = [state, label, norm];
    this.#layers = layersOf(outputs, this.#about.model.layers);
    this.#place++;
    const instance = labels.slice(0, this.#place).filter((each) => each === label).length;
    const answer = probabilities.indexOf(Math.max(...probabilities));
    this.#history.add(
      {
        step: this.#history.steps + 1, task: this.#task, place: this.#place, instance, label, answer, probabilities,
        pixels: textOf(image), is_inverted: isInverted,
      },
      norm,
    );
  }

  view() {
    const history = this.#history;
    return {
      seed: this.#seed,
      task_length: this.#taskLength,
      task: this.#task,
      place: this.#place,
      steps: history.steps,
      right: history.right,
      running: history.running,
      recent: history.recent.map((each) => [...each]),
      shown: [...history.shown],
      instances: history.instances.map((each) => [...each]),
      bins: { width: history.binWidth, list: history.bins.map((bin) => [...bin]) },
      norm: this.#norm,
      is_dead: this.#isDead,
      layers: this.#layers.map((layer, i) => ({ ...matrixView(layer), moved: layer.norm / this.#about.sizes[i] })),
    };
  }
}
