// Whoever has the networks, for the rest of the page: here a server, asked over HTTP.
// A static page has another file of this name, which exports the same and computes in the window itself.

import { Refusal } from "./refusal.js";

async function answerOf(request) {
  let response;
  try {
    response = await request;
  } catch {
    throw new Refusal(0, "The server does not answer; see whether “srwm demo” still runs.");
  }
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refusal(response.status, body.error || `The server answered ${response.status}.`);
  return body;
}

const get = (path) => answerOf(fetch(path));

const post = (path, body = {}) =>
  answerOf(fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }));

// Sessions of one kind: open one, show it, and ask it to do something.
const sessions = (path) => {
  const at = (name, verb) => `${path}/${encodeURIComponent(name)}/${verb}`;
  return {
    open: (body) => post(path, body),
    show: (name) => get(`${path}/${encodeURIComponent(name)}`),
    moment: (name, time) => get(at(name, `moments/${time}`)),
    ask: (name, verb, body) => post(at(name, verb), body),
  };
};

export const loaded = Promise.resolve(); // The networks are there.
export const model = () => get("/api/model");
export const drawings = sessions("/api/sessions");
export const samples = (number) => get(`/api/samples/${number}`);
export const streamModel = async () => (await get("/api/stream")).stream;
export const streams = sessions("/api/stream/sessions");
export const trackingModel = async () => (await get("/api/tracking")).tracking;
export const trackings = sessions("/api/tracking/sessions");

export const readPicture = (file, ink) =>
  answerOf(fetch(`/api/pictures?ink=${ink}`, { method: "POST", headers: { "content-type": "application/octet-stream" }, body: file }));
