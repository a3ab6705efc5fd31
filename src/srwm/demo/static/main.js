// The page: what the back end knows of it is `view`; everything on the screen follows from that, the slider and the pads.

import { Answers } from "./answers.js";
import { drawings, loaded, model as knownModel, readPicture, samples } from "./backend.js";
import { Boxes, takeFiles } from "./boxes.js";
import { Latest } from "./latest.js";
import { Matrices } from "./matrices.js";
import { say, sayForGood, unsay } from "./message.js";
import { Pad } from "./pad.js";
import { paintPixels } from "./picture.js";
import { GONE } from "./refusal.js";
import { Timeline } from "./timeline.js";

const find = (selector) => document.querySelector(selector);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const SILENT_MS = 400; // So long nobody asks what the page is waiting for.
const SHOW_ME_MS = matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 650;

class Page {
  #model;
  #shape;
  #session = null;
  #view = null;
  #time = 0; // Examples that the network that is shown has seen.
  #age = 0; // Grows with every change of the session: answers to older questions are no longer wanted.
  #answer = null;
  #busy = false;
  #boxes;
  #question;
  #answers;
  #timeline;
  #matrices;
  #asked = new Latest((what) => this.#safely(() => this.#ask(what)), (isBusy) => this.#setBusy(isBusy));
  #looked = new Latest((time) => this.#safely(() => this.#lookAt(time)));

