// Charts in SVG: as wide as there is room, and drawn again when that changes. Colours come from the style sheets.

const NAMESPACE = "http://www.w3.org/2000/svg";
const MARGIN = { left: 42, right: 8, top: 8, bottom: 20 };
const TOGETHER = 10; // Answers that a point of the recent accuracy stands for.
const LOGARITHMIC = 100; // A norm that grows by more than this is shown on a logarithmic scale.

const NOTHING = "No images yet.";

const percent = (share) => `${Math.round(100 * share)}%`;
const number = (value) => (value >= 1e6 ? value.toExponential(0) : Number(value.toPrecision(3)).toLocaleString("en"));

class Chart {
  #svg = make("svg", { role: "img" });
  #root;
  #parts = () => [];

  constructor(root) {
    this.#root = root;
    root.append(this.#svg);
    new ResizeObserver(() => this.#draw()).observe(root);
  }

  // Show parts that a function makes for a box; label: what they say, for those who cannot see them.
  set(label, parts) {
    this.#svg.setAttribute("aria-label", label);
    this.#parts = parts;
    this.#draw();
  }

  #draw() {
    const { clientWidth: width, clientHeight: height } = this.#root;
    if (!width || !height) return;
    this.#svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const right = width - MARGIN.right;
    const bottom = height - MARGIN.bottom;
    const { left, top } = MARGIN;
    this.#svg.replaceChildren(...this.#parts({ left, top, right, bottom, width: right - left, height: bottom - top }));
  }
}

// Accuracy over the last images.
export class RecentChart extends Chart {
  #most;
  #chance;

  constructor(root, { most, chance }) {
    super(root);
    this.#most = most;
    this.#chance = chance;
  }

