// A person goes back: through the browser's history, and by undoing. No gesture leaves the page while there is a step to take.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openPage, pageUrl } from './page.mjs';
import { address, addressSays, at, goTo, openSample, press, standsAt, tabs, until } from './workbench.mjs';

const fixture = (name) => fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url));

/** Returns the name of the tab that is shown. */
const shown = (page) =>
  page.tab.evaluate(() => document.querySelector('[role="tab"][aria-selected="true"]')?.dataset.testid?.replace('tab-', '') ?? '');
const shows = (page, name) => until(`${name} is the tab`, () => shown(page), (now) => now === name);

/** Returns the number of the current entry of the browser's history. */
const step = (page) => page.tab.evaluate(() => history.state);

/** Opens the sample and shows the whole trace on its timeline, and ends the current step. Returns the step's number. */
async function openWhole(page) {
  await openSample(page);
  await goTo(page, 'Findings');
  await addressSays(page, 'tab', 'findings');
  const before = await step(page);
  await goTo(page, 'Timeline');
  await until('the timeline is a step of its own', () => step(page), (now) => now === before + 1);
  return before + 1;
}

/** Returns the visible part in the address; null for all of it. */
const visible = async (page) => (await address(page)).get('w');

/** Steps back or forward as the browser's buttons do. The page stays, so there is no load to wait for. */
const back = (page) => page.tab.evaluate(() => history.back());
const forward = (page) => page.tab.evaluate(() => history.forward());

/** Waits for frames to be drawn. */
const frames = (page, count) =>
  page.tab.evaluate(
    (count) =>
      new Promise((done) => {
        const next = () => (count-- > 0 ? requestAnimationFrame(next) : done());
        next();
      }),
    count,
  );

test('Back and Forward go through files, tabs, zoom and selection', async (t) => {
  const page = await openPage(t);
  assert.equal(await step(page), 0);
  const opened = await openWhole(page);
  await goTo(page, 'Flame');
  await goTo(page, 'Timeline');
  await press(page, 'w');
  const zoomed = await until('the zoom is in the address', () => visible(page));
  await goTo(page, 'Events');
  await until('a row', () => at(page, 'event-row').count());
  await at(page, 'event-row').nth(3).click();
  const selected = await until('a selection', async () => (await address(page)).get('sel'));

  await back(page);
  await addressSays(page, 'sel', null);
  assert.equal(await shown(page), 'events');
  await back(page);
  await shows(page, 'timeline');
  assert.equal(await visible(page), zoomed);
  await back(page);
  await addressSays(page, 'w', null);
  await back(page);
  await shows(page, 'flame');
  await back(page);
  await shows(page, 'timeline');
  await until('all that followed is taken back', () => step(page), (now) => now === opened);
  await page.tab.evaluate((by) => history.go(-by), opened);
  await at(page, 'start').waitFor();
  assert.equal(await page.tab.evaluate(() => location.hash), '');
  await page.screenshot('history-start');
  await page.tab.evaluate((by) => history.go(by), opened);
  await shows(page, 'timeline');
  for (const name of ['flame', 'timeline']) {
    await forward(page);
    await shows(page, name);
  }
  await forward(page);
  await addressSays(page, 'w', zoomed);
  await forward(page);
  await shows(page, 'events');
  await forward(page);
  await addressSays(page, 'sel', selected);
});

test('a run of turns of the wheel, of a key or of typing is one step', async (t) => {
  const page = await openPage(t);
  const opened = await openWhole(page);
  await at(page, 'timeline-canvas').hover();
  for (let i = 0; i < 6; i += 1) await page.tab.mouse.wheel(0, -120);
  await until('the zoom is in the address', () => visible(page));
  assert.equal(await step(page), opened + 1, 'one entry for six turns');
  await press(page, '/');
  await page.tab.keyboard.type('size>1MiB', { delay: 20 });
  await until('the search is in the address', async () => (await address(page)).toString(), (said) => /1MiB/.test(said));
  assert.equal(await step(page), opened + 2, 'one entry for nine letters');
  await back(page);
  await until('the search is taken back', async () => (await address(page)).toString(), (said) => !/1MiB/.test(said));
  assert.ok(await visible(page), 'the zoom is still there');
  await back(page);
  await addressSays(page, 'w', null);
});

test('what was closed leaves the address, and Back does not walk through it', async (t) => {
  const page = await openPage(t);
  await openWhole(page);
  const opened = await step(page);
  await at(page, 'file-menu').click();
  await page.tab.getByRole('button', { name: /^Close / }).first().click();
  await at(page, 'start').waitFor();
  const fragment = () => new URL(page.tab.url()).hash;
  await until('the address names no file', fragment, (hash) => hash === '');
  await back(page);
  await until('one press leads to the first step', () => step(page), (now) => now < opened - 1);
  await until('which names no file either', fragment, (hash) => hash === '');
  await at(page, 'start').waitFor();
  await page.tab.reload();
  await at(page, 'start').waitFor();
  assert.equal(await page.state(), 'empty');
});

test('Ctrl+Z and Backspace undo, Ctrl+Shift+Z and Ctrl+Y redo', async (t) => {
  const page = await openPage(t);
  await openWhole(page);
  await press(page, 'w');
  const zoomed = await until('the zoom is in the address', () => visible(page));
  await goTo(page, 'Segments');
  await press(page, 'Control+z');
  await shows(page, 'timeline');
  await press(page, 'Backspace');
  await addressSays(page, 'w', null);
  await press(page, 'Control+Shift+z');
  await addressSays(page, 'w', zoomed);
  await press(page, 'Control+y');
  await shows(page, 'segments');
  // At the end there is nothing to redo, and the key does nothing.
  await press(page, 'Control+y');
  assert.equal(await shown(page), 'segments');
  // In the search box, the keys act on its text.
  const there = await step(page);
  await press(page, '/');
  await page.tab.keyboard.type('ab');
  await press(page, 'Backspace');
  assert.equal(await page.tab.evaluate(() => document.activeElement.value), 'a');
  assert.equal(await shown(page), 'segments');
  assert.ok((await step(page)) >= there);
});

