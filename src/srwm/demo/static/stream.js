// The second tab: a network learns on an unbounded stream. All that is on the screen follows from the back end's last answer.

import { streams } from "./backend.js";
import { InstanceChart, LifeChart, NormChart, RecentChart } from "./charts.js";
import { Matrices } from "./matrices.js";
import { say } from "./message.js";
import { Now, deathOf, verdictOf } from "./now.js";
import { Player, SPEEDS } from "./player.js";
import { WindowSession } from "./window_session.js";

const find = (selector) => document.querySelector(selector);
const someSeed = () => Math.floor(1e4 * Math.random());
const percent = (right, all) => (all ? `${Math.round((100 * right) / all)}%` : "–");

export class StreamPage {
  #model;
  #session;
  #player;
  #now;
  #matrices;
  #charts;

  // model: what the back end says of its model of streams.
  constructor(model) {
    this.#model = model;
    find("#stream-about").textContent =
      `${model.name}: ${model.parameters.toLocaleString("en")} weights, trained on streams of ${model.sources.join(" and ")}. ` +
      "It has never seen these characters.";
    const chance = 1 / model.ways;
    this.#now = new Now(model);
    this.#matrices = new Matrices(model.layers, "stream-");
    this.#charts = {
      recent: new RecentChart(find("#recent-chart"), { most: model.recent, chance }),
      instances: new InstanceChart(find("#instance-chart"), { chance }),
      life: new LifeChart(find("#life-chart"), { chance }),
      norm: new NormChart(find("#norm-chart")),
    };
    this.#session = new WindowSession(streams, {
      key: "stream",
      opening: () => ({ seed: this.#view?.seed ?? someSeed() }),
      onView: (view) => this.#show(view),
    });
    this.#player = new Player({
      step: (count) => this.#live(count),
      most: model.limits.steps,
      onState: (isPlaying) => this.#showPlaying(isPlaying),
    });
    this.#prepareControls();
  }

  #prepareControls() {
    const isGated = this.#model.layers.some((layer) => layer.keeps_least !== null);
    find("#gates-note").hidden = !isGated;
    find("#plain-note").hidden = isGated || !this.#model.layers.length;
    find("#running-length").textContent = this.#model.running;
    find("#speed").replaceChildren(...SPEEDS.map(({ name }, i) => new Option(name, i, i === 1, i === 1)));
    find("#task-length").replaceChildren(...this.#model.task_lengths.map((length) => new Option(length, length)));
    find("#seed").max = this.#model.limits.seed;
    find("#play").addEventListener("click", () => this.#player.toggle());
    find("#step").addEventListener("click", () => this.#next());
    find("#speed").addEventListener("change", () => this.#setSpeed(Number(find("#speed").value)));
    find("#change").addEventListener("click", () => this.#change("change"));
    find("#task-length").addEventListener("change", () => this.#change("task_length", { images: Number(find("#task-length").value) }));
    find("#anew").addEventListener("click", () => this.#beginAnew());
    find("#seed").addEventListener("keydown", (event) => event.key === "Enter" && this.#beginAnew());
    document.addEventListener("keydown", (event) => this.#key(event));
  }

  get #view() {
    return this.#session.view;
  }

  enter() {
    this.#session.enter();
  }

  // Another tab is shown: nobody sees what would be computed.
  leave() {
    this.#player.pause();
  }

  #change(verb, body) {
    return this.#session.ask(verb, body);
  }

  // Show more images; say whether there can be others after them.
  async #live(count) {
    return (await this.#change("steps", { count })) && !this.#view.is_dead;
  }

  async #next() {
    this.#player.pause();
    if (await this.#change("steps", { count: 1 })) this.#speak(`Image ${this.#view.steps}. ${this.#verdict()}`);
  }

  #beginAnew() {
    const seed = find("#seed");
    if (!seed.value || !seed.checkValidity()) {
      say(`The number of a stream is a whole number from 0 to ${this.#model.limits.seed}`);
      return;
    }
    this.#player.pause();
    this.#change("reset", { seed: Number(seed.value) });
  }

  #setSpeed(place) {
    const inside = Math.max(0, Math.min(SPEEDS.length - 1, place));
    find("#speed").value = inside;
    this.#player.speed = SPEEDS[inside];
  }

  #show(view) {
    const { bins, steps } = view;
    this.#now.show(view);
    find("#lived").textContent = steps.toLocaleString("en");
    find("#running").textContent = percent(...view.running);
    find("#all-life").textContent = percent(view.right, steps);
    find("#norm").textContent = view.norm >= 1e6 ? view.norm.toExponential(1) : Number(view.norm.toPrecision(3)).toLocaleString("en");
    if (document.activeElement !== find("#seed")) find("#seed").value = view.seed;
    find("#task-length").value = view.task_length;
    for (const name of ["#play", "#step"]) find(name).disabled = view.is_dead;
    this.#charts.recent.show(view.recent, steps);
    this.#charts.instances.show(view.instances);
    this.#charts.life.show(bins.list, steps);
    this.#charts.norm.show(bins.list, steps);
    const scale = Math.max(0, ...view.layers.map((layer) => layer.peak));
    const moved = view.layers.map((layer) => layer.moved);
    this.#matrices.show(view.layers, { scale, moved, smooth: false });
  }

  #verdict() {
    return this.#view.is_dead ? deathOf(this.#view) : verdictOf(this.#view.shown.at(-1));
  }

  #showPlaying(isPlaying) {
    find("#play").textContent = isPlaying ? "Pause" : "Play";
    find("#play").setAttribute("aria-pressed", isPlaying);
    if (!isPlaying) this.#session.idle().then(() => this.#speakScore());
  }

  #speakScore() {
    if (!this.#view) return;
    const [right, all] = this.#view.running;
    this.#speak(`Paused after ${this.#view.steps} images; ${percent(right, all)} right of the last ${all}.`);
  }

  #speak(sentence) {
    find("#spoken").textContent = sentence;
  }

  #key(event) {
    const isTyping = event.target.closest("input:not([type=range]), select, textarea, dialog");
    if (find("#stream").hidden || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const speed = Number(find("#speed").value);
    if (event.key === "p") this.#player.toggle();
    else if (event.key === "n") this.#next();
    else if (event.key === "+" || event.key === "=") this.#setSpeed(speed + 1);
    else if (event.key === "-") this.#setSpeed(speed - 1);
    else if (event.key === "C") this.#change("change");
    else if (event.key === "R") this.#beginAnew();
    else return;
    event.preventDefault();
  }
}
