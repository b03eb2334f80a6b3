// Starts a worker on one file, and tells the page in plain text when WebAssembly itself breaks down: then nothing in
// Rust runs any more. Messages that come before the module is ready are kept by the browser until this script ends.
import init, { start_worker } from "./web.js";

let memory = null;

function broke(reason) {
  // Close to the 4 GiB that a module can have, a trap means that memory ran out.
  const isFull = memory !== null && memory.buffer.byteLength > 3.5 * 2 ** 30;
  postMessage((isFull ? "memory: " : "") + String(reason));
}

addEventListener("error", (event) => {
  event.preventDefault();
  broke(event.message);
});
addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  broke(event.reason);
});

// The page's first message may come while the module is still being compiled.
const early = [];
const keep = (event) => early.push(event.data);
addEventListener("message", keep);
const exports = await init();
memory = exports.memory;
removeEventListener("message", keep);
start_worker();
for (const data of early) onmessage?.(new MessageEvent("message", { data }));
