// The probabilities: those of the network as it is, beside those of the same network with self-modification turned off.

const percent = (share) => `${Math.round(100 * share)}%`;

export class Answers {
  #body = document.querySelector("#answers tbody");
  #best = { on: document.querySelector("#best-on"), off: document.querySelector("#best-off") };
  #spoken = document.querySelector("#spoken");
  #rows = [];

  constructor(ways) {
    for (let i = 0; i < ways; i++) {
      const row = this.#body.insertRow();
      const name = document.createElement("th");
      name.scope = "row";
      row.append(name);
      const bars = {};
      for (const key of ["on", "off"]) {
        const cell = row.insertCell();
        cell.className = key;
        const gauge = document.createElement("div");
        const bar = document.createElement("span");
        const text = document.createElement("span");
        [gauge.className, bar.className, text.className] = ["gauge", "bar", "share"];
        gauge.append(bar, text);
        cell.append(gauge);
        bars[key] = { cell, bar, text };
      }
      this.#rows.push({ row, name, bars });
    }
  }

  // names: of the classes; taught: which of them have an example.
  label(names, taught) {
    this.#rows.forEach(({ row, name }, i) => {
      name.textContent = names[i];
      row.classList.toggle("untaught", !taught.has(i));
    });
  }

  show(answer, names) {
    for (const key of ["on", "off"]) {
      const shares = answer ? answer[key] : null;
      const best = shares ? shares.indexOf(Math.max(...shares)) : -1;
      this.#rows.forEach(({ bars }, i) => {
        const { cell, bar, text } = bars[key];
        // A full bar leaves room for its number.
        bar.style.width = shares ? `calc(${shares[i]} * (100% - 3rem))` : "0";
        text.textContent = shares ? percent(shares[i]) : "";
        cell.classList.toggle("is-best", i === best);
      });
      this.#best[key].textContent = shares ? names[best] : "–";
    }
    const spoken = answer ? `It says ${this.#best.on.textContent}.` : "";
    if (this.#spoken.textContent !== spoken) this.#spoken.textContent = spoken;
  }
}
