// Pillow's bilinear filter for images of bytes, in its own fixed-point arithmetic: the same pixels to the last bit.

const BITS = 22;

// Resize an image of width x height bytes to size x size, first along rows and then along columns.
export function resize(image, width, height, size) {
  const rows = resizeRows(image, width, height, size);
  return transposed(resizeRows(transposed(rows, size, height), height, size, size), size, size);
}

function resizeRows(image, width, height, size) {
  if (width === size) return image;
  const weights = Array.from({ length: size }, (_, x) => weightsOf(x, width, size));
  const resized = new Uint8Array(size * height);
  for (let y = 0; y < height; y++) {
    weights.forEach(({ first, shares }, x) => {
      let sum = 1 << (BITS - 1);
      shares.forEach((share, i) => (sum += image[y * width + first + i] * share));
      resized[y * size + x] = Math.min(255, Math.max(0, sum >> BITS));
    });
  }
  return resized;
}

// The pixels that a pixel of the new row is made of, and their shares.
function weightsOf(x, width, size) {
  const scale = width / size;
  const support = Math.max(1, scale);
  const center = (x + 0.5) * scale;
  const first = Math.max(0, Math.trunc(center - support + 0.5));
  const last = Math.min(width, Math.trunc(center + support + 0.5));
  const shares = Array.from({ length: last - first }, (_, i) => {
    const distance = Math.abs((i + first - center + 0.5) * (1 / support));
    return distance < 1 ? 1 - distance : 0;
  });
  const sum = shares.reduce((total, share) => total + share, 0);
  return { first, shares: shares.map((share) => Math.trunc(0.5 + (share / sum) * (1 << BITS))) };
}

function transposed(image, width, height) {
  const turned = new Uint8Array(image.length);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) turned[x * height + y] = image[y * width + x];
  return turned;
}
