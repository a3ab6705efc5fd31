// Sends one thing at a time. Of what is asked meanwhile only the newest is kept: answers never queue up.

export class Latest {
  #send;
  #busy = false;
  #waiting = null;
  #done = Promise.resolve();
  #onBusy;

  constructor(send, onBusy = () => {}) {
    this.#send = send;
    this.#onBusy = onBusy;
  }

  async ask(question) {
    if (this.#busy) {
      this.#waiting = question;
      return;
    }
    this.#busy = true;
    let finish;
    this.#done = new Promise((resolve) => (finish = resolve));
    this.#onBusy(true);
    let next = question;
    while (next !== null) {
      this.#waiting = null;
      await this.#send(next);
      next = this.#waiting;
    }
    this.#busy = false;
    this.#onBusy(false);
    finish();
  }

  drop() {
    this.#waiting = null;
  }

  // Ask nothing more, and wait until what is under way has come.
  idle() {
    this.drop();
    return this.#done;
  }
}
