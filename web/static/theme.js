// Sets the theme before anything is drawn, so that the page never flashes in the wrong one. From then on,
// web/src/theme sets it.
let choice = null;
try {
  choice = new URLSearchParams(localStorage.getItem("vramscope-preferences") ?? "").get("theme");
} catch {
  // Storage is blocked: follow the system.
}
const dark = choice === "dark" || (choice !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
document.documentElement.dataset.theme = dark ? "dark" : "light";
