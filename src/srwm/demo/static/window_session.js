// The session of this window with the back end. Requests go one after the other, so that what is shown is never older
// than what was.

import { say } from "./message.js";
import { GONE } from "./refusal.js";

export class WindowSession {
  view = null; // What the back end said last.
  #backend;
  #key;
  #opening;
  #onView;
  #name = null;
  #last = Promise.resolve();

  // backend: of sessions of this kind; key: where the window keeps the name of its session; opening: what a new one begins
  // with; onView: shows what the back end says.
  constructor(backend, { key, opening, onView }) {
    this.#backend = backend;
    this.#key = key;
    this.#opening = opening;
    this.#onView = onView;
  }

  // The tab is shown: go on with the session of this window, if there is one still.
  enter() {
    this.#last = this.#last.then(() => this.view || this.#safely(() => this.#begin()));
  }

  // Ask the back end to change the session; say whether that went well.
  ask(verb, body = {}) {
    const done = this.#last.then(() =>
      this.#safely(async () => {
        if (!this.#name) await this.#open();
        this.#show(await this.#backend.ask(this.#name, verb, body));
      }),
    );
    this.#last = done;
    return done;
  }

  // Wait until all that was asked has come.
  idle() {
    return this.#last;
  }

  async #begin() {
    const known = sessionStorage.getItem(this.#key);
    if (known) await this.#find(known);
    if (!this.#name) await this.#open();
    document.body.dataset[`${this.#key}Ready`] = "true";
  }

  async #find(known) {
    try {
      const view = await this.#backend.show(known);
      this.#name = known;
      this.#show(view);
    } catch (error) {
      // A server that is busy has the session still.
      if (error.status !== GONE) throw error;
      sessionStorage.removeItem(this.#key);
    }
  }

  async #open() {
    const view = await this.#backend.open(this.#opening());
    sessionStorage.setItem(this.#key, view.session);
    this.#name = view.session;
    this.#show(view);
  }

  #show(view) {
    this.view = view;
    this.#onView(view);
  }

  // Do something, and say whether that went well; if not, say why.
  async #safely(action) {
    try {
      await action();
      return true;
    } catch (error) {
      say(error.message);
      // The server was started anew, or had too many sessions.
      if (error.status === GONE && this.#name) {
        this.#name = null;
        await this.#safely(() => this.#open());
      }
      return false;
    }
  }
}
