// Whoever has the networks, for the rest of the page: here this window itself, with ONNX Runtime in WebAssembly.
// The page of `srwm demo` has another file of this name, which exports the same and asks a server.

import { repeated } from "./drawing.js";
import { Followed } from "./followed.js";
import { inTurn } from "./in_turn.js";
import { Life } from "./life.js";
import { textOf } from "./matrices_view.js";
import { about, Network } from "./network.js";
import { readPictureFile } from "./picture_file.js";
import { drawStrokes } from "./strokes.js";
import { Taught } from "./taught.js";

const NAME = "here"; // There is one session of a kind, and it is this window's.

const teaching = about().then(({ teach }) => ({ about: teach, network: Network.load("teach.bin", teach.io) }));
const streaming = about().then(({ stream }) => stream && { about: stream, network: once(() => Network.load("stream.bin", stream.io)) });
const tracked = about().then(({ tracking }) => tracking && { about: tracking, networks: tracking.networks.map(({ file, io }) => once(() => Network.load(file, io))) });

const shapeOf = ({ model }) => ({ channels: model.channels, size: model.image_size });

// A promise that is made when somebody first waits for it.
function once(make) {
  let made = null;
  return { then: (...handlers) => (made ??= make()).then(...handlers) };
}

// The one session of a kind. make: gives it; open: what a new one begins with.
function session(make, open) {
  const turn = inTurn();
  const made = once(make);
  const doing = (action) => turn(async () => action(await made));
  return {
    open: (body) => doing((it) => (open(it, body), { ...it.view(), session: NAME })),
    show: () => doing(async (it) => (await it.restore(), it.view())),
    moment: (_, time) => doing((it) => it.moment(time)),
    ask: (_, verb, body) => doing(async (it) => (await it[verb](body)) ?? it.view()),
  };
}

export const loaded = teaching.then(({ network }) => network);
export const model = async () => (await teaching).about.model;
export const streamModel = async () => (await streaming)?.about.model ?? null;
export const trackingModel = async () => (await tracked)?.about.model ?? null;

export const drawings = session(
  async () => {
    const { about, network } = await teaching;
    return new Taught(about, network);
  },
  (taught) => taught.reset(),
);

export const streams = session(
  async () => {
    const { about, network } = await streaming;
    return new Life(about, network);
  },
  (life, { seed }) => life.reset({ seed }),
);

export const trackings = session(
  async () => {
    const { about, networks } = await tracked;
    return new Followed(about, networks);
  },
  (followed) => followed.reset(),
);

// Made-up characters, two drawings each: one to teach, one to ask about.
export async function samples(number) {
  const { about } = await teaching;
  const { channels, size } = shapeOf(about);
  const seed = BigInt(about.first_sample + number);
  const drawn = drawStrokes({ seed, size, classes: about.model.ways, perClass: 2 }).map((image) => textOf(repeated(image, channels)));
  return drawn.flatMap((_, i) => (i % 2 ? [] : [[drawn[i], drawn[i + 1]]]));
}

export async function readPicture(file, ink) {
  const { about } = await teaching;
  return { pixels: textOf(await readPictureFile(file, ink, about.look, shapeOf(about))) };
}
