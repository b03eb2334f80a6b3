// Pictures of every view, in every size and both themes, of files of every kind.
//
//   VRAMSCOPE_URL=http://127.0.0.1:7070/ node gallery.mjs FOLDER [FILE...]
//
// writes them for people to look at; FILE is a further file, such as one with a million events. The golden pictures in
// `golden` are made from the same list.
import { mkdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { openPage } from './page.mjs';
import { goTo, until } from './workbench.mjs';

export const THEMES = ['light', 'dark'];
export const SIZES = [[1440, 900], [1024, 700], [390, 844]];
export const VIEWS = ['timeline', 'segments', 'heatmap', 'flame', 'events', 'findings', 'what-if'];

/** The placeholders in a view whose answers have not arrived. */
const PENDING = '[data-testid="whatif-loading"], [data-testid="whatif-run"][data-state="running"], [aria-busy="true"]';

const fixture = (name) => fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url));

/** Returns a file without its end, as playwright passes files to the page. */
function cut(name, share) {
  const whole = readFileSync(fixture(name));
  return { name: `cut_${name}`, mimeType: 'application/octet-stream', buffer: whole.subarray(0, Math.floor(whole.length * share)) };
}

/** The files of the repository: each with a name and what opens it. */
export const SUBJECTS = [
  ['small', (page) => page.load(fixture('two_devices.pickle'))],
  ['out-of-memory', (page) => page.loadSample()],
  ['cut-off', (page) => page.load(cut('torch_2_15.pickle', 0.7))],
];

/** Returns a screenshot of the page once it no longer changes; the last one after three seconds. */
async function still(page) {
  let last = await page.tab.screenshot();
  for (let i = 0; i < 20; i += 1) {
    await pause(150);
    const next = await page.tab.screenshot();
    if (next.equals(last)) break;
    last = next;
  }
  return last;
}

/** Calls `take(name, picture)` with every picture of a subject in a theme. */
export async function pictures(page, [subject, open], theme, take) {
  for (const [width, height] of SIZES) {
    await page.tab.setViewportSize({ width, height });
    // Which panels are open at first depends on the size.
    await page.open();
    await open(page);
    for (const view of VIEWS) {
      await goTo(page, view);
      await until('nothing is on its way', () => page.tab.locator(PENDING).count(), (count) => count === 0);
      await page.tab.mouse.move(0, 0);
      await take(`${subject}-${view}-${width}-${theme}`, await still(page));
    }
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { writeFileSync } = await import('node:fs');
  const [folder, ...files] = process.argv.slice(2);
  mkdirSync(folder, { recursive: true });
  const named = files.map((file) => [basename(file).replace(/\..*/, ''), (page) => page.load(file)]);
  for (const subject of [...SUBJECTS, ...named]) {
    for (const theme of THEMES) {
      const endings = [];
      const page = await openPage({ after: (end) => endings.push(end) }, { theme });
      await pictures(page, subject, theme, (name, picture) => writeFileSync(join(folder, `${name}.png`), picture));
      for (const end of endings) await end().catch((failure) => console.error(failure.message));
    }
  }
}
