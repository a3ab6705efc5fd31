// What a step did to the matrices, as the server's `views` tell it.

// The layers of a network that has seen nothing. about: of each layer its heads, rows and columns.
export const startOf = (layers) => layers.map((layer) => layerOf(new Float32Array(sizeOf(layer)), null, null));

// The layers after a step, from its outputs.
export const layersOf = (outputs, layers) =>
  layers.map(({ heads }, i) => {
    const [change, rates, kept] = ["change", "rates", "kept"].map((name) => outputs[`${name}.${i}`]);
    return layerOf(change, rowsOf(rates, heads), kept ? rowsOf(kept, heads) : null);
  });

const layerOf = (change, rates, kept) => ({ change, rates, kept, peak: peakOf(change), norm: normOf(change) });

// Changes in bytes from -127 to 127 for -peak to peak, with rates and gates.
export function matrixView({ change, peak, rates, kept }) {
  const scale = peak ? 127 / peak : 0;
  const bytes = Int8Array.from(change, (each) => Math.round(each * scale));
  return { peak, change: textOf(new Uint8Array(bytes.buffer)), rates, kept };
}

const peakOf = (change) => change.reduce((most, each) => Math.max(most, Math.abs(each)), 0);
export const normOf = (values) => Math.sqrt(values.reduce((total, each) => total + each * each, 0));

// Bytes as text in base 64.
export function textOf(bytes) {
  let letters = "";
  for (const byte of bytes) letters += String.fromCharCode(byte);
  return btoa(letters);
}

const sizeOf = ({ heads, rows, columns }) => heads * rows * columns.reduce((total, each) => total + each, 0);

function rowsOf(values, heads) {
  const width = values.length / heads;
  return Array.from({ length: heads }, (_, head) => [...values.slice(head * width, (head + 1) * width)]);
}
