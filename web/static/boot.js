// Starts the page. A file of its own, since the page's policy allows no inline script.
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

// The engine, downloaded and compiled once for all workers, off this thread.
let engine = null;

function compileEngine() {
  engine ??= WebAssembly.compileStreaming(fetch(new URL("./engine_bg.wasm", import.meta.url)));
  // The next worker tries again.
  engine.catch(() => (engine = null));
  return engine;
}

// Starts a worker. Messages to it may be sent at once: it keeps them until the engine runs.
function startWorker() {
  const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  compileEngine().then(
    (module) => worker.postMessage(module),
    (error) => worker.dispatchEvent(new ErrorEvent("error", { message: `engine: ${error}`, cancelable: true })),
  );
  return worker;
}

try {
  const page = init({ module_or_path: new URL("./page_bg.wasm", import.meta.url) });
  compileEngine();
  await page;
  start_page(startWorker);
} catch (error) {
  crashed(String(error));
}
