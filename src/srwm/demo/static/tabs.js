// The tabs of the page. Those beside the first one are there only if the back end has a model for them.

import { streamModel, trackingModel } from "./backend.js";
import { sayForGood } from "./message.js";
import { StreamPage } from "./stream.js";
import { TrackingPage } from "./tracking.js";

const FIRST = "teach";
const find = (selector) => document.querySelector(selector);

class Tabs {
  #names;
  #make;
  #made = {};

  // make: makes the page of each tab beside the first, when somebody first looks at it.
  constructor(make) {
    this.#make = make;
    this.#names = [FIRST, ...Object.keys(make)];
    find("#tabs").hidden = false;
    find("#tabs").setAttribute("role", "tablist");
    find("#tabs").setAttribute("aria-label", "What to do");
    for (const name of this.#names) {
      const tab = find(`#tab-${name}`);
      tab.hidden = false;
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
    const current = this.#names.find((name) => location.hash === `#/${name}`) ?? FIRST;
    for (const element of document.querySelectorAll("[data-tab]")) element.hidden = element.dataset.tab !== current;
    for (const name of this.#names) {
      find(`#tab-${name}`).setAttribute("aria-selected", name === current);
      find(`#tab-${name}`).tabIndex = name === current ? 0 : -1;
    }
    for (const [name, page] of Object.entries(this.#made)) if (name !== current) page.leave();
    if (current !== FIRST) (this.#made[current] ??= this.#make[current]()).enter();
  }

  #key(event) {
    const names = this.#names;
    const at = names.indexOf(event.target.id.slice("tab-".length));
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: names.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const tab = find(`#tab-${names[(to + names.length) % names.length]}`);
    tab.focus();
    tab.click();
  }
}

try {
  const [stream, tracking] = await Promise.all([streamModel(), trackingModel()]);
  const make = {
    ...(stream && { stream: () => new StreamPage(stream) }),
    ...(tracking && { tracking: () => new TrackingPage(tracking) }),
  };
  for (const name of Object.keys(make)) find("main").append(find(`#${name}-panel`).content.cloneNode(true));
  if (Object.keys(make).length) new Tabs(make);
} catch (error) {
  sayForGood(error.message);
}
