// A network as ONNX Runtime runs it in the window: one step at a time, from inputs and a state to outputs and a new state.

import { Refusal } from "./refusal.js";
import * as ort from "./ort.js";

const GZIP = [0x1f, 0x8b];
const ARRAYS = { float32: Float32Array, int64: BigInt64Array, uint8: Uint8Array };
const size = (shape) => shape.slice(1).reduce((total, each) => total * each, 1); // Without the batch.

// Fetch a file of the page, and unpack it unless the server has done so already.
async function fetched(name) {
  let response;
  try {
    response = await fetch(new URL(name, import.meta.url));
  } catch {
    throw new Refusal(0, `The file ${name} of this page could not be had; see whether the network is there, and load it again.`);
  }
  if (!response.ok) throw new Refusal(response.status, `The file ${name} of this page could not be had: status ${response.status}.`);
  const bytes = new Uint8Array(await response.arrayBuffer());
  if (!GZIP.every((each, i) => bytes[i] === each)) return bytes;
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(unpacked).arrayBuffer());
}

// What the page was built with: its models, and what Python's code knows of them.
const built = fetched("models.json").then((bytes) => JSON.parse(new TextDecoder().decode(bytes)));
export const about = async () => await built;

// No threads: they would need headers that a plain file server does not send.
const runtime = fetched("runtime.bin").then((bytes) => {
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmBinary = bytes;
});

export class Network {
  #session;
  #io;

  // file: of the model; io: what `srwm.deploy` says of what goes in and comes out.
  static async load(file, io) {
    const [content] = await Promise.all([fetched(file), runtime]);
    const network = new Network();
    network.#io = io;
    network.#session = await ort.InferenceSession.create(content, { executionProviders: ["wasm"] });
    return network;
  }

  // The state of a network that has seen nothing.
  static start(io) {
    return Object.fromEntries(io.state.map(({ name, dtype, shape }) => [name, new ARRAYS[dtype](size(shape))]));
  }

  // Take a step. inputs: numbers or bytes by name. Gives the outputs by name as arrays, and the new state.
  async step(inputs, state) {
    const feeds = {};
    for (const { name, dtype, shape } of this.#io.inputs) {
      const value = inputs[name];
      const data = typeof value === "number" ? new ARRAYS[dtype]([dtype === "int64" ? BigInt(value) : value]) : value;
      feeds[name] = new ort.Tensor(dtype, data, [1, ...shape.slice(1)]);
    }
    for (const { name, dtype, shape } of this.#io.state) {
      feeds[name] = new ort.Tensor(dtype, state[name], [1, ...shape.slice(1)]);
    }
    const made = await this.#session.run(feeds);
    const outputs = Object.fromEntries(this.#io.outputs.map(({ name }) => [name, made[name].data]));
    return { outputs, state: Object.fromEntries(this.#io.state.map((slot) => [slot.name, made[slot.new_name].data])) };
  }
}
