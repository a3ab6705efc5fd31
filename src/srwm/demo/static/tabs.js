// The tabs of the page. The second one is there only if the back end has a model of streams.

import { streamModel } from "./backend.js";
import { sayForGood } from "./message.js";
import { StreamPage } from "./stream.js";

const NAMES = ["teach", "stream"];
const find = (selector) => document.querySelector(selector);

class Tabs {
  #stream;

  constructor(stream) {
    this.#stream = stream;
    find("#tabs").hidden = false;
    find("#tabs").setAttribute("role", "tablist");
    find("#tabs").setAttribute("aria-label", "What to do");
    for (const name of NAMES) {
      const tab = find(`#tab-${name}`);
      tab.setAttribute("role", "tab");
      tab.setAttribute("aria-controls", name);
      find(`#${name}`).setAttribute("role", "tabpanel");
      find(`#${name}`).setAttribute("aria-labelledby", tab.id);
      // A name that no element has: the page does not scroll to it.
      tab.addEventListener("click", () => (location.hash = `/${name}`));
      tab.addEventListener("keydown", (event) => this.#key(event));
    }
    addEventListener("hashchange", () => this.#show());
    this.#show();
  }

  // Show the tab that the address names.
  #show() {
    const current = NAMES.find((name) => location.hash === `#/${name}`) ?? NAMES[0];
    for (const element of document.querySelectorAll("[data-tab]")) element.hidden = element.dataset.tab !== current;
    for (const name of NAMES) {
      find(`#tab-${name}`).setAttribute("aria-selected", name === current);
      find(`#tab-${name}`).tabIndex = name === current ? 0 : -1;
    }
    if (current === "stream") this.#stream.enter();
    else this.#stream.leave();
  }

  #key(event) {
    const at = NAMES.indexOf(event.target.id.slice("tab-".length));
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: NAMES.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const tab = find(`#tab-${NAMES[(to + NAMES.length) % NAMES.length]}`);
    tab.focus();
    tab.click();
  }
}

try {
  const stream = await streamModel();
  if (stream) {
    find("main").append(find("#stream-panel").content.cloneNode(true));
    new Tabs(new StreamPage(stream));
  }
} catch (error) {
  sayForGood(error.message);
}
