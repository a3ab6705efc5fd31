// Talking to the server: JSON over a handful of addresses.

export class ApiError extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

async function answerOf(request) {
  let response;
  try {
    response = await request;
  } catch {
    throw new ApiError(0, "The server does not answer; see whether “srwm demo” still runs.");
  }
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new ApiError(response.status, body.error || `The server answered ${response.status}.`);
  return body;
}

export const get = (path) => answerOf(fetch(path));

export const post = (path, body = {}) =>
  answerOf(fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }));

export const postPicture = (file, ink) =>
  answerOf(fetch(`/api/pictures?ink=${ink}`, { method: "POST", headers: { "content-type": "application/octet-stream" }, body: file }));

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

export function bytesOf(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}
