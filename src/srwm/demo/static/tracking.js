// The third tab: networks of one language read what one types, side by side. All that is on the screen follows from the
// back end's last answer.

import { trackings } from "./backend.js";
import { LengthChart } from "./charts.js";
import { Matrices } from "./matrices.js";
import { Player, SPEEDS } from "./player.js";
import { Sequence } from "./sequence.js";
import { WindowSession } from "./window_session.js";

const find = (selector) => document.querySelector(selector);
const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)}%`;

export class TrackingPage {
  #model;
  #session;
  #player;
  #sequence;
  #chart;
  #rows = [];
  #shown; // The network whose matrices are shown.
  #matrices;

  // model: what the back end says of its networks.
  constructor(model) {
    this.#model = model;
    const named = model.networks.map(({ name, parameters }) => `${name}: ${parameters.toLocaleString("en")} weights`);
    find("#tracking-about").textContent =
      `${named.join("; ")}. Trained on sequences of up to ${model.trained_length} symbols.`;
    find("#task-title").textContent = `${model.title[0].toUpperCase()}${model.title.slice(1)}`;
    this.#sequence = new Sequence(model, { onSymbol: (place, symbol) => this.#ask("replace", { place, symbol }) });
    this.#chart = new LengthChart(find("#length-chart"), {
      names: model.networks.map(({ title }) => title),
      chance: 1 / model.answers.length,
      trained: model.trained_length,
    });
    this.#shown = Math.max(0, model.networks.findIndex(({ layers }) => layers.length));
    this.#matrices = new Matrices(model.networks[this.#shown].layers, "tracking-");
    find("#tracking-matrices-name").textContent = model.networks[this.#shown].title;
    this.#session = new WindowSession(trackings, { key: "tracking", opening: () => ({}), onView: (view) => this.#show(view) });
    this.#player = new Player({
      step: (count) => this.#ask("read", { symbols: Array.from({ length: count }, () => this.#someSymbol()) }),
      most: model.limits.symbols,
      onState: (isPlaying) => this.#showPlaying(isPlaying),
    });
    this.#prepareControls();
    this.#prepareRows();
  }

  enter() {
    this.#session.enter();
  }

  // Another tab is shown: nobody sees what would be computed.
  leave() {
    this.#player.pause();
  }

  #prepareControls() {
    find("#trained-length").textContent = this.#model.trained_length;
    const buttons = this.#model.symbols.map((name, symbol) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.setAttribute("aria-label", `Read ${name}`);
      button.addEventListener("click", () => this.#type(symbol));
      return button;
    });
    find("#symbols").replaceChildren(...buttons);
    find("#tracking-speed").replaceChildren(...SPEEDS.map(({ name }, i) => new Option(name, i, i === 1, i === 1)));
    find("#tracking-speed").addEventListener("change", () => this.#setSpeed(Number(find("#tracking-speed").value)));
    find("#tracking-play").addEventListener("click", () => this.#player.toggle());
    find("#tracking-anew").addEventListener("click", () => this.#beginAnew());
    document.addEventListener("keydown", (event) => this.#key(event));
  }

  #prepareRows() {
    const body = find("#trackers tbody");
    this.#model.networks.forEach(({ title, name }, i) => {
      const row = body.insertRow();
      const head = document.createElement("th");
      head.scope = "row";
      head.className = `network-${i}`;
      head.textContent = title;
      head.title = name;
      row.append(head);
      this.#rows.push(Array.from({ length: 3 }, () => row.insertCell()));
    });
  }

  #ask(verb, body) {
    return this.#session.ask(verb, body);
  }

  #someSymbol() {
    return Math.floor(this.#model.symbols.length * Math.random());
  }

  async #type(symbol) {
    this.#player.pause();
    if (await this.#ask("read", { symbols: [symbol] })) this.#speak(this.#sequence.told());
  }

  #beginAnew() {
    this.#player.pause();
    this.#ask("reset");
  }

  #setSpeed(place) {
    const inside = Math.max(0, Math.min(SPEEDS.length - 1, place));
    find("#tracking-speed").value = inside;
    this.#player.speed = SPEEDS[inside];
  }

  #show(view) {
    const { steps, right, first_errors: firstErrors, bins } = view;
    const now = view.shown.at(-1);
    this.#sequence.show(view.shown);
    find("#tracking-truth").hidden = !now;
    find("#tracking-truth").textContent = now ? `the truth: ${this.#model.answers[now.truth]}` : "";
    this.#rows.forEach(([says, share, first], i) => {
      const isRight = now?.answers[i] === now?.truth;
      const answer = now?.answers[i];
      says.textContent = now ? `${isRight ? "✓" : "✗"} ${this.#model.answers[answer]}, ${percent(now.probabilities[i][answer])} sure` : "–";
      says.className = now ? (isRight ? "is-right" : "is-wrong") : "";
      share.textContent = steps ? percent(right[i] / steps, right[i] === steps ? 0 : 1) : "–";
      first.textContent = firstErrors[i] === null ? "none" : firstErrors[i].toLocaleString("en");
    });
    find("#read-symbols").textContent = steps.toLocaleString("en");
    find("#times-trained").textContent = (steps / this.#model.trained_length).toLocaleString("en", { maximumFractionDigits: 1 });
    this.#chart.show(bins.list, steps);
    const layers = view.layers[this.#shown];
    const scale = Math.max(0, ...layers.map((layer) => layer.peak));
    this.#matrices.show(layers, { scale, moved: layers.map((layer) => layer.moved), smooth: false });
  }

  #showPlaying(isPlaying) {
    find("#tracking-play").textContent = isPlaying ? "Pause" : "Let it run";
    find("#tracking-play").setAttribute("aria-pressed", isPlaying);
    if (!isPlaying) this.#session.idle().then(() => this.#speakScore());
  }

  #speakScore() {
    const { steps, right } = this.#session.view ?? { steps: 0 };
    if (!steps) return;
    const told = this.#model.networks.map(({ title }, i) => `${title}: ${right[i].toLocaleString("en")} right`);
    this.#speak(`Paused after ${steps} symbols. ${told.join("; ")}.`);
  }

  #speak(sentence) {
    find("#spoken").textContent = sentence;
  }

  #key(event) {
    const isTyping = event.target.closest("input, select, textarea, dialog");
    if (find("#tracking").hidden || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const symbol = this.#model.symbols.indexOf(event.key);
    const speed = Number(find("#tracking-speed").value);
    if (symbol >= 0) this.#type(symbol);
    else if (event.key === "p") this.#player.toggle();
    else if (event.key === "n") this.#type(this.#someSymbol());
    else if (event.key === "+" || event.key === "=") this.#setSpeed(speed + 1);
    else if (event.key === "-") this.#setSpeed(speed - 1);
    else if (event.key === "R") this.#beginAnew();
    else return;
    event.preventDefault();
  }
}
