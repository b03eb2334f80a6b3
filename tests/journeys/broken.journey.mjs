// A person drops a file that can't be read, and reads why.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { at, goTo, openSample, press, savedSample, status, text, until } from './workbench.mjs';

/** A file in the form that playwright passes to a file input. */
const file = (name, bytes) => ({ name, mimeType: 'application/octet-stream', buffer: Buffer.from(bytes) });

/** Checks that the page shows one plain sentence, without internal terms. */
async function refused(page, what) {
  await page.reach('error');
  const text = await page.alerts();
  assert.match(text, /[A-Z].*\./s, `no sentence on ${what}: ${text}`);
  assert.doesNotMatch(text, /panicked|unwrap|RuntimeError|undefined|\[object/, what);
}

test('a text file is refused with a sentence', async (t) => {
  const page = await openPage(t);
  await page.drop(file('notes.dat', 'not a snapshot at all, only a few words\n'.repeat(50)));
  await refused(page, 'a text file');
  await page.screenshot('broken-text');
});

test('an empty file is refused with a sentence', async (t) => {
  const page = await openPage(t);
  await page.drop(file('empty.pickle', []));
  await refused(page, 'an empty file');
});

test('a pickle that would run code is refused as such', async (t) => {
  const page = await openPage(t);
  // posix.system('true'), as `pickle.dumps` of an object with such a __reduce__ writes it.
  await page.drop(file('evil.pickle', Buffer.from('\x80\x04cposix\nsystem\n(\x8c\x04true\x94tR.', 'latin1')));
  await refused(page, 'a pickle with code');
  assert.match(await page.alerts(), /Refused: the pickle asks to run code/);
});

test('a file that is cut off shows what its events tell, and blames no old release for what is missing', async (t) => {
  const page = await openPage(t);
  const { buffer: sample } = await savedSample(page);
  let events = 0;
  for (const share of [0.4, 0.7, 0.9]) {
    await page.load(file(`cut-${share}.pickle`, sample.subarray(0, Math.floor(sample.length * share))));
    await until('its name', () => page.tab.title(), (title) => title.includes(`cut-${share}`));
    await goTo(page, 'Timeline');
    const now = await until('more events', () => status(page), (now) => now.events > events);
    events = now.events;
    assert.ok(now.active + now.cached <= now.reserved, now.text);
    await page.screenshot(`broken-cut-${share}`);
    await goTo(page, 'Findings');
    await at(page, 'findings').locator('[data-code=truncated]').waitFor();
    const settings = await text(page, 'settings');
    assert.match(settings, /they are at its end, which is missing/);
    assert.doesNotMatch(settings, /PyTorch 2\.2/);
  }
});

test('a snapshot that is damaged in the middle is shown up to the damage, and says so', async (t) => {
  const page = await openPage(t);
  const { buffer: sample } = await savedSample(page);
  const whole = await openSample(page);
  const damaged = Buffer.from(sample);
  damaged.fill(0xff, damaged.length / 2, damaged.length / 2 + 64);
  await page.load(file('damaged.pickle', damaged));
  await until('its name', () => page.tab.title(), (title) => title.includes('damaged.pickle'));
  await goTo(page, 'Timeline');
  const now = await until('fewer events', () => status(page), (now) => now.events > 0 && now.events < whole.events);
  assert.ok(now.active + now.cached <= now.reserved, now.text);
  assert.match(await text(page, 'verdict-headline'), /a part is missing/);
  await page.screenshot('broken-damaged');
  await goTo(page, 'Findings');
  const [finding] = await at(page, 'findings').locator('[data-code=damaged]').allInnerTexts();
  assert.match(finding, /byte [\d,]+/);
  assert.match(await text(page, 'file-facts'), /Peak of what was read.*End of what was read/s);
});

test('after a broken file a good one opens', async (t) => {
  const page = await openPage(t);
  await page.drop(file('notes.dat', 'nothing'));
  await page.reach('error');
  await page.drop(await savedSample(page));
  await page.reach('ready');
  await page.screenshot('broken-then-good');
});

test('an engine that cannot be loaded is reported, and loaded again for the next file', async (t) => {
  const page = await openPage(t);
  const engine = /engine_bg-.*\.wasm$/;
  await page.tab.route(engine, (route) => route.abort());
  await page.tab.reload();
  await page.tab.locator('input[type=file]').first().waitFor({ state: 'attached' });
  await page.drop(await savedSample(page));
  await refused(page, 'a missing engine');
  assert.match(await page.alerts(), /could not be loaded/);
  await page.tab.unroute(engine);
  await page.drop(await savedSample(page));
  await page.reach('ready');
  // This journey caused the failed requests.
  page.complaints = page.complaints.filter((complaint) => !/ERR_FAILED/.test(complaint));
});

test('a part of the page that cannot be loaded is reported, and loaded when asked again', async (t) => {
  const page = await openPage(t);
  const later = /later_bg-.*\.wasm$/;
  const boot = await page.tab.evaluate(async () => (await fetch(document.querySelector('script[type=module]').src)).text());
  if (!later.test(boot.match(/later_bg[^"]*/)[0])) return t.skip('only the page that users install has two modules');
  await page.tab.route(later, (route) => route.abort());
  await page.tab.reload();
  await openSample(page);
  await at(page, 'tab-segments').click();
  await at(page, 'deferred-failed').waitFor();
  await page.screenshot('broken-later-view');
  await at(page, 'share-button').click();
  await page.tab.locator('#app > .deferred-failed').waitFor();
  await page.screenshot('broken-later-dialog');
  await page.tab.unroute(later);
  await page.tab.locator('#app > .deferred-failed button').click();
  await at(page, 'share-size').waitFor();
  await press(page, 'Escape');
  await page.tab.locator('#view-segments canvas').first().waitFor();
  assert.equal(await at(page, 'deferred-failed').count(), 0);
  // This journey caused the failed requests.
  page.complaints = page.complaints.filter((complaint) => !/ERR_FAILED/.test(complaint));
});
