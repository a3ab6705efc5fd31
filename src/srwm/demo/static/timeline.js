// The examples in the order in which they were taught, and a slider over the moments between them.

import { paintPixels } from "./picture.js";

export class Timeline {
  #range = document.querySelector("#time");
  #text = document.querySelector("#time-text");
  #strip = document.querySelector("#strip");
  #template = document.querySelector("#example");
  #shape;

  constructor(shape, { onTime, onForget }) {
    this.#shape = shape;
    this.onTime = onTime;
    this.onForget = onForget;
    this.#range.addEventListener("input", () => onTime(Number(this.#range.value)));
  }

  // Show the examples of a session.
  show(view) {
    const items = view.examples.map((example, i) => {
      const item = this.#template.content.cloneNode(true).firstElementChild;
      const name = view.tasks[example.task][example.label];
      paintPixels(item.querySelector("canvas"), example.pixels, this.#shape);
      item.querySelector(".thumb-name").textContent = name;
      const thumb = item.querySelector(".thumb");
      thumb.setAttribute("aria-label", `Go to the moment after example ${i + 1}, ${name}`);
      thumb.addEventListener("click", () => this.onTime(i + 1));
      const drop = item.querySelector(".drop");
      drop.setAttribute("aria-label", `Forget example ${i + 1}, ${name}`);
      drop.title = "Forget this example";
      drop.addEventListener("click", () => this.onForget(example.number));
      item.classList.toggle("first-of-task", i > 0 && view.examples[i - 1].task !== example.task);
      return item;
    });
    this.#strip.replaceChildren(...items);
    this.#range.max = view.examples.length;
    this.#range.disabled = view.examples.length === 0;
  }

  // Show at which moment the page is.
  mark(time, total) {
    this.#range.value = time;
    const examples = total === 1 ? "example" : "examples";
    this.#text.textContent = total === 0 ? "nothing taught yet" : `after ${time} of ${total} ${examples}`;
    this.#range.setAttribute("aria-valuetext", this.#text.textContent);
    [...this.#strip.children].forEach((item, i) => {
      item.classList.toggle("is-future", i >= time);
      item.classList.toggle("is-now", i === time - 1);
    });
  }
}
