// A picture from disk, as `srwm.demo.drawing.read_picture` reads it; the browser unpacks the file.

import { repeated } from "./drawing.js";
import { Refusal } from "./refusal.js";
import { resize } from "./resize.js";

const KINDS = ["image/png", "image/jpeg", "image/webp", "image/bmp", "image/gif"];
const BROKEN = 400;

// Gives the image as bytes. ink: auto, dark or bright; look: of the training images, with what is read at most.
export async function readPictureFile(file, ink, look, { channels, size }) {
  const image = await unpacked(file, look);
  const planes = channels === 3 ? [0, 1, 2].map((c) => planeOf(image, c)) : [greyOf(image)];
  const isInverted = ink === "dark" || (ink === "auto" && look.bright_ink && hasLightBorder(planes, image));
  const made = planes.map((plane) => resize(isInverted ? plane.map((value) => 255 - value) : plane, image.width, image.height, size));
  if (channels === 1) return repeated(made[0], 1);
  const all = new Uint8Array(channels * size * size);
  made.forEach((plane, c) => all.set(plane, c * size * size));
  return all;
}

// The pixels of a file, upright, on white where it is transparent.
async function unpacked(file, { most_side: mostSide, most_pixels: mostPixels }) {
  const unreadable = new Refusal(BROKEN, "the picture is not an image that can be read; expected PNG, JPEG, WEBP, BMP, GIF");
  if (!KINDS.includes(file.type)) throw unreadable;
  let bitmap;
  try {
    bitmap = await createImageBitmap(file, { colorSpaceConversion: "none" });
  } catch {
    throw unreadable;
  }
  const { width, height } = bitmap;
  if (Math.max(width, height) > mostSide || width * height > mostPixels) {
    throw new Refusal(BROKEN, `the picture is ${width} x ${height} pixels; expected at most ${mostSide} a side and ${mostPixels} in all: make it smaller first`);
  }
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d");
  context.fillStyle = "white";
  context.fillRect(0, 0, width, height);
  context.drawImage(bitmap, 0, 0);
  bitmap.close();
  return context.getImageData(0, 0, width, height);
}

const planeOf = ({ data }, channel) => Uint8Array.from({ length: data.length / 4 }, (_, i) => data[4 * i + channel]);

// Pillow's grey.
const greyOf = ({ data }) =>
  Uint8Array.from({ length: data.length / 4 }, (_, i) => (data[4 * i] * 19595 + data[4 * i + 1] * 38470 + data[4 * i + 2] * 7471 + 0x8000) >> 16);

function hasLightBorder(planes, { width, height }) {
  const border = [];
  const add = (at) => border.push(planes.reduce((total, plane) => total + plane[at], 0) / planes.length);
  for (let x = 0; x < width; x++) [x, (height - 1) * width + x].forEach(add);
  for (let y = 0; y < height; y++) [y * width, y * width + width - 1].forEach(add);
  border.sort((a, b) => a - b);
  return (border[border.length / 2 - 1] + border[border.length / 2]) / 2 > 127;
}
