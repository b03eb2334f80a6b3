// Pictures of every view, in every size and both themes, of files of every kind.
//
//   VRAMSCOPE_URL=http://127.0.0.1:7070/ VRAMSCOPE_PROGRAM=target/release/vramscope node gallery.mjs FOLDER [FILE...]
//
// writes them for people to look at; FILE is a further file. The golden pictures in `golden` are made from the same list,
// except for those of a live session.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { openPage } from './page.mjs';
import { emptyFolder, programPath, startJob, startServer } from './program.mjs';
import { trainingJob } from './training.mjs';
import { answered, at, events, goTo, openSession, tabs, text, until } from './workbench.mjs';

export const THEMES = ['light', 'dark'];
export const SIZES = [[1440, 900], [1024, 700], [390, 844]];

/** The placeholders in a view whose answers have not arrived. */
const PENDING = '[data-testid="whatif-loading"], [data-testid="whatif-run"][data-state="running"], [aria-busy="true"]';

const fixture = (name) => fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url));

/** Returns a file without its end, as playwright passes files to the page. */
function cut(name, share) {
  const whole = readFileSync(fixture(name));
  return { name: `cut_${name}`, mimeType: 'application/octet-stream', buffer: whole.subarray(0, Math.floor(whole.length * share)) };
}

/** Writes the recording of a job with a million events. Its memory depends on nothing but these arguments. */
function million(t) {
  const file = join(emptyFolder(t), 'million.vramscope');
  execFileSync(programPath(), ['run', 'transformer', '--steps', '310', '--out', file], { stdio: 'ignore' });
  return async (page) => {
    await page.load(file);
    await until('a million events', () => events(page), (count) => count > 1_000_000);
  };
}

/** Starts a server, to which a job sends its memory until it ends. */
async function session(t) {
  const server = await startServer(t);
  const { events_sent: sent } = await startJob(t, server.url, 'transformer', '--steps', '6', '--rate', '0').ended;
  return async (page) => {
    await openSession(page);
    await until('all of it is there', () => events(page), (count) => count === sent);
  };
}

/** Two runs whose lines have moved, and of which one allocates more. */
function runs() {
  return async (page) => {
    await page.load(trainingJob(6, { name: 'before.json' }));
    await page.drop(trainingJob(6, { each: 5, moved: 3, name: 'after.json' }));
    await until('the second file is shown', () => text(page, 'file-menu'), (said) => said.includes('after.json'));
    await page.reach('ready');
  };
}

/** Shows one view of both runs below their comparison. */
const bothIn = (view) => async (page) => {
  await goTo(page, 'Compare');
  await at(page, `compare-view-${view}`).click();
};

/** The views of two runs: each with its name, and what shows it. */
const OF_BOTH = [
  ['compare', (page) => goTo(page, 'Compare')],
  ['compare-flame', bothIn('flame')],
  ['compare-timeline', bothIn('timeline')],
];

/**
 * What looks the same each time: each with a name, what prepares it for a test and returns what opens it in a page, and which
 * views it is shown in, if not in all.
 */
export const SUBJECTS = [
  ['small', () => (page) => page.load(fixture('two_devices.pickle'))],
  ['out-of-memory', () => (page) => page.loadSample()],
  ['cut-off', () => (page) => page.load(cut('torch_2_15.pickle', 0.7))],
  ['million', million],
  ['two-runs', runs, OF_BOTH],
];

/** A session: the times of its events are those of the clock, so that no two pictures of it are equal. */
const LIVE = ['live', session];

/** Waits until nothing in a view is on its way. */
async function settled(page) {
  await answered(page);
  await until('nothing is on its way', () => page.tab.locator(PENDING).count(), (count) => count === 0);
}

/** Returns a screenshot of the page that has all its answers and no longer changes; the last one after three seconds. */
async function still(page) {
  let last;
  for (let i = 0; i < 20; i += 1) {
    await settled(page);
    const next = await page.tab.screenshot();
    if (last?.equals(next)) break;
    last = next;
    await pause(150);
  }
  return last;
}

/** Calls `take(name, picture)` with every picture of a subject in a theme. `open` opens it in the page. */
export async function pictures(page, [subject, , views], open, theme, take) {
  for (const [width, height] of SIZES) {
    await page.tab.setViewportSize({ width, height });
    // Which panels are open at first depends on the size.
    await page.open();
    await open(page);
    for (const [view, show] of views ?? (await tabs(page)).map((tab) => [tab.toLowerCase(), (page) => goTo(page, tab)])) {
      await show(page);
      await page.tab.mouse.move(0, 0);
      await take(`${subject}-${view}-${width}-${theme}`, await still(page));
    }
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { writeFileSync } = await import('node:fs');
  const [folder, ...files] = process.argv.slice(2);
  mkdirSync(folder, { recursive: true });
  const named = files.map((file) => [basename(file).replace(/\..*/, ''), () => (page) => page.load(file)]);
  for (const subject of [...SUBJECTS, LIVE, ...named]) {
    const [, prepare] = subject;
    for (const theme of THEMES) {
      const endings = [];
      const t = { after: (end) => endings.push(end) };
      const open = await prepare(t);
      const page = await openPage(t, { theme });
      await pictures(page, subject, open, theme, (name, picture) => writeFileSync(join(folder, `${name}.png`), picture));
      for (const end of endings) await end().catch((failure) => console.error(failure.message));
    }
  }
}
