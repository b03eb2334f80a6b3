// Measures the page while it watches a job: from an event in the job to the pixel, and what it costs to keep up.
//
//   node tests/measure/live.mjs [--rate N]... [--seconds S] [--every S] [--warm S] [--json]
//
// For each rate (10,000, 50,000 and 100,000 events a second) it starts a server, a job (`vramscope run transformer`) and a
// browser that draws without a graphics card, and follows the session. After `--warm` seconds (8) it measures for `--seconds`
// (30); with `--every` it also prints the figures of each part of that time, for long runs. It needs a built program: `cargo build
// --release`, or VRAMSCOPE_PROGRAM. On a busy machine, `chrt -r 1 node tests/measure/live.mjs` keeps other work out.
//
// events/s        events that reached the server: a busy machine may not make as many as it should
// lag             from an event in the job until it is on the screen: the median, and the 99th percentile of the events. The
//                 page says beside the timeline which event is the newest that is drawn; the frame counts as shown when
//                 the next one begins. The screen's own delay is not in it
// still           the longest time without a newer event on the screen
// longest task    the UI thread's longest task; browsers report none below 50 ms
// frame           the work of drawing one picture, 95th percentile
// late frames     share of animation frames that came 25 ms or more after the previous one
// ui, worker      share of a core that the UI thread and the session's worker took
// pictures/s      timelines that showed something newer
// page, server    memory of the page's renderer process and of the server, at the end
// held            events that the page says it holds
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { launch } from '../journeys/browser.mjs';
import { lagsOf, percentile } from './lag.mjs';
import { pageProcess, residentBytes, threadSeconds } from './memory.mjs';

const PROGRAM = process.env.VRAMSCOPE_PROGRAM ?? fileURLToPath(new URL('../../target/release/vramscope', import.meta.url));
/** More than any run needs; the job is ended earlier. */
const STEPS = '100000000';
/** Milliseconds after the last frame from which on a frame is late, on a screen with 60 frames a second. */
const LATE_MS = 25;
const PATIENCE_MS = 60_000;

const { values: options } = parseArgs({
  options: {
    rate: { type: 'string', multiple: true, default: ['10000', '50000', '100000'] },
    seconds: { type: 'string', default: '30' },
    every: { type: 'string' },
    warm: { type: 'string', default: '8' },
    json: { type: 'boolean', default: false },
  },
});

/** Runs in the page before its own code: records what is drawn and when, the work of each frame, and long tasks. */
function install() {
  const nextFrame = requestAnimationFrame.bind(globalThis);
  const seen = { frames: [], gaps: [], work: [], tasks: [], last: 0 };
  const wall = () => (performance.timeOrigin + performance.now()) * 1000;
  let newest = null;
  let shown = null;
  const tick = (time) => {
    if (seen.last) seen.gaps.push(time - seen.last);
    seen.last = time;
    // The last frame is on the screen by now.
    if (newest !== shown) seen.frames.push([wall(), (shown = newest)]);
    nextFrame(tick);
  };
  nextFrame(tick);
  globalThis.requestAnimationFrame = (draw) =>
    nextFrame((time) => {
      const begun = performance.now();
      draw(time);
      seen.work.push(performance.now() - begun);
    });
  new MutationObserver((changes) => {
    newest = Number(changes.at(-1).target.dataset.newestUs);
  }).observe(document, { subtree: true, attributes: true, attributeFilter: ['data-newest-us'] });
  new PerformanceObserver((list) => seen.tasks.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: 'longtask' });
  /** Returns what was recorded since the last call, beginning with the last frame before it. */
  globalThis.take = () => {
    const { frames, gaps, work, tasks } = seen;
    Object.assign(seen, { frames: frames.slice(-1), gaps: [], work: [], tasks: [] });
    return { frames, gaps, work, tasks };
  };
}

