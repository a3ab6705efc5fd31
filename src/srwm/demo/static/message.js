// What the page has to say, at its lower edge.

const MESSAGE_MS = 8000;
let timer = 0;

const element = document.querySelector("#message");
const finished = (sentence) => sentence[0].toUpperCase() + sentence.slice(1).replace(/\.?$/, ".");

// Say something for a while.
export function say(sentence) {
  sayForGood(sentence);
  timer = setTimeout(unsay, MESSAGE_MS);
}

// Say something that stays: nothing can be done without it. isCalm: nothing is wrong.
export function sayForGood(sentence, { isCalm = false } = {}) {
  clearTimeout(timer);
  element.classList.toggle("is-calm", isCalm);
  element.textContent = finished(sentence);
}

// What was said is over.
export function unsay() {
  clearTimeout(timer);
  element.textContent = "";
}
