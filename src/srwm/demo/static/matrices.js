// The self-referential matrices: how far each weight has moved since the start, and the learning rates of the last step.

import { bytesOf } from "./picture.js";

const PARTS = ["y", "q", "k", "β", "f"];
const RATES = 3; // The part that makes the learning rates.
const FEW = 2; // Heads that are shown larger.
const MANY_TIMES = 10; // A share of the size that is no longer told in percent.
const KEPT_DIGITS = 4; // What a gate keeps may be as near to 1 as 0.9999.
const GAP = 1; // Columns that stay empty between two parts.
const POWER = 0.4; // Of the colour's depth: so that small changes are seen beside large ones.
const MOVE_MS = 450;
const still = matchMedia("(prefers-reduced-motion: reduce)");
const dark = matchMedia("(prefers-color-scheme: dark)");

export class Matrices {
  #layers;
  #panels = [];
  #root;
  #layerChoice;
  #headChoice;
  #ends;
  #shown = []; // Of each layer the weights' changes that are on the screen.
  #goal = []; // Those that they move to.
  #from = [];
  #began = 0;
  #frame = 0;
  #scale = 0;
  #rates = [];
  #kept = [];
  #moved = [];

  // layers: heads, rows and columns of each layer; prefix: of the ids of the elements that show them.
  constructor(layers, prefix = "") {
    const find = (id) => document.querySelector(`#${prefix}${id}`);
    this.#root = find("layers");
    this.#layerChoice = find("layer");
    this.#headChoice = find("head");
    this.#ends = { least: find("least"), most: find("most") };
    this.#layers = layers;
    const heads = Math.max(0, ...layers.map((layer) => layer.heads));
    fill(this.#layerChoice, "all", layers.length);
    fill(this.#headChoice, "all", heads);
    for (const layer of layers) {
      const size = layer.heads * layer.rows * sum(layer.columns);
      for (const list of [this.#shown, this.#goal, this.#from]) list.push(new Float32Array(size));
      this.#rates.push(null);
      this.#kept.push(null);
    }
    for (const choice of [this.#layerChoice, this.#headChoice]) choice.addEventListener("change", () => this.#build());
    dark.addEventListener("change", () => this.#paint());
    this.#build();
  }

  // Show a moment. scale: the change that has the full colour; moved: share of its size by which each layer has moved.
  show(layers, { scale, moved, smooth }) {
    this.#scale = scale;
    layers.forEach((layer, i) => {
      const bytes = new Int8Array(bytesOf(layer.change).buffer);
      for (let j = 0; j < bytes.length; j++) this.#goal[i][j] = (bytes[j] * layer.peak) / 127;
      this.#from[i].set(this.#shown[i]);
      this.#rates[i] = layer.rates;
      this.#kept[i] = layer.kept ?? null;
    });
    this.#say(moved);
    this.#paintRates();
    this.#began = smooth && !still.matches ? performance.now() : -MOVE_MS;
    cancelAnimationFrame(this.#frame);
    this.#move();
  }

  #move() {
    const done = Math.min(1, (performance.now() - this.#began) / MOVE_MS);
    const share = 1 - (1 - done) ** 3;
    this.#shown.forEach((shown, i) => {
      for (let j = 0; j < shown.length; j++) shown[j] = this.#from[i][j] + share * (this.#goal[i][j] - this.#from[i][j]);
    });
    this.#paint();
    if (done < 1) this.#frame = requestAnimationFrame(() => this.#move());
  }

  #build() {
    const layer = this.#layerChoice.value;
    const head = this.#headChoice.value;
    this.#panels = [];
    this.#layers.forEach((shape, i) => {
      if (layer !== "all" && Number(layer) !== i) return;
      this.#panels.push(this.#panel(shape, i, head === "all" ? null : Math.min(Number(head), shape.heads - 1)));
    });
    this.#root.replaceChildren(...this.#panels.map((panel) => panel.element));
    if (!this.#layers.length) this.#root.textContent = "This model has no matrices that modify themselves.";
    this.#say(this.#moved);
    this.#paintRates();
    this.#paint();
  }

  #say(moved) {
    this.#moved = moved;
    for (const panel of this.#panels) {
      const share = moved[panel.index];
      panel.moved.textContent = share ? `moved by ${shareText(share)} its size` : "as it began";
    }
    const number = this.#scale.toPrecision(2);
    this.#ends.least.textContent = this.#scale ? `−${number}` : "less";
    this.#ends.most.textContent = this.#scale ? `+${number}` : "more";
  }

  #panel(shape, index, head) {
    const element = make("section", "layer");
    const title = make("div", "layer-title");
    const name = make("h3", "", `Layer ${index + 1}`);
    const moved = make("span", "quiet small");
    title.append(name, moved);
    const heads = head === null ? [...Array(shape.heads).keys()] : [head];
    const maps = make("div", head === null ? "maps" : "maps is-single");
    maps.classList.toggle("is-few", head === null && heads.length <= FEW);
    const canvases = heads.map((h) => this.#map(shape, index, h, head !== null, maps));
    const [rates, kept] = [make("div", "rates"), make("div", "rates kept")];
    element.append(title, maps, rates);
    if (shape.keeps_least) element.append(kept);
    return { element, index, head, heads, canvases, moved, rates, kept };
  }

  #map(shape, index, head, isSingle, maps) {
    const button = make("button", "map");
    button.type = "button";
    const whole = isSingle ? "show all heads" : "show this head alone";
    button.setAttribute("aria-label", `Layer ${index + 1}, head ${head + 1}: ${whole}`);
    button.title = `Head ${head + 1}: ${whole}`;
    button.addEventListener("click", () => {
      this.#headChoice.value = isSingle ? "all" : String(head);
      this.#build();
    });
    const letters = make("span", "letters");
    shape.columns.forEach((columns, i) => {
      const letter = make("span", "", PARTS[i]);
      letter.style.flexGrow = columns;
      letters.append(letter);
    });
    const canvas = document.createElement("canvas");
    canvas.width = sum(shape.columns) + GAP * (shape.columns.length - 1);
    canvas.height = shape.rows;
    button.append(letters, canvas);
    maps.append(button);
    return canvas;
  }

  #paint() {
    const colors = this.#colors();
    for (const { index, heads, canvases } of this.#panels) {
      heads.forEach((head, i) => this.#paintMap(canvases[i], this.#layers[index], this.#shown[index], head, colors));
    }
  }

  #paintMap(canvas, shape, changes, head, { less, none, more }) {
    const context = canvas.getContext("2d");
    const image = new ImageData(canvas.width, canvas.height);
    const width = sum(shape.columns);
    for (let row = 0; row < shape.rows; row++) {
      let column = 0;
      let x = 0;
      for (const columns of shape.columns) {
        for (let i = 0; i < columns; i++, column++, x++) {
          const change = changes[(head * shape.rows + row) * width + column];
          const depth = this.#scale ? Math.min(1, Math.abs(change) / this.#scale) ** POWER : 0;
          const color = change < 0 ? less : more;
          const at = 4 * (row * canvas.width + x);
          for (let c = 0; c < 3; c++) image.data[at + c] = none[c] + depth * (color[c] - none[c]);
          image.data[at + 3] = 255;
        }
        x += GAP;
      }
    }
    context.putImageData(image, 0, 0);
  }

  #paintRates() {
    for (const { index, head, rates, kept } of this.#panels) {
      const { columns, keeps_least: least } = this.#layers[index];
      const valuesOf = (rows, part) => (rows ? (head === null ? rows : [rows[head]]).map((row) => row[part]) : []);
      const bars = PARTS.slice(0, columns[RATES]).map((part, i) =>
        rateBar(columns[RATES] === 1 ? "all" : part, valuesOf(this.#rates[index], i)),
      );
      rates.replaceChildren(make("span", "quiet small rates-title", "Learning rates"), ...bars);
      // Of two gates, the first is for what makes the output.
      const gated = columns[RATES + 1] === 2 ? ["y", "q k β f"] : ["all"];
      const gauges = gated.map((name, i) => rateBar(name, valuesOf(this.#kept[index], i), least, KEPT_DIGITS));
      kept.replaceChildren(make("span", "quiet small rates-title", "Keeps, each step"), ...gauges);
    }
  }

  #colors() {
    const style = getComputedStyle(this.#root);
    const read = (name) => style.getPropertyValue(name).trim().split(/\s+/).map(Number);
    return { less: read("--heat-less"), none: read("--heat-none"), more: read("--heat-more") };
  }
}

// A bar as long as the mean of some rates, from least to 1, with a dot for each of them.
function rateBar(name, values, least = 0, digits = 2) {
  const percent = (value) => `${(100 * (value - least)) / (1 - least)}%`;
  const bar = make("div", "rate");
  const track = make("span", "track");
  const mean = values.length ? sum(values) / values.length : 0;
  const full = make("span", "fill");
  full.style.width = values.length ? percent(mean) : "0";
  track.append(full);
  if (values.length > 1) {
    for (const value of values) {
      const dot = make("i", "");
      dot.style.left = percent(value);
      track.append(dot);
    }
  }
  bar.append(make("b", "", name), track, make("span", "number", values.length ? mean.toFixed(digits) : "–"));
  return bar;
}

function shareText(share) {
  if (share >= MANY_TIMES) return `${Math.round(share).toLocaleString("en")} times`;
  return `${(100 * share).toFixed(share < 0.1 ? 1 : 0)}% of`;
}

function make(tag, className, text = "") {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.textContent = text;
  return element;
}

function fill(select, first, number) {
  const options = [new Option(first, first), ...[...Array(number).keys()].map((i) => new Option(String(i + 1), String(i)))];
  select.replaceChildren(...options);
}

function sum(numbers) {
  return numbers.reduce((total, each) => total + each, 0);
}
