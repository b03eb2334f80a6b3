// Starts the page. A file of its own, since the page's policy allows no inline script.
//
// It also starts the page that is one file (collector/src/offline): there the other files are elements of the page, in
// base64, and the policy of that page allows this script by its hash.
import init, { start_page } from "./page.js";

// Catches what goes wrong outside of Rust's panics, so that the user sees an error instead of a page that hangs.
function crashed(detail) {
  document.getElementById("crash-detail").textContent ||= detail;
  document.getElementById("crash").hidden = false;
}

addEventListener("error", (event) => {
  if (event.error instanceof WebAssembly.RuntimeError) crashed(event.message);
});
addEventListener("unhandledrejection", (event) => {
  if (event.reason instanceof WebAssembly.RuntimeError) crashed(event.reason.message);
});

function fromBase64(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

// An element with a part of the page that is one file, or null.
const inside = (part) => document.getElementById(`vramscope-${part}`);

// A WebAssembly module: packed inside the page, or a file beside it.
function wasm(part, url) {
  const element = inside(part);
  if (!element) return fetch(url);
  const packed = new Blob([fromBase64(element.textContent)]).stream();
  const plain = packed.pipeThrough(new DecompressionStream("gzip"));
  return new Response(plain, { headers: { "Content-Type": "application/wasm" } });
}

// The engine, downloaded and compiled once for all workers, off this thread.
let engine = null;

function compileEngine() {
  engine ??= WebAssembly.compileStreaming(wasm("engine", new URL("./engine_bg.wasm", import.meta.url)));
  // The next worker tries again.
  engine.catch(() => (engine = null));
  return engine;
}

// The workers' script. Scripts of other files can't be workers of a page from disk, but what the page makes can.
function workerUrl() {
  const element = inside("worker");
  if (element) return URL.createObjectURL(new Blob([fromBase64(element.textContent)], { type: "text/javascript" }));
  const url = new URL("./worker.js", import.meta.url);
  // A worker has a policy of its own. The server lets it connect to the site that this page's address names.
  const elsewhere = new URLSearchParams(location.search).get("url");
  if (elsewhere) url.search = new URLSearchParams({ url: elsewhere });
  return url;
}

let workers = null;

// Starts a worker. Messages to it may be sent at once: it keeps them until the engine runs.
function startWorker() {
  workers ??= workerUrl();
  // Chromium starts no module from what a page on disk has made. The script inside the page imports nothing.
  const worker = new Worker(workers, { type: inside("worker") ? "classic" : "module" });
  compileEngine().then(
    (module) => worker.postMessage(module),
    (error) => worker.dispatchEvent(new ErrorEvent("error", { message: `engine: ${error}`, cancelable: true })),
  );
  return worker;
}

// Characters of base64 that are decoded at once: some ten milliseconds. A multiple of four.
const PIECE = 1 << 22;

// Reads the trace inside the page as a file. Between two pieces the page draws.
async function readTrace() {
  const element = inside("trace");
  const text = element.textContent;
  const name = element.dataset.name || "trace.vramscope";
  const pieces = [];
  for (let at = 0; at < text.length; at += PIECE) {
    pieces.push(fromBase64(text.slice(at, at + PIECE)));
    await new Promise((done) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = done;
      port2.postMessage(null);
    });
  }
  // The text takes more memory than the file, and is not needed again.
  element.remove();
  return new File(pieces, name);
}

try {
  const page = init({ module_or_path: wasm("page", new URL("./page_bg.wasm", import.meta.url)) });
  compileEngine();
  await page;
  start_page(startWorker, inside("trace") ? readTrace : undefined);
} catch (error) {
  crashed(String(error));
}
