// Measures the comparison of two open files in the page. Prints a table.
//
//   node tests/measure/compare.mjs [--runs N] A B
//
// The program must have been built: cargo build --release. VRAMSCOPE_PROGRAM names another one. Each run has a browser of its
// own. Times are medians in milliseconds.
//
// table    from the press of 9 until the table of lines is on the screen; both files are open and drawn
// again    another moment is compared: from the click until its sentence is there
// longest  the longest time that the page's own thread was busy meanwhile; browsers report none below 50 ms
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { launch } from '../journeys/browser.mjs';
import { serve } from './server.mjs';
import { install } from './watch.mjs';

const { values: options, positionals: files } = parseArgs({
  options: { runs: { type: 'string', default: '5' } },
  allowPositionals: true,
});
if (files.length !== 2) throw new Error('name two files');
const WAIT = { timeout: 600_000 };

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

/** Opens both files, and compares them once, in a new browser. */
async function measure(url) {
  const browser = await launch();
  try {
    const tab = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    await tab.addInitScript(install);
    await tab.goto(url);
    for (const file of files) {
      const before = await tab.title();
      await tab.getByTestId('file-input').setInputFiles(file);
      await tab.waitForFunction((title) => document.title !== title, before, WAIT);
      await tab.waitForFunction(() => document.documentElement.dataset.state === 'ready', null, WAIT);
      await tab.waitForTimeout(3_000);
    }
    const table = await tab.evaluate(() => {
      watch.begin();
      document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '9', code: 'Digit9', bubbles: true, cancelable: true }));
      return watch.until(() => document.querySelector('[data-testid="compare-line-row"], [data-testid="compare-none"]'), 1);
    });
    await tab.waitForTimeout(500);
    const longest = await tab.evaluate(() => watch.longestTask());
    const again = await tab.evaluate(() => {
      const sentence = () => document.querySelector('[data-testid="compare-accounting"]')?.textContent;
      const before = sentence();
      watch.begin();
      document.querySelector('[data-testid="moment-end"]').click();
      return watch.until(() => sentence() !== before, 1);
    });
    return { table, again, longest: Math.max(longest, await tab.evaluate(() => watch.longestTask())) };
  } finally {
    await browser.close();
  }
}

const folder = mkdtempSync(join(tmpdir(), 'vramscope-compare-'));
const server = await serve(folder);
try {
  const found = [];
  for (let i = 0; i < Number(options.runs); i += 1) found.push(await measure(server.url));
  const of = (name) => Math.round(median(found.map((one) => one[name])));
  console.log('| table | again | longest |\n|---:|---:|---:|');
  console.log(`| ${of('table')} ms | ${of('again')} ms | ${of('longest')} ms |`);
} finally {
  server.stop();
  rmSync(folder, { recursive: true, force: true });
}
