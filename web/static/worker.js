// Runs the engine in a worker, for one file or one session. The page sends the compiled module first.
//
// The build makes rerun.js of it, which runs the module `whatif` in the same way.
import init, { start_worker } from "./engine.js";

let memory = null;

// Tells the page in plain text when WebAssembly itself fails: no Rust code runs any more then.
function failed(reason) {
  // Near the 4 GiB that a module can have, a trap means that memory ran out.
  const isFull = memory !== null && memory.buffer.byteLength > 3.5 * 2 ** 30;
  postMessage((isFull ? "memory: " : "") + String(reason));
}

addEventListener("error", (event) => {
  event.preventDefault();
  failed(event.message);
});
addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  failed(event.reason);
});

// Messages that arrive before the engine runs.
const early = [];

async function receive({ data }) {
  if (!(data instanceof WebAssembly.Module)) {
    early.push(data);
    return;
  }
  const exports = await init({ module_or_path: data });
  memory = exports.memory;
  removeEventListener("message", receive);
  start_worker();
  for (const data of early) onmessage(new MessageEvent("message", { data }));
}
addEventListener("message", receive);