/** Starts the program; `line` resolves to its first line on standard output. */
function start(...args) {
  const child = spawn(PROGRAM, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  const line = new Promise((found, failed) => {
    child.on('error', failed);
    child.on('exit', () => failed(new Error(`vramscope ${args[0]} ended; build it with: cargo build --release`)));
    createInterface({ input: child.stdout }).once('line', found);
  });
  line.catch(() => {});
  return { child, line };
}

/** Returns the server's only session. */
const session = async (url) => {
  const all = await (await fetch(new URL('api/v1/sessions', url))).json();
  return (all.sessions ?? all)[0];
};

/** Reads the counters, which only increase. */
async function reading(url, page) {
  const { events } = await session(url);
  return { at: performance.now(), events, threads: threadSeconds(page) };
}

/** Returns the share of a core that threads took between two readings. */
function share(before, after, is) {
  const spent = [...after.threads].filter(([tid, { name }]) => is(tid, name));
  const seconds = spent.reduce((sum, [tid, { seconds }]) => sum + seconds - (before.threads.get(tid)?.seconds ?? 0), 0);
  return seconds / ((after.at - before.at) / 1000);
}

/** Measures one rate; calls `told` with the figures of each part. */
async function measure(rate, told) {
  const data = mkdtempSync(join(tmpdir(), 'vramscope-live-'));
  const server = start('serve', '--listen', '127.0.0.1:0', '--data', data);
  let [job, browser] = [];
  try {
    const url = /http:\/\/[^/\s]+/.exec(await server.line)[0] + '/';
    job = start('run', 'transformer', '--to', url, '--rate', rate, '--steps', STEPS);
    browser = await launch();
    const context = await browser.newContext({ viewport: { width: 1600, height: 1000 }, reducedMotion: 'reduce' });
    context.setDefaultTimeout(PATIENCE_MS);
    const tab = await context.newPage();
    await tab.addInitScript(install);
    await tab.goto(url);
    await tab.getByTestId('session-open').first().click();
    await tab.locator('[data-newest-us]').waitFor();
    await pause(Number(options.warm) * 1000);

    const page = pageProcess();
    const [all, parts] = [Number(options.seconds), Number(options.every ?? options.seconds)];
    await tab.evaluate(() => take());
    let before = await reading(url, page);
    const begun = before;
    const whole = { frames: [], gaps: [], work: [], tasks: [] };
    for (let done = 0; done < all; done += parts) {
      await pause(Math.min(parts, all - done) * 1000 - (performance.now() - before.at));
      const [seen, after] = [await tab.evaluate(() => take()), await reading(url, page)];
      for (const name of Object.keys(whole)) seen[name].forEach((one) => whole[name].push(one));
      const text = (name) => tab.getByTestId(name).textContent();
      const memory = { pageBytes: residentBytes(page), serverBytes: residentBytes(server.child.pid) };
      const end = { page, held: await text('live-held'), said: await text('live-said'), ...memory };
      if (options.every) told(summary(seen, before, after, end));
      if (done + parts >= all) return summary(whole, begun, after, end);
      before = after;
    }
  } finally {
    job?.child.kill('SIGKILL');
    await browser?.close();
    server.child.kill('SIGKILL');
    rmSync(data, { recursive: true, force: true });
  }
}

/** Returns the figures of a period. */
function summary(seen, before, after, end) {
  const lag = lagsOf(seen.frames);
  const still = seen.frames.slice(1).map(([shown], i) => (shown - seen.frames[i][0]) / 1000);
  return {
    rate: (after.events - before.events) / ((after.at - before.at) / 1000),
    median: lag(0.5),
    p99: lag(0.99),
    still: Math.max(0, ...still),
    pictures: still.length / ((after.at - before.at) / 1000),
    task: seen.tasks.reduce((most, task) => Math.max(most, task), 0),
    work: percentile(seen.work, 0.95),
    late: seen.gaps.filter((gap) => gap >= LATE_MS).length / Math.max(seen.gaps.length, 1),
    ui: share(before, after, (tid) => tid === String(end.page)),
    worker: share(before, after, (_, name) => name.startsWith('DedicatedWorker')),
    ...end,
  };
}

const ms = (value) => `${Math.round(value)} ms`;
const percent = (value) => `${(value * 100).toFixed(value < 0.1 ? 1 : 0)} %`;
const mib = (bytes) => `${Math.round(bytes / 2 ** 20)} MiB`;
const COLUMNS = [
  ['events/s', (one) => Math.round(one.rate).toLocaleString('en')],
  ['lag, median', (one) => ms(one.median)],
  ['lag, p99', (one) => ms(one.p99)],
  ['still', (one) => ms(one.still)],
  ['pictures/s', (one) => one.pictures.toFixed(1)],
  ['longest task', (one) => (one.task ? ms(one.task) : '< 50 ms')],
  ['frame, p95', (one) => `${one.work.toFixed(1)} ms`],
  ['late frames', (one) => percent(one.late)],
  ['ui', (one) => percent(one.ui)],
  ['worker', (one) => percent(one.worker)],
  ['page', (one) => mib(one.pageBytes)],
  ['server', (one) => mib(one.serverBytes)],
  ['held', (one) => one.held],
];
const row = (name, one) => console.log(`| ${name} | ${COLUMNS.map(([, show]) => show(one)).join(' | ')} |`);

console.log(`${cpus().length} cores, load ${loadavg()[0].toFixed(1)} before`);
if (!options.json) {
  console.log(`| rate | ${COLUMNS.map(([title]) => title).join(' | ')} |`);
  console.log(`|---|${'---|'.repeat(COLUMNS.length)}`);
}
for (const rate of options.rate) {
  const name = Number(rate).toLocaleString('en');
  let part = 0;
  const told = (one) => (options.json ? console.log(JSON.stringify(one)) : row(`${name}, ${(part += Number(options.every))} s`, one));
  const all = await measure(rate, told);
  if (options.json) console.log(JSON.stringify({ asked: Number(rate), ...all }));
  else row(name, all);
}
