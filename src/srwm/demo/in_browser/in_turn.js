// Does one thing after the other: what is asked for while something is computed waits for it.

export function inTurn() {
  let last = Promise.resolve();
  return (action) => {
    const done = last.then(action);
    last = done.catch(() => {}); // Whoever asked hears of it; the next one goes on.
    return done;
  };
}
