// What is remembered of a life: all of it in a few numbers, the last part image by image; `srwm.demo.stream_history`.

export class History {
  recent = [];
  shown = [];
  steps = 0;
  right = 0;
  bins = [];
  binWidth = 1;
  #bounds;

  // bounds: recent, shown, running, instances and bins.
  constructor(bounds) {
    this.#bounds = bounds;
    this.instances = Array.from({ length: bounds.instances + 1 }, () => [0, 0]);
  }

  // Remember one more image, and the norm of what had been learnt after it.
  add(shown, norm) {
    const isRight = shown.answer === shown.label;
    push(this.recent, [shown.task, Number(isRight)], this.#bounds.recent);
    push(this.shown, shown, this.#bounds.shown);
    this.steps++;
    this.right += isRight;
    const counts = this.instances[Math.min(shown.instance, this.instances.length) - 1];
    counts[0] += isRight;
    counts[1]++;
    if (!this.bins.length || this.bins.at(-1)[0] === this.binWidth) {
      if (this.bins.length === this.#bounds.bins) this.#halve();
      this.bins.push([0, 0, 0]);
    }
    const last = this.bins.at(-1);
    last[0]++;
    last[1] += isRight;
    last[2] = norm;
  }

  // Right answers among the last images, and how many these are.
  get running() {
    const last = this.recent.slice(-this.#bounds.running);
    return [last.reduce((total, [, right]) => total + right, 0), last.length];
  }

  #halve() {
    this.bins = this.bins.flatMap((bin, i) => (i % 2 ? [] : [[bin[0] + this.bins[i + 1][0], bin[1] + this.bins[i + 1][1], this.bins[i + 1][2]]]));
    this.binWidth *= 2;
  }
}

function push(list, item, most) {
  list.push(item);
  if (list.length > most) list.shift();
}