test('Ctrl+Z never leaves the file, and Back does', async (t) => {
  const page = await openPage(t);
  await page.load(fixture('protocol4.pickle'));
  await press(page, 'Home');
  await standsAt(page, 0);
  const there = await step(page);
  await press(page, 'Control+z');
  await press(page, 'w');
  await until('the zoom is in the address', () => visible(page));
  await press(page, 'Control+z');
  await addressSays(page, 'w', null);
  assert.equal(await step(page), there);
  assert.equal(await page.state(), 'ready');
  await page.tab.evaluate(() => history.back());
  await at(page, 'start').waitFor();
});

test('steps of a closed file are skipped, and a setting is not taken back', async (t) => {
  const page = await openPage(t);
  await page.load(fixture('protocol4.pickle'));
  await goTo(page, 'Events');
  await page.drop(fixture('ring.pickle'));
  await until('the other file', () => page.tab.title(), (title) => title.startsWith('ring.pickle'));
  await page.reach('ready');
  await goTo(page, 'Flame');
  await press(page, 'k');
  await until('the first file', () => page.tab.title(), (title) => title.startsWith('protocol4.pickle'));
  await shows(page, 'events');
  await at(page, 'file-menu').click();
  await page.tab.getByRole('button', { name: 'Close ring.pickle' }).click();
  await press(page, 'Escape', 't');
  const theme = await page.tab.evaluate(() => document.documentElement.dataset.theme);
  await back(page);
  await shows(page, 'timeline');
  assert.match(await page.tab.title(), /^protocol4\.pickle/);
  assert.equal(await page.tab.evaluate(() => document.documentElement.dataset.theme), theme);
});

test('a sideways turn of the wheel leaves the page nowhere', async (t) => {
  const page = await openPage(t);
  // A listener of the whole page that could stop the wheel makes every wheel wait for the page.
  await page.tab.addInitScript(() => {
    globalThis.slow = [];
    const add = EventTarget.prototype.addEventListener;
    EventTarget.prototype.addEventListener = function (name, call, options) {
      const isWhole = [window, document, document.documentElement, document.body].includes(this);
      if (name === 'wheel' && isWhole && options?.passive === false) globalThis.slow.push(this.constructor.name);
      return add.call(this, name, call, options);
    };
  });
  // An entry before the page, to go back to.
  await page.tab.goto('about:blank');
  await page.open();
  const turn = async (what, locator) => {
    // The browser learns of the page’s style from its first frames on.
    await frames(page, 10);
    await locator.hover({ position: { x: 20, y: 20 } });
    for (const by of [-400, -400, -400, 400]) await page.tab.mouse.wheel(by, 0);
    // If the browser navigates, it does so at the end of the turn, which the next press marks.
    await page.tab.mouse.down();
    await page.tab.mouse.up();
    await frames(page, 40);
    assert.ok(page.tab.url().startsWith(pageUrl()), `${what}: ${page.tab.url()}`);
    const behavior = await locator.evaluate(() => getComputedStyle(document.documentElement).overscrollBehaviorX);
    assert.equal(behavior, 'none', 'the browser takes the whole page’s word, which is that of its root');
  };
  await turn('the start page', at(page, 'start'));
  await openSample(page);
  for (const name of await tabs(page)) {
    await goTo(page, name);
    await turn(name, page.tab.locator('[role="tabpanel"]'));
  }
  await goTo(page, 'Timeline');
  await turn('the details', at(page, 'details-pane'));
  await press(page, '?');
  await turn('the help', page.tab.getByRole('dialog'));
  await press(page, 'Escape');
  await page.tab.locator('[data-testid="legend-row"]').first().click({ button: 'right' });
  await at(page, 'popup-menu').waitFor();
  assert.deepEqual(await page.tab.evaluate(() => globalThis.slow), []);
  assert.equal(await page.state(), 'ready');
});

test('Back from a link to a session or a view leads where the person was', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await goTo(page, 'Events');
  await addressSays(page, 'tab', 'events');
  const hash = await until('the identity', async () => (await address(page)).get('hash'));
  // Pasting another address adds an entry to the browser's history.
  await page.tab.evaluate((hash) => { location.hash = `v=1&file=sample.pickle&hash=${hash}&dev=0&tab=flame`; }, hash);
  await shows(page, 'flame');
  await back(page);
  await shows(page, 'events');
  await forward(page);
  await shows(page, 'flame');
});

test('a page that is loaded again goes on with the steps of before', async (t) => {
  const page = await openPage(t);
  await page.load({ name: 'job.pickle', mimeType: 'application/octet-stream', buffer: readFileSync(fixture('protocol4.pickle')) });
  await goTo(page, 'Events');
  await addressSays(page, 'tab', 'events');
  await until('the identity', async () => (await address(page)).get('hash'));
  await goTo(page, 'Flame');
  await addressSays(page, 'tab', 'flame');
  await until('it is kept', () => page.tab.evaluate(async () => {
    const names = [];
    for await (const name of (await (await navigator.storage.getDirectory()).getDirectoryHandle('opened')).keys()) names.push(name);
    return names.length;
  }).catch(() => 0));
  const there = await step(page);
  await page.tab.reload();
  await page.reach('ready');
  await shows(page, 'flame');
  assert.equal(await step(page), there);
  await back(page);
  await shows(page, 'events');
  await forward(page);
  await shows(page, 'flame');
});
