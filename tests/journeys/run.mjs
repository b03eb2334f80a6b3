// Runs the journeys: every `*.journey.mjs` here, or those named as arguments.
//
//   VRAMSCOPE_URL=http://127.0.0.1:7070/ node run.mjs [NAME...]
//
// VRAMSCOPE_URL         where the page is served; `cargo test -p tests --test journeys -- --ignored` serves it by itself
// VRAMSCOPE_PROGRAM     the built program, for journeys that start servers and jobs of their own; set by cargo likewise
// VRAMSCOPE_DRIVER      a folder with the fake CUDA driver, for jobs on a device; set by cargo likewise
// VRAMSCOPE_CHROMIUM    the browser; without it, Chromium or Chrome from the PATH
// VRAMSCOPE_SOAK       anything: all golden pictures and all monkeys, which take minutes (`just soak`)
// VRAMSCOPE_SCREENSHOTS a folder for the screenshots of journeys; without it, none are kept
//
// To add a journey: write NAME.journey.mjs with `test(...)` from node:test, and `openPage` from ./page.mjs. One file
// covers one task of a person; it checks what that person sees, not how the page is built.
import { readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';

const folder = fileURLToPath(new URL('.', import.meta.url));
const wanted = process.argv.slice(2).map((name) => name.replace(/(\.journey)?(\.mjs)?$/, '.journey.mjs'));
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

/** The files that run at a time: on a small machine more browsers would only slow each other down. */
const LANES = Math.min(2, availableParallelism());

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

const exactly = (name) => new RegExp(`^${name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}$`);

const { failed } = await go(files.map((name) => folder + name), { lanes: LANES });
// A file that fails as a whole, such as by an exception after its tests, is reported by its path: no journey has that name.
const isWholeFile = ({ name, file }) => file === undefined || name === file;
if (failed.length > MOST_UNSTEADY || failed.some(isWholeFile)) {
  process.exitCode = 1;
} else if (failed.length > 0) {
  const names = failed.map(({ name }) => name);
  console.log(`\nOnce more, alone: ${names.join('; ')}`);
  const again = await go([...new Set(failed.map(({ file }) => file))], { lanes: 1, names: names.map(exactly) });
  if (again.failed.length > 0 || !names.every((name) => again.passed.includes(name))) process.exitCode = 1;
  else console.log(`\nUNSTEADY: failed, then passed when run again; mend them: ${names.join('; ')}`);
}