  constructor(model) {
    this.#model = model;
    this.#shape = { channels: model.channels, size: model.image_size };
    find("#about").textContent =
      `${model.name}: ${model.parameters.toLocaleString("en")} weights, trained on ${model.source}. ` +
      "It has never seen your drawings.";
    this.#boxes = new Boxes(model, {
      draw: (label) => this.#preview(label),
      teach: (label) => this.#teach(label),
      rename: (label, name) => this.#rename(label, name),
      picture: (label, file) => this.#take(file, this.#boxes.pad(label)),
    });
    this.#question = new Pad(find("#question"), {
      pen: model.pen,
      shape: this.#shape,
      onChange: () => this.#refresh({ live: true }),
    });
    find("#question").setAttribute("role", "application");
    find("#question").setAttribute("aria-label", "Draw what it should name. Arrows move the pen, space sets it down.");
    this.#answers = new Answers(model.ways);
    this.#timeline = new Timeline(this.#shape, {
      onTime: (time) => this.#goTo(time),
      onForget: (number) => this.#change("forget", { number }),
    });
    this.#matrices = new Matrices(model.layers);
    takeFiles(find("#question-file"), find(".question"), (file) => this.#take(file, this.#question));
    find("#question-clear").addEventListener("click", () => this.#question.clear());
    find("#forget").addEventListener("click", () => this.#forget());
    find("#switch").addEventListener("click", () => this.#switch());
    find("#reset").addEventListener("click", () => this.#reset());
    find("#show-me").addEventListener("click", () => this.#safely(() => this.#showMe()));
    find("#open-keys").addEventListener("click", () => find("#keys").showModal());
    document.addEventListener("keydown", (event) => this.#key(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#repaint());
  }

  // Go on with the session of this window, if there is one still.
  async begin() {
    const known = sessionStorage.getItem("session");
    try {
      if (known) this.#update(await drawings.show(known), known);
    } catch (error) {
      // A server that is busy has the session still.
      if (error.status !== GONE) throw error;
      sessionStorage.removeItem("session");
    }
    // Without a session nothing can be done: what is wrong stays on the page.
    if (!this.#session) await this.#open();
    await loading;
    document.body.dataset.ready = "true";
  }

  async #open() {
    const view = await drawings.open();
    sessionStorage.setItem("session", view.session);
    this.#update(view, view.session);
  }

  get #now() {
    return this.#view.examples.length;
  }

  // The task that the shown moment belongs to.
  get #taskThen() {
    if (this.#time === this.#now) return this.#view.tasks.length - 1;
    return this.#view.examples[Math.max(0, this.#time - 1)].task;
  }

  get #names() {
    return this.#view.tasks[this.#taskThen];
  }

  #update(view, session = this.#session) {
    this.#session = session;
    this.#view = view;
    this.#age++;
    this.#time = view.examples.length;
    this.#looked.drop();
    const tasks = view.tasks.length;
    find("#task").hidden = tasks === 1;
    find("#task").textContent = `task ${tasks}`;
    this.#boxes.show(view);
    this.#timeline.show(view);
    this.#rest(view.layers);
    this.#mark();
    this.#refresh();
  }

  // Everything that says which moment is shown.
  #mark() {
    const task = this.#taskThen;
    const seen = this.#view.examples.slice(0, this.#time).filter((example) => example.task === task);
    this.#timeline.mark(this.#time, this.#now);
    this.#answers.label(this.#names, new Set(seen.map((example) => example.label)));
    find("#compared").textContent = this.#time
      ? "The same network, the same weights to begin with. Turned off, nothing that you teach can reach it."
      : "Nothing is taught yet, so both can only guess, and they guess the same. Teach it first.";
    const example = this.#view.examples[this.#time - 1];
    find("#forget").disabled = !example;
    find("#forget").textContent = example ? `Forget ${this.#view.tasks[example.task][example.label]}` : "Forget";
    find("#show-me").disabled = this.#view.examples.some((each) => each.task === this.#view.tasks.length - 1);
  }

  #scale(layers) {
    const peaks = [...this.#view.moments.flat(), ...layers].map((layer) => layer.peak);
    return Math.max(0, ...peaks);
  }

  // Show the network as it is at the moment of the slider, with no drawing in front of it.
  #rest(layers) {
    const moved = this.#view.moments[this.#time].map((layer) => layer.moved);
    this.#matrices.show(layers, { scale: this.#scale(layers), moved, smooth: true });
    const examples = this.#time === 1 ? "example" : "examples";
    this.#sayMoment(this.#time ? `After ${this.#time} ${examples}` : "Nothing taught yet: every weight is where it began");
  }

  // Show what the network would become if a drawing stayed.
  #live(layers, sentence) {
    const moved = this.#view.moments[this.#time].map((layer) => layer.moved);
    this.#matrices.show(layers, { scale: this.#scale(layers), moved, smooth: false });
    this.#sayMoment(sentence, true);
  }

  #sayMoment(sentence, isLive = false) {
    find("#moment").textContent = sentence;
    find("#moment").classList.toggle("is-live", isLive);
  }

  // The question is to be answered (anew).
  #refresh({ live = false } = {}) {
    const drawing = this.#question.drawing();
    if (drawing) {
      this.#asked.ask({ drawing, label: null, live });
      return;
    }
    this.#asked.drop();
    this.#answer = null;
    this.#answers.show(null);
    find("#sees-frame").hidden = true;
    if (live) this.#looked.ask(this.#time);
  }

  // Something is being drawn in a box.
  #preview(label) {
    if (this.#time !== this.#now) this.#goTo(this.#now);
    const pad = this.#boxes.pad(label);
    if (pad.isDraft) {
      this.#asked.ask({ drawing: pad.drawing(), label, live: true });
    } else {
      this.#asked.drop();
      this.#looked.ask(this.#time);
    }
  }

  #setBusy(isBusy) {
    find("#answers").setAttribute("aria-busy", isBusy);
  }

  async #ask({ drawing, label, live }) {
    const age = this.#age;
    const answer = await drawings.ask(this.#session, "predict", { drawing, time: this.#time, label });
    // Meanwhile the drawing may have been cleared or taught, and the network may have changed.
    const pad = label === null ? this.#question : this.#boxes.pad(label);
    if (!pad.isDraft) return;
    if (age !== this.#age) {
      if (label === null) this.#refresh({ live });
      return;
    }
    if (label === null) {
      this.#answer = answer;
      this.#answers.show(answer, this.#names);
      paintPixels(find("#sees"), answer.pixels, this.#shape);
      find("#sees-frame").hidden = false;
      if (live) this.#live(answer.layers, "While you draw: what your drawing does to them; this is not kept");
    } else {
      this.#live(answer.layers, `While you draw: what teaching this ${this.#names[label]} would do to them`);
    }
  }

  async #lookAt(time) {
    const age = this.#age;
    const { layers } = await drawings.moment(this.#session, time);
    if (age === this.#age && time === this.#time) this.#rest(layers);
  }

  #goTo(time) {
    if (time < 0 || time > this.#now || time === this.#time) return;
    this.#time = time;
    this.#age++;
    this.#mark();
    this.#answers.show(this.#answer, this.#names);
    this.#looked.ask(time);
    this.#refresh();
  }

  // Ask the back end to change the session; first, what was asked of it as it is must have come.
  async #change(verb, body = {}) {
    await Promise.all([this.#looked.idle(), this.#asked.idle()]);
    await this.#safely(async () => this.#update(await drawings.ask(this.#session, verb, body)));
  }

  async #teach(label) {
    const pad = this.#boxes.pad(label);
    if (this.#busy || !pad.isDraft) return;
    this.#busy = true;
    await this.#safely(async () => {
      const view = await drawings.ask(this.#session, "teach", { label, drawing: pad.drawing() });
      pad.keep(view.examples.at(-1).number);
      this.#update(view);
    });
    this.#busy = false;
  }

  async #rename(label, name) {
    if (name.trim() && name.trim() !== this.#view.tasks.at(-1)[label]) await this.#change("rename", { label, name });
    this.#boxes.show(this.#view);
  }

  #forget() {
    const example = this.#view.examples[this.#time - 1];
    if (example) this.#change("forget", { number: example.number });
  }

  async #switch() {
    this.#boxes.empty();
    this.#question.blank();
    await this.#change("switch");
  }

  async #reset() {
    this.#boxes.empty();
    this.#question.blank();
    await this.#change("reset");
  }

  async #take(file, pad) {
    if (file.size > this.#model.limits.picture_bytes) {
      const most = Math.floor(this.#model.limits.picture_bytes / 2 ** 20);
      say(`${file.name} is too large; at most ${most} megabytes are taken.`);
      return;
    }
    await this.#safely(async () => {
      const { pixels } = await readPicture(file, find("#ink").value);
      pad.show(pixels);
      pad.onChange();
    });
  }

  // Teach made-up characters, one after the other, and ask about one of them.
  async #showMe() {
    if (this.#busy) return;
    this.#busy = true;
    find("#show-me").disabled = true;
    try {
      const pairs = await samples(Math.floor(1e6 * Math.random()));
      this.#boxes.empty();
      this.#question.blank();
      for (const [label, [pixels]] of pairs.entries()) {
        this.#update(await drawings.ask(this.#session, "teach", { label, drawing: { pixels } }));
        find("#show-me").disabled = true;
        await pause(SHOW_ME_MS);
      }
      this.#question.show(pairs[Math.floor(pairs.length * Math.random())][1]);
      this.#refresh({ live: true });
    } finally {
      this.#busy = false;
      this.#mark();
    }
  }

  #key(event) {
    const isTyping = event.target.closest("input:not([type=range]), select, textarea, dialog");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "?") find("#keys").showModal();
    else if (find("#teach").hidden) return;
    else if (/^[1-9]$/.test(event.key)) this.#boxes.focus(Number(event.key) - 1);
    else if (event.key === "0") this.#question.canvas.focus();
    else if (event.key === "[") this.#goTo(this.#time - 1);
    else if (event.key === "]") this.#goTo(this.#time + 1);
    else if (event.key === "F") this.#forget();
    else if (event.key === "S") this.#switch();
    else if (event.key === "R") this.#reset();
    else return;
    event.preventDefault();
  }

  #repaint() {
    this.#question.paint();
    for (let label = 0; label < this.#model.ways; label++) this.#boxes.pad(label).paint();
  }

  // Do something; if it fails, say why.
  async #safely(action) {
    try {
      await action();
    } catch (error) {
      say(error.message);
      // The server was started anew, or had too many sessions.
      if (error.status === GONE && this.#session) {
        this.#session = null;
        await this.#safely(() => this.#open());
      }
    }
  }
}

// Wait for the network; say so if that takes long enough to be noticed.
async function load() {
  const timer = setTimeout(() => sayForGood("The network is on its way", { isCalm: true }), SILENT_MS);
  try {
    await loaded;
    unsay();
  } finally {
    // Also when it cannot come: what is wrong must not be said over.
    clearTimeout(timer);
  }
}

const loading = load();
try {
  await new Page(await knownModel()).begin();
} catch (error) {
  sayForGood(error.message);
}
