// The labelled boxes: one for each class of the present task.

import { Pad } from "./pad.js";

export class Boxes {
  #boxes = [];

  // on: draw(label), teach(label), rename(label, name), picture(label, file).
  constructor(model, on) {
    const root = document.querySelector("#boxes");
    const template = document.querySelector("#box");
    for (let label = 0; label < model.ways; label++) {
      const element = template.content.cloneNode(true).firstElementChild;
      const find = (selector) => element.querySelector(selector);
      const box = { element, name: find(".name"), teach: find(".teach"), clear: find(".clear"), count: find(".count") };
      box.pad = new Pad(find("canvas"), {
        pen: model.pen,
        shape: { channels: model.channels, size: model.image_size },
        onChange: () => {
          this.#mark(box);
          on.draw(label);
        },
        onSubmit: () => box.pad.isDraft && on.teach(label),
      });
      box.name.maxLength = model.limits.name;
      box.name.addEventListener("change", () => on.rename(label, box.name.value));
      box.name.addEventListener("keydown", (event) => event.key === "Enter" && box.pad.canvas.focus());
      box.teach.addEventListener("click", () => on.teach(label));
      box.clear.addEventListener("click", () => box.pad.clear());
      takeFiles(find("input[type=file]"), element, (file) => on.picture(label, file));
      this.#boxes.push(box);
      root.append(element);
    }
  }

  pad(label) {
    return this.#boxes[label].pad;
  }

  get drafts() {
    return this.#boxes.some((box) => box.pad.isDraft);
  }

  focus(label) {
    this.#boxes[label]?.pad.canvas.focus();
  }

  // Show the present task of a session. Drawings that were not taught yet stay.
  show(view) {
    const task = view.tasks.length - 1;
    this.#boxes.forEach((box, label) => {
      const name = view.tasks[task][label];
      const examples = view.examples.filter((example) => example.task === task && example.label === label);
      if (document.activeElement !== box.name) box.name.value = name;
      box.name.setAttribute("aria-label", `Name of class ${label + 1}`);
      box.element.setAttribute("aria-label", `Class ${name}`);
      box.pad.canvas.setAttribute("role", "application");
      box.pad.canvas.setAttribute(
        "aria-label",
        `Draw an example of ${name}. Arrows move the pen, space sets it down, Enter teaches.`,
      );
      box.clear.setAttribute("aria-label", `Clear ${name}`);
      box.teach.setAttribute("aria-label", `Teach ${name}`);
      box.count.hidden = examples.length === 0;
      box.count.textContent = examples.length > 1 ? `✓ ${examples.length}` : "✓";
      box.count.title = examples.length > 1 ? `taught ${examples.length} times` : "taught";
      const last = examples.at(-1);
      if (!box.pad.isDraft && box.pad.kept !== (last?.number ?? null)) {
        if (last) box.pad.show(last.pixels, last.number);
        else box.pad.blank();
      }
      this.#mark(box);
    });
  }

  // Throw away what was drawn and not taught.
  empty() {
    for (const box of this.#boxes) {
      if (box.pad.isDraft) box.pad.blank();
    }
  }

  #mark(box) {
    box.teach.disabled = !box.pad.isDraft;
    box.element.classList.toggle("is-taught", box.pad.kept !== null);
    box.count.classList.toggle("is-past", box.pad.isDraft);
  }
}

// Take image files that are chosen, or dropped upon an element.
export function takeFiles(input, target, take) {
  input.addEventListener("change", () => {
    if (input.files.length) take(input.files[0]);
    input.value = "";
  });
  target.addEventListener("dragover", (event) => {
    event.preventDefault();
    target.classList.add("is-target");
  });
  target.addEventListener("dragleave", () => target.classList.remove("is-target"));
  target.addEventListener("drop", (event) => {
    event.preventDefault();
    target.classList.remove("is-target");
    if (event.dataTransfer.files.length) take(event.dataTransfer.files[0]);
  });
}
