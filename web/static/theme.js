// Sets the theme before anything is drawn, so that the page never flashes in the wrong one. The page itself takes
// over from here: see web/src/theme.
let choice = null;
try {
  choice = localStorage.getItem("vramscope-theme");
} catch {
  // A browser that keeps nothing: follow the system.
}
const dark = choice === "dark" || (choice !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
document.documentElement.dataset.theme = dark ? "dark" : "light";
