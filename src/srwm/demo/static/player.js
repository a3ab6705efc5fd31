// Goes on by itself, at a chosen speed, until it is paused.

export const SPEEDS = [
  { name: "1 a second", perSecond: 1 },
  { name: "3 a second", perSecond: 3 },
  { name: "10 a second", perSecond: 10 },
  { name: "100 a second", perSecond: 100 },
  { name: "as fast as it goes", perSecond: Infinity },
];
const REQUESTS_PER_SECOND = 10; // When it is faster than that, a request asks for several images.

export class Player {
  #step;
  #most;
  #onState;
  #running = null; // What the present loop is known by; null while it is paused.
  #speed = SPEEDS[1];
  #count = 1; // Images that were last asked for as fast as it goes.
  #wake = () => {};

  // step: asks for so many images, and says whether it can go on; most: images of a request; onState: told of playing and pausing.
  constructor({ step, most, onState }) {
    this.#step = step;
    this.#most = most;
    this.#onState = onState;
  }

  get isPlaying() {
    return this.#running !== null;
  }

  set speed(speed) {
    this.#speed = speed;
    this.#wake();
  }

  toggle() {
    if (this.isPlaying) this.pause();
    else this.#play();
  }

  pause() {
    if (!this.isPlaying) return;
    this.#running = null;
    this.#wake();
    this.#onState(false);
  }

  async #play() {
    const run = (this.#running = Symbol("run"));
    this.#onState(true);
    while (this.#running === run) {
      const began = performance.now();
      const count = this.#next();
      const goesOn = await this.#step(count);
      if (!goesOn && this.#running === run) this.pause();
      if (this.#running !== run) return;
      const took = performance.now() - began;
      // As many as the server computes in the time of a request, but at most twice as many as before: it may have been idle.
      const fitting = (count * 1000) / REQUESTS_PER_SECOND / Math.max(1, took);
      this.#count = Math.max(1, Math.min(Math.round(fitting), 2 * count, this.#most));
      await this.#wait(Math.max(0, (1000 * count) / this.#speed.perSecond - took));
    }
  }

  #next() {
    const { perSecond } = this.#speed;
    return perSecond === Infinity ? this.#count : Math.max(1, Math.round(perSecond / REQUESTS_PER_SECOND));
  }

  // Wait, but no longer than until something is changed.
  #wait(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
