// Measures what-if questions in the page. Prints a table.
//
//   node tests/measure/whatif.mjs [--runs N] FILE...
//
// The program must have been built: cargo build --release. VRAMSCOPE_PROGRAM names another one. Each run has a browser of its
// own. Times are medians in milliseconds, from the click until the page shows the answer.
//
// opened   the tab is opened: the module is loaded, the requests are read, checked, and run as they were recorded
// run      another run, under expandable segments
// file     that run is opened as a file of its own, and its first picture is drawn
// tune     the search for better settings
// longest  the longest time that the page's own thread was busy meanwhile, a task of it at a time
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { launch } from '../journeys/browser.mjs';
import { serve } from './server.mjs';

const { values: options, positionals: files } = parseArgs({
  options: { runs: { type: 'string', default: '3' } },
  allowPositionals: true,
});
const WAIT = { timeout: 600_000 };

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

/** Asks everything once, in a new browser. */
async function measure(url, file) {
  const browser = await launch();
  try {
    const tab = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    await tab.goto(url);
    await tab.getByTestId('file-input').setInputFiles(file);
    await tab.getByRole('tab', { name: 'What-if' }).waitFor(WAIT);
    await tab.getByTestId('timeline-canvas').waitFor(WAIT);
    await tab.waitForTimeout(3_000);
    await tab.evaluate(() => {
      globalThis.tasks = [];
      new PerformanceObserver((list) => globalThis.tasks.push(...list.getEntries().map((task) => task.duration))).observe({ type: 'longtask' });
    });
    const timed = async (act, done) => {
      const begun = performance.now();
      await act();
      await done.waitFor(WAIT);
      return performance.now() - begun;
    };
    const rows = (count) => tab.getByTestId('whatif-runs').locator('tr[data-state=done]').nth(count - 1);
    const opened = await timed(() => tab.getByRole('tab', { name: 'What-if' }).click(), rows(1));
    await tab.getByTestId('whatif-conf').fill('expandable_segments:True');
    const run = await timed(() => tab.getByTestId('whatif-add').click(), rows(2));
    const tune = await timed(() => tab.getByTestId('tune-start').click(), tab.getByTestId('tune-verdict'));
    const longest = Math.max(0, ...(await tab.evaluate(() => globalThis.tasks)));
    const old = await tab.title();
    const begun = performance.now();
    await tab.getByTestId('whatif-open').last().click();
    await tab.waitForFunction((title) => document.title !== title, old, WAIT);
    await tab.waitForFunction(() => document.documentElement.dataset.state === 'ready', null, WAIT);
    return { opened, run, file: performance.now() - begun, tune, longest };
  } finally {
    await browser.close();
  }
}

const folder = mkdtempSync(join(tmpdir(), 'vramscope-whatif-'));
const server = await serve(folder);
try {
  for (const file of files) {
    const found = [];
    for (let i = 0; i < Number(options.runs); i += 1) found.push(await measure(server.url, file));
    const row = Object.keys(found[0]).map((name) => [name, Math.round(median(found.map((times) => times[name])))]);
    console.log(file);
    console.table(Object.fromEntries(row));
  }
} finally {
  server.stop();
  rmSync(folder, { recursive: true, force: true });
}
