// A sequence and the networks that read it: `srwm.demo.tracking_session`. All of it follows from the symbols.

import { layersOf, matrixView, startOf } from "./matrices_view.js";
import { Network } from "./network.js";
import { GONE, Refusal } from "./refusal.js";

export class Followed {
  #about;
  #networks;
  #shown;
  #before; // The moments before each of the symbols that are shown.
  #moment;
  #layers;

  // about: what the page was built with, for these models; networks: a promise of each.
  constructor(about, networks) {
    this.#about = about;
    this.#networks = networks;
    this.reset();
  }

  reset() {
    const each = (value) => this.#about.networks.map(value);
    [this.#shown, this.#before] = [[], []];
    this.#moment = {
      steps: 0,
      truth: 0,
      states: each(({ io }) => Network.start(io)),
      right: each(() => 0),
      firstErrors: each(() => null),
      bins: { width: 1, list: [] },
    };
    this.#layers = this.#about.model.networks.map(({ layers }) => startOf(layers));
  }

  // A sequence cannot be had back after a reload.
  restore() {
    throw new Refusal(GONE, "there is no such session; begin anew");
  }

  async read({ symbols }) {
    for (const symbol of symbols) await this.#read(symbol);
  }

  // Put another symbol at one of the places that are shown, and read again what came after it.
  async replace({ place, symbol }) {
    const at = this.#shown.findIndex((each) => each.place === place);
    if (at < 0) throw new Refusal(400, `place ${place} cannot be changed; expected one that is shown`);
    const after = this.#shown.slice(at + 1).map((each) => each.symbol);
    this.#moment = this.#before[at];
    this.#shown.length = this.#before.length = at;
    await this.read({ symbols: [symbol, ...after] });
  }

  async #read(symbol) {
    const networks = await Promise.all(this.#networks);
    const before = this.#moment;
    const { model, transitions, bounds } = this.#about;
    const truth = transitions[before.truth][symbol];
    const made = [];
    for (const [i, network] of networks.entries()) made.push(await network.step({ symbol }, before.states[i]));
    const probabilities = made.map(({ outputs }) => [...outputs.probabilities]);
    probabilities.forEach((each, i) => {
      if (each.every(Number.isFinite)) return;
      throw new Refusal(409, `the matrices of ${model.networks[i].name} have grown beyond all numbers; begin anew`);
    });
    const answers = probabilities.map((each) => each.indexOf(Math.max(...each)));
    const isRight = answers.map((answer) => answer === truth);
    const steps = before.steps + 1;
    this.#shown.push({ place: steps, symbol, truth, answers, probabilities });
    this.#before.push(before);
    for (const list of [this.#shown, this.#before]) if (list.length > bounds.shown) list.shift();
    this.#layers = made.map(({ outputs }, i) => layersOf(outputs, model.networks[i].layers));
    this.#moment = {
      steps,
      truth,
      states: made.map(({ state }) => state),
      right: before.right.map((count, i) => count + isRight[i]),
      firstErrors: before.firstErrors.map((first, i) => (first === null && !isRight[i] ? steps : first)),
      bins: added(before.bins, isRight, bounds.bins),
    };
  }

  view() {
    const { steps, truth, right, firstErrors, bins } = this.#moment;
    return {
      steps,
      truth,
      shown: [...this.#shown],
      right,
      first_errors: firstErrors,
      bins,
      layers: this.#layers.map((layers, i) =>
        layers.map((layer, j) => ({ ...matrixView(layer), moved: layer.norm / this.#about.networks[i].sizes[j] })),
      ),
    };
  }
}

const sum = (one, other) => one.map((value, i) => value + other[i]);

// Stretches with one more place: how many places each has, and how many of them each network had right.
function added({ width, list }, isRight, most) {
  if (!list.length || list.at(-1)[0] === width) {
    if (list.length === most) {
      list = list.flatMap((each, i) => (i % 2 ? [] : [sum(each, list[i + 1])]));
      width *= 2;
    }
    list = [...list, [0, ...isRight.map(() => 0)]];
  }
  return { width, list: [...list.slice(0, -1), sum(list.at(-1), [1, ...isRight.map(Number)])] };
}
