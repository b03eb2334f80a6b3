// Measures this page and PyTorch's in the same Chromium, and prints a table.
//
//   node tests/measure/pages.mjs [--peer FOLDER] [--runs N] [--wait MS] [--patience SECONDS] [FILE...]
//
// FOLDER holds MemoryViz.js (from PyTorch: torch/utils/viz) and d3.js, a module with all of d3 5. Without FILE, files of
// 1, 10, 100 MB and 1 GB are generated. It needs a built program: cargo build --release. Each run has its own browser;
// the pages take turns, so that other work of the machine affects both. The figures are medians. --wait is the time between
// the page's appearance and the drop: a person who looks for the file takes a second or more. Without it, the file is dropped
// at once.
//
// first picture   from the drop to the first whole picture (ours: `data-state` is `ready`; PyTorch's: two animation
//                 frames after the first shape)
// longest task    the UI thread's longest task while loading; browsers report none below 50 ms
// memory          the page's renderer process, its peak while loading
// segments,       from the click to two frames after the segment map or the event list is there; in PyTorch's page
// events          both are one view
// step            one event back with the segment map open
// zoom, pan       the UI thread's work for a turn of the wheel and for a drag on the timeline, 95th percentile
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { launch } from '../journeys/browser.mjs';
import { percentile95, workOfSteps } from './frames.mjs';
import { peakBytes, resetPeak } from './memory.mjs';
import * as ours from './ours.mjs';
import * as peer from './peer.mjs';
import { install } from './watch.mjs';

const SIZES = ['1MB', '10MB', '100MB', '1GB'];

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    peer: { type: 'string' },
    runs: { type: 'string', default: '3' },
    patience: { type: 'string', default: '200' },
    wait: { type: 'string', default: '0' },
  },
});
const patience = Number(options.patience) * 1000;

/** Returns the result of `work`, or null if it fails or takes longer than the patience. */
async function patiently(work) {
  let timer;
  const late = new Promise((_, failed) => {
    timer = setTimeout(() => failed(new Error('gave up')), patience);
  });
  try {
    return await Promise.race([work, late]);
  } catch (error) {
    console.error(`  ${error.message.split('\n')[0]}`);
    return null;
  } finally {
    clearTimeout(timer);
  }
}

/** Makes all measurements of one page with one file, in a new browser. */
async function measure(served, file) {
  const browser = await launch();
  try {
    const context = await browser.newContext({ viewport: { width: 1600, height: 1000 }, reducedMotion: 'reduce' });
    context.setDefaultTimeout(patience);
    const tab = await context.newPage();
    await tab.addInitScript(install);
    await tab.goto(served.url);
    await served.page.open(tab);
    await tab.waitForTimeout(Number(options.wait));
    resetPeak();
    const result = { picture: await patiently(served.page.load(tab, file)) };
    if (result.picture === null) return result;
    result.task = await tab.evaluate(() => watch.longestTask());
    result.memory = peakBytes();

    const box = await patiently(served.page.timeline(tab));
    if (box) {
      const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
      await tab.mouse.move(x, y);
      const zoomed = await patiently(workOfSteps(browser, tab, (i) => tab.mouse.wheel(0, i < 15 ? -120 : 120)));
      result.zoom = zoomed && percentile95(zoomed);
      await tab.mouse.wheel(0, -600);
      // Shift moves the window; without it, a drag selects a range.
      await tab.keyboard.down('Shift');
      await tab.mouse.down();
      const panned = await patiently(workOfSteps(browser, tab, (i) => tab.mouse.move(x + 8 * (i % 15), y)));
      result.pan = panned && percentile95(panned);
      await tab.mouse.up();
      await tab.keyboard.up('Shift');
    }
    result.events = await patiently(served.page.events(tab));
    result.segments = await patiently(served.page.state(tab));
    if (result.segments === null) return result;
    const steps = [];
    for (let i = 0; i < 5; i++) steps.push(await patiently(served.page.step(tab)));
    result.step = median(steps);
    return result;
  } finally {
    await browser.close();
  }
}

/** Returns the median of the measured values; null if there is none. */
function median(values) {
  const sorted = values.filter((value) => typeof value === 'number').sort((a, b) => a - b);
  return sorted.length ? sorted[Math.floor(sorted.length / 2)] : null;
}

const time = (ms) => (ms === null || ms === undefined ? '' : ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);
const task = (ms) => (ms === 0 ? '< 50 ms' : time(ms));
const mib = (bytes) => (bytes ? `${Math.round(bytes / 2 ** 20)} MiB` : '');
const COLUMNS = [
  ['first picture', 'picture', time],
  ['longest task', 'task', task],
  ['memory', 'memory', mib],
  ['segments', 'segments', time],
  ['events', 'events', time],
  ['step', 'step', time],
  ['zoom', 'zoom', time],
  ['pan', 'pan', time],
];

const folder = mkdtempSync(join(tmpdir(), 'vramscope-measure-'));
const pages = [await ours.serve(), ...(options.peer ? [await peer.serve(options.peer)] : [])];
try {
  const files = positionals.length ? positionals : SIZES.map((size) => join(folder, `${size}.pickle`));
  console.log(`| file | page | ${COLUMNS.map(([title]) => title).join(' | ')} |`);
  console.log(`|---|---|${'---|'.repeat(COLUMNS.length)}`);
  for (const file of files) {
    if (!existsSync(file)) {
      const maker = fileURLToPath(new URL('make_snapshot.py', import.meta.url));
      execFileSync('python3', [maker, basename(file, '.pickle'), file], { stdio: 'inherit' });
    }
    const runs = pages.map(() => []);
    for (let run = 0; run < Number(options.runs); run++) {
      for (const [i, served] of pages.entries()) runs[i].push(await measure(served, file));
    }
    for (const [i, served] of pages.entries()) {
      const cells = COLUMNS.map(([, key, show]) => show(median(runs[i].map((result) => result[key]))));
      console.log(`| ${(statSync(file).size / 1e6).toFixed(0)} MB | ${served.name} | ${cells.join(' | ')} |`);
    }
    if (!positionals.length) rmSync(file);
  }
} finally {
  for (const served of pages) served.stop();
  rmSync(folder, { recursive: true, force: true });
}
