// Measures the stages of opening a file, from the drop to the first picture, and prints a table.
//
//   node tests/measure/stages.mjs [--runs N] [--wait MS] [--file FILE]...
//
// Without --file, a file of 100 MB is generated. --wait is the time between the page's appearance and the drop; 0 measures
// the wait of a person who drops a file at once. The program must have been built: cargo build --release; VRAMSCOPE_URL names
// another server. Each run has its own browser. The numbers are medians, in milliseconds.
//
// start           from the drop until the worker begins to read
// wait for bytes  the worker waits for the browser to deliver bytes
// parse           the worker parses them, in between
// assemble        the worker puts together what was parsed
// index           the worker builds what questions are answered from
// summary         until the page has received the file's summary
// first answer    until the page has received the first answer
// first picture   until all of the first picture is on the screen
// longest task    the longest task of the page's thread meanwhile; 0 for less than 50 ms
// findings        from the first picture until the page has received the findings and the verdict of the current device
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { launch } from '../journeys/browser.mjs';
import { serve } from './ours.mjs';
import { openTab } from './tab.mjs';

const { values: options } = parseArgs({
  options: {
    file: { type: 'string', multiple: true },
    runs: { type: 'string', default: '5' },
    wait: { type: 'string', default: '2000' },
  },
});

/** The stages of one file in a new browser, in the order of the table. */
async function measure(served, file) {
  const browser = await launch();
  try {
    const tab = await openTab(browser, served);
    await tab.waitForTimeout(Number(options.wait));
    const total = await served.page.load(tab, file);
    const task = await tab.evaluate(() => watch.longestTask());
    await tab.waitForFunction(() => performance.getEntriesByName('findings received').length > 0);
    const page = await tab.evaluate(() => {
      const at = {};
      for (const mark of performance.getEntriesByType('mark')) at[mark.name] ??= mark.startTime;
      return { at, begun: watch.begun, origin: performance.timeOrigin };
    });
    const engine = await engineTimes(tab);
    const offset = engine.origin - page.origin;
    const { 'wait for bytes': wait, parse, assemble, index } = engine.stages;
    const indexed = index.start + index.duration + offset;
    return {
      start: wait.start + offset - page.begun,
      'wait for bytes': wait.duration,
      parse: parse.duration,
      assemble: assemble.duration,
      index: index.duration,
      summary: page.at['summary received'] - indexed,
      'first answer': page.at['first answer'] - page.at['summary received'],
      'first picture': page.begun + total - page.at['first answer'],
      'all of it': total,
      'longest task': task,
      findings: page.at['findings received'] - page.begun - total,
    };
  } finally {
    await browser.close();
  }
}

/** Returns the entries that the worker wrote to its performance timeline. */
async function engineTimes(tab) {
  for (const worker of tab.workers()) {
    const times = await worker.evaluate(() => {
      const measures = performance.getEntriesByType('measure');
      const stages = Object.fromEntries(measures.map(({ name, startTime, duration }) => [name, { start: startTime, duration }]));
      return { stages, origin: performance.timeOrigin };
    });
    if (times.stages.index) return times;
  }
  throw new Error('no worker has indexed a file');
}

const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];

const folder = mkdtempSync(join(tmpdir(), 'vramscope-stages-'));
const served = await serve();
try {
  let files = options.file;
  if (!files) {
    files = [join(folder, '100MB.pickle')];
    const maker = fileURLToPath(new URL('make_snapshot.py', import.meta.url));
    execFileSync('python3', [maker, '100MB', files[0]], { stdio: 'inherit' });
  }
  const columns = [];
  for (const file of files) {
    const runs = [];
    for (let run = 0; run < Number(options.runs); run++) runs.push(await measure(served, file));
    columns.push(runs);
  }
  console.log(`| stage | ${files.map((file) => `${(statSync(file).size / 1e6).toFixed(0)} MB`).join(' | ')} |`);
  console.log(`|---|${'---:|'.repeat(files.length)}`);
  for (const stage of Object.keys(columns[0][0])) {
    const cells = columns.map((runs) => median(runs.map((run) => run[stage])).toFixed(0));
    console.log(`| ${stage} | ${cells.join(' | ')} |`);
  }
} finally {
  served.stop();
  rmSync(folder, { recursive: true, force: true });
}
