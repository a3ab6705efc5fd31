// Small images as the network sees them.

// Paint an image of channels x size x size bytes into a canvas, a pixel for a pixel.
export function paintPixels(canvas, pixels, { channels, size }) {
  const bytes = bytesOf(pixels);
  const area = size * size;
  const image = new ImageData(size, size);
  for (let i = 0; i < area; i++) {
    for (let c = 0; c < 3; c++) image.data[4 * i + c] = bytes[channels === 3 ? c * area + i : i];
    image.data[4 * i + 3] = 255;
  }
  canvas.width = canvas.height = size;
  canvas.getContext("2d").putImageData(image, 0, 0);
}

// Bytes from their text in base 64.
export function bytesOf(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}
