// Measures a shared trace: how large it is, and how soon another browser shows it. Prints a table.
//
//   node tests/measure/share.mjs [--runs N] [--file FILE]...
//
// Without --file, a snapshot of 100 MB is generated. The program must have been built: cargo build --release.
// VRAMSCOPE_PROGRAM names another one. Each run has a server's memory warm and a browser of its own. Times are medians, in
// milliseconds, from the request for the page until the first whole picture, or the whole trace, is there. At 10 Mbit/s each
// way takes 20 ms more, in Chromium's own emulation.
//
// recording       what is shared by `vramscope push`, with its previews
// first preview   bytes up to the end of the first preview
// previews        bytes of all previews
// first picture   the bytes of the trace that had been sent by then, through a server in front of the real one
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import zlib from 'node:zlib';
import { launch } from '../journeys/browser.mjs';
import { PROGRAM, serve } from './server.mjs';

const { values: options } = parseArgs({
  options: { file: { type: 'string', multiple: true }, runs: { type: 'string', default: '3' } },
});
const SLOW = { offline: false, latency: 40, downloadThroughput: 10e6 / 8, uploadThroughput: 10e6 / 8 };
/** A preview's kind among the chunks of a recording, and the bytes before a chunk's payload. */
const [PREVIEW, ENVELOPE] = [14, 20];

/** Starts a server that passes requests on, and counts the bytes of traces that it sends. */
async function count(url) {
  const { hostname, port } = new URL(url);
  const counted = { sent: 0 };
  const server = createServer((incoming, answer) => {
    const { url: path, method, headers } = incoming;
    const outgoing = request({ hostname, port, path, method, headers }, (response) => {
      answer.writeHead(response.statusCode, response.headers);
      if (/\/trace$/.test(path)) response.on('data', (bytes) => { counted.sent += bytes.length; });
      response.pipe(answer);
    });
    incoming.pipe(outgoing);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${server.address().port}/`, counted, stop: () => server.close() };
}

/** Returns where the first preview ends, and the bytes of all of them. */
function previews(bytes) {
  const length = (at) => ENVELOPE + bytes.readUInt32LE(at + 8);
  let at = 12 + length(12);
  const from = at;
  let first = 0;
  while (bytes[at + 4] === PREVIEW) {
    at += length(at);
    first ||= at;
  }
  return { first, all: at - from };
}

/** Slows a page and its workers down. */
async function slowDown(browser, tab) {
  const session = await tab.context().newCDPSession(tab);
  await session.send('Network.enable');
  await session.send('Network.emulateNetworkConditions', SLOW);
  // Each worker has a network of its own.
  const whole = await browser.newBrowserCDPSession();
  whole.on('Target.targetCreated', async ({ targetInfo: { type, targetId } }) => {
    if (type !== 'worker') return;
    const { sessionId } = await whole.send('Target.attachToTarget', { targetId, flatten: false });
    for (const [id, method, params] of [[1, 'Network.enable', {}], [2, 'Network.emulateNetworkConditions', SLOW]]) {
      await whole.send('Target.sendMessageToTarget', { sessionId, message: JSON.stringify({ id, method, params }) });
    }
  });
  await whole.send('Target.setDiscoverTargets', { discover: true });
}

/** Opens a link in a new browser. Returns the milliseconds until the first picture and until everything is there. */
async function open(address, { isSlow = false, counted = { sent: 0 } } = {}) {
  const browser = await launch();
  try {
    const context = await browser.newContext({ viewport: { width: 1600, height: 1000 }, reducedMotion: 'reduce' });
    const tab = await context.newPage();
    if (isSlow) await slowDown(browser, tab);
    await tab.goto(address, { waitUntil: 'commit' });
    await tab.waitForFunction(() => ['ready', 'error'].includes(document.documentElement.dataset.state), null, { polling: 'raf' });
    const sent = counted.sent;
    const first = await tab.evaluate(() => performance.now());
    if (await tab.evaluate(() => document.documentElement.dataset.state) !== 'ready') {
      throw new Error(await tab.locator('[role=alert]').first().innerText());
    }
    await tab.waitForFunction(() => !document.querySelector('[data-testid="detail-bar"]'), null, { polling: 'raf' });
    return { first, all: await tab.evaluate(() => performance.now()), sent };
  } finally {
    await browser.close();
  }
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

async function times(run) {
  const runs = [];
  for (let n = 0; n < Number(options.runs); n++) runs.push(await run());
  return { first: median(runs.map(({ first }) => first)), all: median(runs.map(({ all }) => all)) };
}

const folder = mkdtempSync(join(tmpdir(), 'vramscope-share-'));
const server = await serve(join(folder, 'data'));
try {
  let files = options.file;
  if (!files) {
    files = [join(folder, '100MB.pickle')];
    const maker = fileURLToPath(new URL('make_snapshot.py', import.meta.url));
    execFileSync('python3', [maker, '100MB', files[0]], { stdio: 'inherit' });
  }
  for (const file of files) {
    const begun = performance.now();
    const said = execFileSync(PROGRAM, ['push', file, '--to', server.url, '--name', 'measured'], { stdio: ['ignore', 'pipe', 'ignore'] });
    const pushed = performance.now() - begun;
    const [link] = /s-[a-z2-7]{39}/.exec(said);
    const answer = await fetch(new URL(`api/v1/traces/${link.slice(2)}/trace`, server.url));
    const body = Buffer.from(await answer.arrayBuffer());
    const { first, all } = previews(body);
    const counter = await count(server.url);
    const { sent } = await open(`${counter.url}${link}`, counter);
    counter.stop();
    const fast = await times(() => open(`${server.url}${link}`));
    const slow = await times(() => open(`${server.url}${link}`, { isSlow: true }));
    const pickle = readFileSync(file);
    const kib = (bytes) => `${(bytes / 1024).toFixed(0)} KiB`;
    const share = (bytes) => `${kib(bytes)} (${((bytes / body.length) * 100).toFixed(1)} %)`;
    const rows = [
      ['file', kib(statSync(file).size)],
      ['file as .gz', kib(zlib.gzipSync(pickle).length)],
      ['file as .zst', zlib.zstdCompressSync ? kib(zlib.zstdCompressSync(pickle).length) : 'this Node has no zstd'],
      ['recording', kib(body.length)],
      ['strip, write, upload', `${pushed.toFixed(0)} ms`],
      ['first preview', share(first)],
      ['previews', share(all)],
      ['sent until the first picture', share(sent)],
      ['first picture on loopback', `${fast.first.toFixed(0)} ms`],
      ['all of it on loopback', `${fast.all.toFixed(0)} ms`],
      ['first picture at 10 Mbit/s', `${slow.first.toFixed(0)} ms`],
      ['all of it at 10 Mbit/s', `${slow.all.toFixed(0)} ms`],
    ];
    console.log(`| ${file.split('/').at(-1)} | |\n|---|---:|`);
    for (const row of rows) console.log(`| ${row.join(' | ')} |`);
  }
} finally {
  server.stop();
  rmSync(folder, { recursive: true, force: true });
}
