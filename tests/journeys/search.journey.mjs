// A person searches for a line, walks through its allocations, and then filters for them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { addressSays, at, bytesIn, goTo, number, openSample, press, says, text, until } from './workbench.mjs';

/** `3 of 418 · 1.20 GiB · peak 61.2 MiB`, or without the first number. */
const FOUND = /^(?:([\d,]+) of )?([\d,]+) · ([\d.]+ \w+) · peak ([\d.]+ \w+)$/;

/** Types a term into the search box. Returns what was found. */
async function search(page, term) {
  await press(page, '/');
  await until('the box has the focus', () => page.tab.evaluate(() => document.activeElement.dataset.testid), (name) => name === 'search-input');
  await page.tab.keyboard.type(term);
  await addressSays(page, 'q', term);
  return found(page);
}

/** Returns the search box's line about its matches. */
async function found(page) {
  const said = await says(page, 'search-result', FOUND);
  const [, at, count, bytes, peak] = FOUND.exec(said);
  return { at: at && number(at), count: number(count), bytes, peak };
}

/** Returns the exact bytes of all groups in the legend at the cursor. */
const held = async (page) => (await bytesIn(at(page, 'legend'))).reduce((sum, bytes) => sum + bytes, 0);

/** Parses `61.2 GiB` as bytes, with the precision of its three digits. */
function inBytes(text) {
  const [amount, unit] = text.split(' ');
  return Number(amount) * 1024 ** ['B', 'KiB', 'MiB', 'GiB', 'TiB'].indexOf(unit);
}

/** Returns the selected allocation. */
const selected = (page) => at(page, 'detail-allocation').getAttribute('data-id');

test('a line of the program is found, its matches are counted and can be stepped through', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  const first = await search(page, 'evaluate.py:33');
  assert.ok(first.count > 1 && first.at === undefined, JSON.stringify(first));

  await press(page, 'Enter');
  const one = await until('a hit is stood on', () => found(page), (now) => now.at !== undefined);
  assert.deepEqual({ ...one, at: undefined }, first);
  await at(page, 'detail-allocation').waitFor();
  const id = await selected(page);
  assert.match(await at(page, 'detail-allocation').innerText(), /evaluate\.py:33/);
  await page.screenshot('search-hit');

  await press(page, 'Enter');
  await until('the next hit', () => found(page), (now) => now.at === (one.at % first.count) + 1);
  const next = await until('another allocation', () => selected(page), (now) => now !== id);
  await addressSays(page, 'sel', `a${next}`);
  await press(page, 'Shift+Enter');
  await until('back to the first', () => selected(page), (now) => now === id);

  // Esc clears the search box and ends the search.
  await press(page, 'Escape');
  await addressSays(page, 'q', null);
  assert.equal(await at(page, 'search-input').inputValue(), '');
});

test('a pattern finds what the text finds, and an invalid one is explained', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  const plain = await search(page, 'model.py:113');
  await press(page, 'Escape', 'Escape');
  assert.deepEqual(await search(page, '/model\\.py:11[3]/'), plain);
  await press(page, 'Escape', 'Escape');

  await press(page, '/');
  await page.tab.keyboard.type('/(/');
  await until('it is marked', () => at(page, 'search-input').getAttribute('aria-invalid'), (is) => is === 'true');
  const sentence = await says(page, 'search-result', /\w+ \w+/);
  assert.doesNotMatch(sentence, /Err\(|panicked|regex_lite|undefined/);
  assert.match(sentence, /^[A-Z].*\.$/s);
  assert.ok(await at(page, 'timeline-canvas').isVisible(), 'the picture stays');
  await page.screenshot('search-broken');
});

test('a search becomes a filter, which can be removed', async (t) => {
  const page = await openPage(t);
  const { events } = await openSample(page);
  const all = await until('what is held at the cursor', () => held(page), (bytes) => bytes > 0);
  const large = await search(page, '>100MiB');
  assert.ok(large.count > 0);
  await at(page, 'search-filter').click();
  await until('one chip', () => at(page, 'filter-chip').allInnerTexts(), (chips) => chips.length === 1 && chips[0].includes('>100MiB'));
  await addressSays(page, 'f', '>100MiB');
  // The filtered memory has its peak where the timeline says, of the bytes that the search reported.
  const said = await says(page, 'text-twin', new RegExp(`Peak: ${large.peak} requested at event [\\d,]+`));
  const [, peak] = /requested at event ([\d,]+)/.exec(said.slice(said.indexOf('Peak: ')));
  const link = new URL(page.tab.url()).hash.replace(/cur=\d+/, `cur=${number(peak)}`);
  await page.tab.evaluate((hash) => { location.hash = hash; }, link);
  const near = (bytes) => Math.abs(bytes - inBytes(large.peak)) < 0.01 * bytes;
  const left = await until(`only what was found, ${large.peak} at most`, () => held(page), (bytes) => bytes < all && near(bytes));
  const inView = async () => number((await text(page, 'timeline-note')).split(' ')[0]);
  await until('only what was found is counted', inView, (count) => count === large.count);
  await page.screenshot('search-filter');

  // A second term narrows the result further; each has its own button to remove it.
  await search(page, 'evaluate.py');
  await press(page, 'Control+Enter');
  await until('two chips', () => at(page, 'filter-chip').count(), (chips) => chips === 2);
  await until('less still', () => held(page), (bytes) => bytes < left);
  await page.tab.getByRole('button', { name: 'Remove filter evaluate.py' }).click();
  await until('one term', () => held(page), (bytes) => bytes === left);

  // The event list uses the filter too, and shows the total.
  await goTo(page, 'Events');
  const [some, of] = /^([\d,]+) of ([\d,]+) events$/.exec(await says(page, 'events-count', / of .+ events$/)).slice(1).map(number);
  assert.ok(some >= large.count && some <= 3 * large.count, `${some} events of ${large.count} allocations`);
  assert.equal(of, events);
  await page.tab.getByRole('button', { name: 'Remove filter >100MiB' }).click();
  await says(page, 'events-count', /^[\d,]+ events$/);
  await press(page, 'o');
  await until('everything, back where the sample ran out of memory', () => held(page), (bytes) => bytes === all);
  await addressSays(page, 'f', null);
  assert.equal(await at(page, 'filter-chip').count(), 0);
});

test('the search box lists its syntax, and a click tries an example', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await at(page, 'search-help').click();
  const forms = await at(page, 'search-help-list').getByRole('button').allInnerTexts();
  assert.ok(forms.length >= 5, String(forms));
  await at(page, 'search-help-list').getByRole('button').first().click();
  assert.equal(await at(page, 'search-input').inputValue(), forms[0]);
  await says(page, 'search-result', /no match|·/i);
  assert.equal(await at(page, 'search-help-list').count(), 0);
});