  // recent: task and whether the answer was right, image by image; steps: images in all.
  show(recent, steps) {
    const shares = recent.map((_, i) => {
      const last = recent.slice(Math.max(0, i + 1 - TOGETHER), i + 1);
      return last.reduce((total, [, right]) => total + right, 0) / last.length;
    });
    const changes = recent.filter(([task], i) => i > 0 && recent[i - 1][0] !== task).length;
    const last = Math.min(TOGETHER, recent.length);
    const label = recent.length
      ? `The last ${recent.length} images: ${percent(shares.at(-1))} right of the last ${last}; the classes changed ${changes} times.`
      : NOTHING;
    this.set(label, (box) => {
      const x = (i) => box.left + ((i + 0.5) * box.width) / this.#most;
      const parts = axes(box, this.#chance);
      recent.forEach(([task, right], i) => {
        if (i > 0 && recent[i - 1][0] !== task) parts.push(line(x(i - 0.5), box.top, x(i - 0.5), box.bottom, "change"));
        if (!right) parts.push(line(x(i), box.bottom - 6, x(i), box.bottom, "error"));
      });
      parts.push(path(shares.map((share, i) => [x(i), yOf(box, share)])));
      if (recent.length) {
        parts.push(text(x(0), box.bottom + 14, `image ${(steps - recent.length + 1).toLocaleString("en")}`, "start"));
        if (recent.length > this.#most / 3) parts.push(text(x(recent.length - 1), box.bottom + 14, steps.toLocaleString("en"), "end"));
      }
      return parts;
    });
  }
}

// Accuracy on the first, second, ... image of a class since the change.
export class InstanceChart extends Chart {
  #chance;

  constructor(root, { chance }) {
    super(root);
    this.#chance = chance;
  }

  // instances: right answers and images of each; the last stands for all later ones.
  show(instances) {
    const names = instances.map((_, i) => (i === instances.length - 1 ? `${i + 1}+` : `${i + 1}`));
    const told = instances.map(([right, all], i) => (all ? `${names[i]}: ${percent(right / all)}` : null)).filter(Boolean);
    const label = told.length ? `Right by image of a class since the change: ${told.join(", ")}.` : NOTHING;
    this.set(label, (box) => {
      const parts = axes(box, this.#chance);
      const step = box.width / instances.length;
      instances.forEach(([right, all], i) => {
        const middle = box.left + (i + 0.5) * step;
        parts.push(text(middle, box.bottom + 14, names[i], "middle"));
        if (!all) return;
        const y = yOf(box, right / all);
        const [width, height] = [0.72 * step, box.bottom - y];
        parts.push(make("rect", { x: middle - width / 2, y, width, height, rx: 2, class: "column" }));
        const isHigh = height > 22;
        parts.push(text(middle, isHigh ? y + 14 : y - 4, String(Math.round((100 * right) / all)), "middle", isHigh ? "inside" : ""));
      });
      return parts;
    });
  }
}

// Accuracy over a whole life.
export class LifeChart extends Chart {
  #chance;

  constructor(root, { chance }) {
    super(root);
    this.#chance = chance;
  }

  // bins: stretches of the life: images, right answers, norm.
  show(bins, steps) {
    const told = few(bins).map(([all, right]) => percent(right / all));
    const label = steps ? `Over all ${steps} images, from first to last: ${told.join(", ")} right.` : NOTHING;
    this.set(label, (box) => {
      const curve = overTime(box, together(bins), steps, ([all, right]) => yOf(box, right / all));
      return [...axes(box, this.#chance), path(curve), ...ends(box, steps)];
    });
  }
}

// The norm of what was learnt, over a whole life.
export class NormChart extends Chart {
  show(bins, steps) {
    const norms = bins.map(([, , norm]) => norm);
    const [least, most] = [Math.min(...norms), Math.max(...norms)];
    const isLog = steps > 0 && most > LOGARITHMIC * Math.max(least, 1);
    const top = steps ? most * (isLog ? 2 : 1.25) : 1;
    const share = (norm) => (isLog ? Math.log(Math.max(norm, 1)) / Math.log(top) : norm / top);
    const told = few(bins).map(([, , norm]) => number(norm));
    const label = steps ? `Norm of all changes over ${steps} images, from first to last: ${told.join(", ")}.` : NOTHING;
    this.set(label, (box) => {
      const ticks = steps ? [isLog ? 1 : 0, most] : [0];
      const parts = ticks.flatMap((tick) => level(box, share(tick), number(tick), "grid"));
      return [...parts, path(overTime(box, bins, steps, ([, , norm]) => yOf(box, share(norm)))), ...ends(box, steps)];
    });
  }
}

// Accuracy along a sequence, of several networks.
export class LengthChart extends Chart {
  #names;
  #chance;
  #trained;

  // names: of the networks; trained: the longest length of their training.
  constructor(root, { names, chance, trained }) {
    super(root);
    this.#names = names;
    this.#chance = chance;
    this.#trained = trained;
  }

  // bins: stretches of the sequence: places, and right answers of each network; steps: places in all.
  show(bins, steps) {
    const told = this.#names.map((name, i) => `${name} ${few(joined(bins, TOGETHER)).map((bin) => percent(bin[1 + i] / bin[0])).join(", ")}`);
    const label = steps ? `Right along ${steps} symbols, from first to last: ${told.join("; ")}.` : "Nothing read yet.";
    this.set(label, (box) => {
      const longest = Math.max(steps, 2 * this.#trained);
      const x = (place) => box.left + (place / longest) * box.width;
      const parts = [...axes(box, this.#chance), line(x(this.#trained), box.top, x(this.#trained), box.bottom, "change")];
      parts.push(text(x(this.#trained), box.bottom + 14, `trained up to ${this.#trained}`, "start"));
      const stretches = together(joined(bins, TOGETHER));
      // The last one is drawn first: the first is what it is about.
      for (let i = this.#names.length - 1; i >= 0; i--) {
        const curve = overTime(box, stretches, longest, (bin) => yOf(box, bin[1 + i] / bin[0]));
        if (curve.length) parts.push(path([[x(0), curve[0][1]], ...curve], `curve network-${i}`));
      }
      parts.push(text(box.right, box.bottom + 14, longest.toLocaleString("en"), "end"));
      return parts;
    });
  }
}

// Points at the ends of the stretches of a life.
function overTime(box, bins, steps, y) {
  let lived = 0;
  return bins.map((bin) => {
    lived += bin[0];
    return [box.left + (lived / steps) * box.width, y(bin)];
  });
}

// A last stretch that has just begun says little by itself: it goes with the one before.
function together(bins) {
  const [before, last] = bins.slice(-2);
  if (!last || last[0] >= before[0] / 2) return bins;
  return [...bins.slice(0, -2), before.map((value, i) => value + last[i])];
}

// Stretches of at least so many places, but for the last.
function joined(bins, least) {
  const made = [];
  for (const bin of bins) {
    if (!made.length || made.at(-1)[0] >= least) made.push(bin);
    else made.push(made.pop().map((value, i) => value + bin[i]));
  }
  return made;
}

function few(bins) {
  return bins.filter((_, i) => i === bins.length - 1 || i % Math.ceil(bins.length / 5) === 0);
}

function ends(box, steps) {
  if (!steps) return [];
  return [text(box.left, box.bottom + 14, "image 1", "start"), text(box.right, box.bottom + 14, steps.toLocaleString("en"), "end")];
}

function axes(box, chance) {
  return [...level(box, 0, "0%", "grid"), ...level(box, 1, "100%", "grid"), ...level(box, chance, "chance", "chance")];
}

function level(box, share, name, className) {
  const y = yOf(box, share);
  return [line(box.left, y, box.right, y, className), text(box.left - 5, y + 4, name, "end")];
}

function yOf(box, share) {
  return box.bottom - share * box.height;
}

function path(points, className = "curve") {
  return make("path", { d: points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join(""), class: className });
}

function line(x1, y1, x2, y2, className) {
  return make("line", { x1, y1, x2, y2, class: className });
}

function text(x, y, content, anchor, className = "") {
  const element = make("text", { x, y, "text-anchor": anchor, class: className });
  element.textContent = content;
  return element;
}

function make(tag, attributes) {
  const element = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}
