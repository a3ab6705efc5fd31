// A square to draw in, with mouse, finger, pen or keys. Its content is strokes, or an image that came from a file.

import { paintPixels } from "./picture.js";

const NEAREST = 0.004; // Points that lie closer add nothing.
const MOST_POINTS = 7500;
const KEY_STEP = 0.025;
const KEY_LEAP = 0.1;
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class Pad {
  #canvas;
  #pen;
  #shape;
  #strokes = [];
  #pixels = null;
  #pointer = null; // The pointer that draws; others are not listened to meanwhile.
  #cursor = null; // Where the pen is that the keys move: {x, y, isDown}.
  #kept = null; // The example that is shown, if what is shown was taught.

  // events: change (something was drawn or cleared), submit (Enter).
  constructor(canvas, { pen, shape, onChange, onSubmit = () => {} }) {
    this.#canvas = canvas;
    this.#pen = pen;
    this.#shape = shape;
    this.onChange = onChange;
    this.onSubmit = onSubmit;
    canvas.addEventListener("pointerdown", (event) => this.#down(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => this.#up(event));
    canvas.addEventListener("keydown", (event) => this.#key(event));
    canvas.addEventListener("blur", () => this.#setCursor(null));
    new ResizeObserver(() => this.paint()).observe(canvas);
  }

  get canvas() {
    return this.#canvas;
  }

  get kept() {
    return this.#kept;
  }

  // Whether it holds something that was not taught yet.
  get isDraft() {
    return this.#kept === null && !this.isEmpty;
  }

  get isEmpty() {
    return this.#pixels === null && this.#strokes.length === 0;
  }

  // What is drawn, as the server takes it; null if nothing is.
  drawing() {
    if (this.#pixels !== null) return { pixels: this.#pixels };
    return this.#strokes.length ? { strokes: this.#strokes } : null;
  }

  clear() {
    this.#empty();
    this.onChange();
  }

  // Show an image; `kept` is the number of the example that it is, if it was taught.
  show(pixels, kept = null) {
    this.#empty();
    this.#pixels = pixels;
    this.#kept = kept;
    this.paint();
  }

  // What is shown has been taught: it stays, and the next stroke begins another drawing.
  keep(number) {
    this.#kept = number;
    if (this.#cursor) this.#cursor.isDown = false;
    this.paint();
  }

  // Show nothing, and say nothing about it.
  #empty() {
    this.#strokes = [];
    this.#pixels = null;
    this.#kept = null;
    this.#pointer = null;
    if (this.#cursor) this.#cursor.isDown = false;
    this.paint();
  }

  blank() {
    this.#empty();
  }

  #beginStroke(point) {
    if (this.#kept !== null || this.#pixels !== null) this.#empty();
    this.#strokes.push([point]);
  }

  #lengthen(point) {
    const stroke = this.#strokes.at(-1);
    const last = stroke.at(-1);
    if (Math.hypot(point[0] - last[0], point[1] - last[1]) < NEAREST) return false;
    if (this.#strokes.reduce((sum, each) => sum + each.length, 0) >= MOST_POINTS) return false;
    stroke.push(point);
    return true;
  }

  #at(event) {
    const box = this.#canvas.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height].map(inside);
  }

  #down(event) {
    if (this.#pointer !== null || event.button !== 0) return;
    event.preventDefault();
    this.#canvas.focus({ preventScroll: true });
    this.#setCursor(null);
    this.#canvas.setPointerCapture(event.pointerId);
    this.#beginStroke(this.#at(event));
    this.#pointer = event.pointerId;
    this.#changed();
  }

  #move(event) {
    if (event.pointerId !== this.#pointer) return;
    // The browser hands over several points at once; each counts.
    const events = event.getCoalescedEvents?.() ?? [];
    const added = (events.length ? events : [event]).map((each) => this.#lengthen(this.#at(each)));
    if (added.some(Boolean)) this.#changed();
  }

  #up(event) {
    if (event.pointerId === this.#pointer) this.#pointer = null;
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = ARROWS[event.key];
    if (arrow) this.#moveCursor(arrow, event.shiftKey ? KEY_LEAP : KEY_STEP);
    else if (event.key === " ") this.#togglePen();
    else if (event.key === "Enter") this.onSubmit();
    else if (event.key === "Backspace") this.#undo();
    else if (event.key === "Delete") this.clear();
    else return;
    event.preventDefault();
  }

  #moveCursor([dx, dy], step) {
    const { x, y, isDown } = this.#cursor ?? { x: 0.5, y: 0.5, isDown: false };
    const moved = { x: inside(x + dx * step), y: inside(y + dy * step), isDown };
    if (isDown) this.#lengthen([moved.x, moved.y]);
    this.#setCursor(moved);
    if (isDown) this.#changed();
  }

  #togglePen() {
    const cursor = this.#cursor ?? { x: 0.5, y: 0.5, isDown: false };
    if (!cursor.isDown) this.#beginStroke([cursor.x, cursor.y]);
    this.#setCursor({ ...cursor, isDown: !cursor.isDown });
    if (!cursor.isDown) this.#changed();
  }

  #setCursor(cursor) {
    this.#cursor = cursor;
    this.paint();
  }

  #undo() {
    if (this.#pixels !== null || this.#kept !== null || this.#strokes.length <= 1) return this.clear();
    this.#strokes.pop();
    if (this.#cursor) this.#cursor.isDown = false;
    this.#changed();
  }

  #changed() {
    this.paint();
    this.onChange();
  }

  paint() {
    this.#canvas.dataset.holds = this.isEmpty ? "nothing" : this.isDraft ? "draft" : "taught";
    const side = Math.round(this.#canvas.clientWidth * devicePixelRatio);
    if (!side) return;
    if (this.#canvas.width !== side) this.#canvas.width = this.#canvas.height = side;
    const style = getComputedStyle(this.#canvas);
    const context = this.#canvas.getContext("2d");
    context.clearRect(0, 0, side, side);
    if (this.isEmpty && !this.#cursor) paintHint(context, side, style);
    if (this.#pixels !== null) this.#paintImage(context, side, style.color);
    context.strokeStyle = context.fillStyle = style.color;
    context.lineWidth = 2 * this.#pen * side;
    context.lineCap = context.lineJoin = "round";
    for (const stroke of this.#strokes) {
      context.beginPath();
      context.moveTo(stroke[0][0] * side, stroke[0][1] * side);
      for (const [x, y] of stroke.length > 1 ? stroke.slice(1) : stroke) context.lineTo(x * side, y * side);
      context.stroke();
    }
    if (this.#cursor) this.#paintCursor(context, side, style.getPropertyValue("--accent"));
  }

  // Bright ink becomes the colour of the pen, so that all boxes look alike; colours stay colours.
  #paintImage(context, side, color) {
    const image = document.createElement("canvas");
    paintPixels(image, this.#pixels, this.#shape);
    if (this.#shape.channels === 1) {
      const ink = image.getContext("2d");
      const data = ink.getImageData(0, 0, image.width, image.height);
      for (let i = 0; i < data.data.length; i += 4) data.data[i + 3] = data.data[i];
      ink.putImageData(data, 0, 0);
      ink.globalCompositeOperation = "source-in";
      ink.fillStyle = color;
      ink.fillRect(0, 0, image.width, image.height);
    }
    context.imageSmoothingEnabled = false;
    context.drawImage(image, 0, 0, side, side);
  }

  #paintCursor(context, side, color) {
    const { x, y, isDown } = this.#cursor;
    context.strokeStyle = context.fillStyle = color;
    context.lineWidth = 2 * devicePixelRatio;
    context.beginPath();
    context.arc(x * side, y * side, 5 * devicePixelRatio, 0, 2 * Math.PI);
    if (isDown) context.fill();
    else context.stroke();
  }
}

function paintHint(context, side, style) {
  context.fillStyle = style.getPropertyValue("--quiet");
  context.font = `${13 * devicePixelRatio}px ${style.fontFamily}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.globalAlpha = 0.6;
  context.fillText("draw here", side / 2, side / 2);
  context.globalAlpha = 1;
}

function inside(value) {
  return Math.round(1e4 * Math.min(1, Math.max(0, value))) / 1e4;
}
