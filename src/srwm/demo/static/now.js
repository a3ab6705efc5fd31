// The image that the network sees now, its answer beside the truth, and the images before.

import { paintPixels } from "./picture.js";

const letterOf = (label) => String.fromCharCode("A".charCodeAt(0) + label);

export class Now {
  #find = (selector) => document.querySelector(selector);
  #shape;
  #rows = [];
  #items = [];

  constructor(model) {
    this.#shape = { channels: model.channels, size: model.image_size };
    const body = this.#find("#stream-answers tbody");
    for (let label = 0; label < model.ways; label++) {
      const row = body.insertRow();
      const name = document.createElement("th");
      name.scope = "row";
      name.textContent = letterOf(label);
      row.append(name);
      const [cell, truth] = [row.insertCell(), row.insertCell()];
      cell.className = "on";
      truth.className = "truth";
      const [gauge, bar, share] = ["div", "span", "span"].map((tag) => document.createElement(tag));
      [gauge.className, bar.className, share.className] = ["gauge", "bar", "share"];
      gauge.append(bar, share);
      cell.append(gauge);
      this.#rows.push({ row, cell, bar, share, truth });
    }
  }

  // Show the last images of a life.
  show(view) {
    const now = view.shown.at(-1);
    this.#find("#stream-task").hidden = !now;
    this.#showImage(now);
    this.#showStrip(view.shown);
    this.#rows.forEach(({ cell, bar, share, truth }, label) => {
      const probability = now?.probabilities[label];
      // A full bar leaves room for its number.
      bar.style.width = now ? `calc(${probability} * (100% - 3rem))` : "0";
      share.textContent = now ? `${Math.round(100 * probability)}%` : "";
      truth.textContent = now?.label === label ? "✓ the truth" : "";
      cell.classList.toggle("is-best", now?.answer === label);
      cell.classList.toggle("is-wrong", now?.answer === label && now.label !== label);
    });
    const verdict = this.#find("#verdict");
    verdict.textContent = view.is_dead ? deathOf(view) : now ? verdictOf(now) : "Nothing seen yet. Press Play.";
    verdict.classList.toggle("is-wrong", view.is_dead || (now !== undefined && now.answer !== now.label));
    verdict.classList.toggle("is-right", !view.is_dead && now?.answer === now?.label && now !== undefined);
    if (now) this.#find("#stream-task").textContent = placeOf(now);
  }

  #showImage(now) {
    const canvas = this.#find("#stream-image");
    canvas.classList.toggle("is-empty", !now);
    canvas.setAttribute("aria-label", now ? `Image ${now.step}, which is ${letterOf(now.label)}` : "No image yet");
    if (now) paintPixels(canvas, now.pixels, this.#shape);
    else canvas.getContext("2d").clearRect(0, 0, canvas.width, canvas.height);
  }

  #showStrip(shown) {
    const strip = this.#find("#stream-strip");
    const template = this.#find("#lived-image");
    while (this.#items.length < shown.length) {
      const item = template.content.cloneNode(true).firstElementChild;
      this.#items.push(item);
      strip.append(item);
    }
    for (const item of this.#items.splice(shown.length)) item.remove();
    this.#items.forEach((item, i) => {
      const each = shown[i];
      const isRight = each.answer === each.label;
      paintPixels(item.querySelector("canvas"), each.pixels, this.#shape);
      item.querySelector("span").textContent = `${isRight ? "✓" : "✗"} ${letterOf(each.answer)}`;
      item.className = isRight ? "is-right" : "is-wrong";
      item.classList.toggle("is-first", each.place === 1);
      item.title = isRight ? `Image ${each.step}: right` : `Image ${each.step}: wrong, it is ${letterOf(each.label)}`;
    });
  }
}

function placeOf({ task, place, is_inverted: isInverted }) {
  return `task ${(task + 1).toLocaleString("en")}, image ${place}${isInverted ? ", negatives" : ""}`;
}

// What it said of an image, in words.
export function verdictOf({ answer, label, instance, probabilities }) {
  const said = `It says ${letterOf(answer)}, ${Math.round(100 * probabilities[answer])}% sure: `;
  const first = instance === 1 ? " It has not seen this class since the change." : "";
  return `${said}${answer === label ? "right." : `wrong, it is ${letterOf(label)}.`}${first}`;
}

// How a life ended, in words.
export function deathOf({ steps }) {
  const lived = steps.toLocaleString("en");
  return `After ${lived} images its matrices have grown beyond all numbers, and it can answer nothing any more. Begin anew.`;
}
