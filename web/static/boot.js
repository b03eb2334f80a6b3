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
function wasm(part, url, priority = "auto") {
  const element = inside(part);
  if (!element) return fetch(url, { priority });
  const packed = new Blob([fromBase64(element.textContent)]).stream();
  const plain = packed.pipeThrough(new DecompressionStream("gzip"));
  return new Response(plain, { headers: { "Content-Type": "application/wasm" } });
}

// The workers' modules, each downloaded and compiled once for all its workers, off this thread.
const compiled = new Map();

function compile(part, url) {
  if (!compiled.has(part)) {
    const module = WebAssembly.compileStreaming(wasm(part, url));
    compiled.set(part, module);
    // The next worker tries again.
    module.catch(() => compiled.delete(part));
  }
  return compiled.get(part);
}

const compileEngine = () => compile("engine", new URL("./engine_bg.wasm", import.meta.url));
// Loaded when it is first used.
const compileWhatIf = () => compile("whatif", new URL("./whatif_bg.wasm", import.meta.url));

// The second module of the page, if it has two: it shares memory and functions with the first one, whose glue calls
// this, and again after a failure.
globalThis.loadLater = async (exports, done, data) => {
  let isLoaded = true;
  try {
    const later = wasm("later", new URL("./later_bg.wasm", import.meta.url), "low");
    await WebAssembly.instantiateStreaming(later, { __wasm_split: exports });
  } catch (error) {
    isLoaded = false;
    console.warn(error);
  }
  exports.__indirect_function_table.get(done)(data, isLoaded);
};

// A script that runs in workers. Scripts of other files can't be workers of a page from disk, but what the page makes can.
function script(part, url) {
  const element = inside(part);
  if (!element) return url;
  return URL.createObjectURL(new Blob([fromBase64(element.textContent)], { type: "text/javascript" }));
}

function engineScript() {
  const url = new URL("./worker.js", import.meta.url);
  // A worker has a policy of its own. The server lets it connect to the site that this page's address names.
  const elsewhere = new URLSearchParams(location.search).get("url");
  if (elsewhere) url.search = new URLSearchParams({ url: elsewhere });
  return script("worker", url);
}

// Returns a function that starts a worker. Messages to it may be sent at once: it keeps them until its module runs.
function starter(makeScript, compileModule) {
  let made = null;
  return () => {
    made ??= makeScript();
    // Chromium starts no module from what a page on disk has made. The script inside the page imports nothing.
    const worker = new Worker(made, { type: inside("worker") ? "classic" : "module" });
    compileModule().then(
      (module) => worker.postMessage(module),
      (error) => worker.dispatchEvent(new ErrorEvent("error", { message: `engine: ${error}`, cancelable: true })),
    );
    return worker;
  };
}

const startWorker = starter(engineScript, compileEngine);
const startWhatIf = starter(() => script("rerun", new URL("./rerun.js", import.meta.url)), compileWhatIf);

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

// The module that keeps files for a later visit. A page from disk has no storage for them.
const recent = inside("page") ? undefined : import("./recent.js").catch(() => undefined);

try {
  const page = init({ module_or_path: wasm("page", new URL("./page_bg.wasm", import.meta.url)) });
  compileEngine();
  await page;
  start_page(startWorker, startWhatIf, inside("trace") ? readTrace : undefined, await recent);
} catch (error) {
  crashed(String(error));
}
