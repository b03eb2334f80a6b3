// Starts the page. A file of its own, since the page's policy allows no script inside the page.
import init, { start_page } from "./web.js";

// The page's error boundary: whatever goes wrong from here on ends in a sentence, not in a page that no longer moves.
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

try {
  await init();
  start_page();
} catch (error) {
  crashed(String(error));
}
