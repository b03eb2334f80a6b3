// A person saves a trace as a web page, and a colleague opens that page from disk, without a network.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { openPage, pageUrl } from './page.mjs';
import { emptyFolder, programPath } from './program.mjs';
import { at, goTo, movesFrom, press, status, tabs, text, until } from './workbench.mjs';

const fixture = (name) => fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url));

/** Opens a file as a page with the network off. */
const openOffline = (t, file) => openPage(t, { address: pathToFileURL(file).href, offline: true });

/** Fails unless the page asked for nothing but itself, and what it made itself. */
function askedForNothing(page) {
  const outside = page.requests.filter((url) => !url.startsWith('file:///') && !url.startsWith('blob:') && !url.startsWith('data:'));
  assert.deepEqual(outside, []);
  assert.equal(page.requests.filter((url) => url.startsWith('file:')).length, 1, page.requests.join('\n'));
}

/** Writes the server's template with a trace inside, as the page does when it saves one. */
async function savedPage(t, name, trace) {
  const answer = await fetch(`${pageUrl()}offline.html`);
  assert.equal(answer.status, 200);
  assert.match(answer.headers.get('content-disposition'), /^attachment/);
  const parts = (await answer.text()).split('<!--vramscope-trace-->');
  assert.equal(parts.length, 2);
  const file = join(emptyFolder(t), 'saved.html');
  const element = `<script type="application/octet-stream" id="vramscope-trace" data-name="${name}">${trace}</script>`;
  writeFileSync(file, parts.join(element));
  return file;
}

test('an exported page opens from disk without a network, and every view works', async (t) => {
  const folder = emptyFolder(t);
  const sample = join(folder, 'sample.pickle');
  writeFileSync(sample, Buffer.from(await (await fetch(`${pageUrl()}sample.pickle`)).arrayBuffer()));
  const file = join(folder, 'sample.html');
  const said = execFileSync(programPath(), ['export', sample, '--out', file], { encoding: 'utf8' });
  assert.match(said, /Names left out: users \(1\)/);

  const page = await openOffline(t, file);
  await page.reach('ready');
  assert.match(await page.tab.title(), /^sample\.vramscope · /);
  const { position, events } = await movesFrom(page, -1);
  assert.ok(events > 1000, `${events} events`);
  await page.screenshot('offline');
  const shown = {
    Segments: 'segments-canvas',
    Heatmap: 'heatmap-canvas',
    Flame: 'flame-canvas',
    Events: 'events',
    Findings: 'findings',
    'What-if': 'whatif-runs',
    Timeline: 'timeline-canvas',
  };
  for (const name of (await tabs(page)).reverse()) {
    await goTo(page, name);
    await (shown[name] ? at(page, shown[name]) : page.tab.getByRole('tabpanel')).waitFor();
  }
  // Questions are answered: the worker runs.
  await press(page, ',');
  await until('one event back', () => status(page), (now) => now.position === position - 1);
  await at(page, 'file-menu').click();
  assert.equal(await at(page, 'file-row').count(), 1);
  for (const absent of ['menu-sessions', 'menu-open-sample']) assert.equal(await at(page, absent).count(), 0, absent);
  await press(page, 'Escape');
  // A copy can be saved as a file; there is no server for a link.
  await at(page, 'share-button').click();
  await at(page, 'share-no-server').waitFor();
  await until('the copy is there', () => at(page, 'save-file').isEnabled());
  for (const absent of ['share-go', 'save-page', 'start-uploads']) assert.equal(await at(page, absent).count(), 0, absent);
  await page.screenshot('offline-share');
  askedForNothing(page);
});

test('the page without a trace opens files, and offers nothing that needs a server', async (t) => {
  const page = await openOffline(t, await savedPage(t, '', ''));
  // An empty trace is no trace, and says so.
  await page.reach('error');
  const none = join(emptyFolder(t), 'none.html');
  writeFileSync(none, await (await fetch(`${pageUrl()}offline.html`)).text());
  await page.open(pathToFileURL(none).href);
  assert.equal(await page.state(), 'empty');
  for (const absent of ['sessions', 'open-sample', 'watch-demo']) assert.equal(await at(page, absent).count(), 0, absent);
  await page.screenshot('offline-empty');
  await page.load(fixture('two_devices.pickle'));
  await until('its events', () => text(page, 'status'), (said) => /of 12/.test(said));
});

test('a hostile name stays a name, and what is no trace is reported', async (t) => {
  const name = '&quot;&gt;&lt;img src=x onerror=alert(1)&gt;.json';
  const file = await savedPage(t, name, readFileSync(fixture('two_devices.json')).toString('base64'));
  const page = await openOffline(t, file);
  await page.reach('ready');
  assert.match(await page.tab.title(), /^"><img src=x onerror=alert\(1\)>\.json · /);
  assert.equal(await page.tab.locator('img').count(), 0);
  askedForNothing(page);

  for (const [trace, why] of [['%%%%', /is damaged/], [Buffer.from('no trace').toString('base64'), /./]]) {
    await page.open(pathToFileURL(await savedPage(t, 'a', trace)).href);
    await page.reach('error');
    assert.match(await text(page, 'error-message'), why);
  }
});

test('the policy of the page holds: no other script, no connection', async (t) => {
  const page = await openOffline(t, await savedPage(t, 'a.json', readFileSync(fixture('two_devices.json')).toString('base64')));
  await page.reach('ready');
  await page.tab.context().setOffline(false);
  const ran = await page.tab.evaluate(() => {
    const script = document.createElement('script');
    script.textContent = 'globalThis.ran = true';
    document.head.append(script);
    return Boolean(globalThis.ran);
  });
  const tries = await page.tab.evaluate(async (url) => {
    const fails = (promise) => promise.then(() => false, () => true);
    return [await fails(fetch(url)), await fails(fetch('data:,a')), await fails(import(url))];
  }, pageUrl());
  assert.deepEqual({ ran, tries }, { ran: false, tries: [true, true, true] });
  // These refusals are meant.
  const meant = page.complaints.filter((said) => /Content.Security.Policy|failed: /i.test(said));
  assert.ok(meant.length >= 3, page.complaints.join('\n'));
  page.complaints = page.complaints.filter((said) => !meant.includes(said));
});
