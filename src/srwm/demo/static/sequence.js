// The last symbols of a sequence, the right answer at each, and those of the networks; each symbol can be replaced.

const COLUMNS = 16; // As many as the back end shows; a style sheet leaves the oldest out where there is no room.

export class Sequence {
  #model;
  #columns = []; // Of each place: the button of the symbol, and the cells below it.
  #shown = [];

  // model: what the back end says of its networks; onSymbol: told of a place and the symbol that is to stand there.
  constructor(model, { onSymbol }) {
    this.#model = model;
    const names = ["read", "truth", ...model.networks.map(({ title }) => title)];
    const rows = names.map((name, i) => {
      const row = document.createElement("tr");
      const head = document.createElement("th");
      head.scope = "row";
      head.textContent = name;
      if (i > 1) head.className = `network-${i - 2}`;
      row.append(head);
      return row;
    });
    for (let column = 0; column < COLUMNS; column++) {
      const [, ...cells] = rows.map((row) => row.insertCell());
      const button = document.createElement("button");
      button.type = "button";
      button.hidden = true;
      button.addEventListener("click", () => {
        const { place, symbol } = this.#at(column);
        onSymbol(place, (symbol + 1) % model.symbols.length);
      });
      rows[0].lastChild.append(button);
      this.#columns.push({ button, cells });
    }
    document.querySelector("#sequence tbody").replaceChildren(...rows);
  }

  // shown: the last symbols that were read, with the answers at each.
  show(shown) {
    this.#shown = shown;
    const { symbols, answers } = this.#model;
    this.#columns.forEach(({ button, cells: [truth, ...said] }, column) => {
      const each = this.#at(column);
      button.hidden = !each;
      button.textContent = each ? symbols[each.symbol] : "";
      if (each) {
        const next = symbols[(each.symbol + 1) % symbols.length];
        button.title = `Symbol ${each.place}: make it ${next}`;
        button.setAttribute("aria-label", `Symbol ${each.place} is ${symbols[each.symbol]}: make it ${next}`);
      }
      truth.textContent = each ? answers[each.truth] : "";
      said.forEach((cell, i) => {
        const isRight = each?.answers[i] === each?.truth;
        cell.textContent = each ? `${answers[each.answers[i]]}\n${isRight ? "✓" : "✗"}` : "";
        cell.className = each ? (isRight ? "is-right" : "is-wrong") : "";
      });
    });
  }

  // What was read last, and what came of it, in words.
  told() {
    const { symbols, answers, networks } = this.#model;
    const { place, symbol, truth, answers: said } = this.#shown.at(-1);
    const each = networks.map(({ title }, i) => `${title} says ${answers[said[i]]}, ${said[i] === truth ? "right" : "wrong"}`);
    return `Symbol ${place} is ${symbols[symbol]}, the truth ${answers[truth]}. ${each.join("; ")}.`;
  }

  // The newest stands at the right.
  #at(column) {
    return this.#shown[this.#shown.length - COLUMNS + column];
  }
}
