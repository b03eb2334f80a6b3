// Runs the journeys: every `*.journey.mjs` here, or those named as arguments.
//
//   VRAMSCOPE_URL=http://127.0.0.1:7070/ node run.mjs [NAME...]
//
// VRAMSCOPE_URL         where the page is served; `cargo test -p tests --test journeys -- --ignored` serves it by itself
// VRAMSCOPE_PROGRAM     the built program, for journeys that start servers and jobs of their own; set by cargo likewise
// VRAMSCOPE_DRIVER      a folder with the fake CUDA driver, for jobs on a device; set by cargo likewise
// VRAMSCOPE_CHROMIUM    the browser; without it, Chromium or Chrome from the PATH
// VRAMSCOPE_BROWSER     firefox: through Firefox, by default the journeys that FIREFOX lists; VRAMSCOPE_FIREFOX says where it is
// VRAMSCOPE_FIRST       anything: of the journeys for Firefox, only the first
// VRAMSCOPE_SOAK       anything: all golden pictures and all monkeys, which take minutes (`just soak`)
// VRAMSCOPE_SCREENSHOTS a folder for the screenshots of journeys; without it, none are kept
//
// To add a journey: write NAME.journey.mjs with `test(...)` from node:test, and `openPage` from ./page.mjs. One file
// covers one task of a person; it checks what that person sees, not how the page is built.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { isFirefox } from './browser.mjs';

/**
 * What goes through Firefox as well: one way or two through each view, and what stores, sends or copies. Its driver has no
 * touches, no double click, no dark system and no motion, takes no note of files that the page itself makes and saves, and
 * loses the focus to the browser's own buttons after the last stop of Tab.
 */
const FIREFOX = {
  opening: ['the page opens empty, under its policy, and contacts no other server'],
  files: ['two files at once are switched without loading again, each with its own view'],
  timeline: ['the wheel zooms where it points, keys zoom and move', 'a click on an allocation shows its name, its size and its stack'],
  segments: ['a click on a block selects its allocation, in the segment under the pointer'],
  flame: ['a click zooms into a box, and the path above it leads back'],
  events: ['an event leads to its free and back, and is copied with its stack'],
  heatmap: ['from a gap that is too small to the block that pins it'],
  verdict: ['a leak is called a leak, and a click leads to its line'],
  whatif: ['a fragmented trace: press the button, copy the line'],
  range: ['a drag selects a range, and its sums are those of its ends'],
  search: ['a search becomes a filter, which can be removed'],
  keyboard: ['Ctrl+K finds a command by a few letters and runs it'],
  history: ['Back and Forward go through files, tabs, zoom and selection', 'Ctrl+Z and Backspace undo, Ctrl+Shift+Z and Ctrl+Y redo'],
  link: ['a link restores tab, cursor, selection and filter once the same file is dropped'],
  recent: ['a reload comes back to the same file and the same view'],
  share: ['a trace is shared, opened by somebody else, and taken back'],
  live: ['a job is watched from its first event to its end, and its recording can be downloaded'],
  narrow: ['a phone shows every view in full width, in light'],
};

const folder = fileURLToPath(new URL('.', import.meta.url));
const isListed = isFirefox && process.argv.length === 2;
const chosen = process.env.VRAMSCOPE_FIRST ? Object.fromEntries(Object.entries(FIREFOX).slice(0, 1)) : FIREFOX;
const wanted = (isListed ? Object.keys(chosen) : process.argv.slice(2)).map((name) => name.replace(/(\.journey)?(\.mjs)?$/, '.journey.mjs'));
const files = readdirSync(folder)
  .filter((name) => name.endsWith('.journey.mjs'))
  .filter((name) => wanted.length === 0 || wanted.includes(name))
  .sort();
if (files.length === 0) {
  console.error(`No journey is named ${wanted.join(' or ')}.`);
  process.exit(1);
}

/** The most journeys that are run again after they failed. If more fail, a busy machine is not the cause. */
const MOST_UNSTEADY = 2;

/** The files that run at a time: on a small machine more browsers would only slow each other down, and Firefox has many processes. */
const LANES = isFirefox ? 1 : Math.min(2, availableParallelism());

/** Runs journeys, prints how they go, and returns those that failed and the names of those that passed. */
async function go(files, { lanes, names }) {
  const [failed, passed] = [[], []];
  const events = run({ files, concurrency: lanes, timeout: 300_000, testNamePatterns: names }).on('test:fail', ({ name, file, todo }) => {
    if (todo === undefined) failed.push({ name, file });
  });
  events.on('test:pass', ({ name }) => passed.push(name));
  for await (const text of events.compose(new spec())) process.stdout.write(text);
  return { failed, passed };
}

/** Where the journeys that failed once are kept, for each of the last runs of all journeys. */
const UNSTEADY = new URL('../../target/unsteady.json', import.meta.url);
const RUNS = 10;

/** Keeps the journeys that failed once in this run. Returns those for which it is the second run of the last ten. */
function again(unsteady) {
  let runs = [];
  try {
    runs = JSON.parse(readFileSync(UNSTEADY, 'utf8'));
  } catch { /* This is the first run. */ }
  runs = [...runs, unsteady].slice(-RUNS);
  mkdirSync(new URL('.', UNSTEADY), { recursive: true });
  writeFileSync(UNSTEADY, JSON.stringify(runs));
  return unsteady.filter((name) => runs.filter((names) => names.includes(name)).length > 1);
}

const exactly = (name) => new RegExp(`^${name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}$`);

const listed = isListed ? Object.values(chosen).flat() : undefined;
const { failed, passed } = await go(files.map((name) => folder + name), { lanes: LANES, names: listed?.map(exactly) });
const missing = listed?.filter((name) => ![...passed, ...failed.map(({ name }) => name)].includes(name)) ?? [];
if (missing.length > 0) console.error(`\nNo journey has the name: ${missing.join('; ')}`);
// A file that fails as a whole, such as by an exception after its tests, is reported by its path: no journey has that name.
const isWholeFile = ({ name, file }) => file === undefined || name === file;
if (missing.length > 0 || failed.length > MOST_UNSTEADY || failed.some(isWholeFile)) {
  process.exitCode = 1;
} else if (failed.length > 0) {
  const names = failed.map(({ name }) => name);
  console.log(`\nOnce more, alone: ${names.join('; ')}`);
  const once = await go([...new Set(failed.map(({ file }) => file))], { lanes: 1, names: names.map(exactly) });
  if (once.failed.length > 0 || !names.every((name) => once.passed.includes(name))) process.exitCode = 1;
  else console.log(`\nUNSTEADY: failed, then passed when run again; mend them: ${names.join('; ')}`);
}
if (process.argv.length === 2 && !isFirefox && !process.exitCode) {
  const repeated = again(failed.map(({ name }) => name));
  if (repeated.length > 0) {
    console.error(`\nFailed once in two of the last ${RUNS} runs: ${repeated.join('; ')}`);
    process.exitCode = 1;
  }
}
