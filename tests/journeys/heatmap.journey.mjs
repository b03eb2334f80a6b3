// A person looks for free memory that is of no use, and for the blocks that keep it from being given back.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { address, addressSays, at, bytesIn, goTo, number, openSample, pointUntil, press, standsAt, status, text, until } from './workbench.mjs';

/** Places all over the picture, in shares of its width and height. */
const PLACES = Array.from({ length: 400 }, (_, i) => [0.1 + 0.88 * ((i * 37) % 400) / 400, 0.1 + 0.8 * ((i * 101) % 400) / 400]);

/** Places at the end of the trace, from the lower edge upwards: the largest sizes are at the bottom. */
const LARGEST = Array.from({ length: 240 }, (_, i) => [0.98 - 0.01 * (i % 12), 0.97 - 0.01 * Math.floor(i / 12)]);

/** Places in the last eighth of the trace, in the last segments: the sample's failed request came closest to fitting there. */
const CLOSEST = Array.from({ length: 60 }, (_, i) => [0.98 - 0.01 * (i % 12), 0.76 + 0.03 * Math.floor(i / 12)]);

/** Waits until the heatmap's cells have been drawn. */
const isDrawn = (page, note) => until(`the heatmap says ${note}`, () => text(page, 'heatmap-note'), (said) => note.test(said));

/** Waits until a value in the address bar matches. */
const links = (page, name, pattern) => until(`${name} in the address bar`, async () => (await address(page)).get(name), (now) => pattern.test(now ?? ''));

/** Returns the selected tab's name. */
const tab = (page) => page.tab.getByRole('tab', { selected: true }).textContent();

test('from a gap that is too small to the block that pins it', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await goTo(page, 'Heatmap');
  await isDrawn(page, / a row$/);
  await page.screenshot('heatmap');
  const told = await pointUntil(page, 'heatmap-canvas', PLACES, /Too small: over half .*Pinned by/s);
  const [, segment, active] = /Segment of (\S+ \S+), (\S+ \S+) active in [\d,]+ blocks?/.exec(told);
  const position = number(/(?:in this column|1 event) · event ([\d,]+)/.exec(told)[1]);

  await page.tab.mouse.down();
  await page.tab.mouse.up();
  await standsAt(page, position);
  const said = await until('the segment is selected', () => text(page, 'detail-segment'), (now) => now.includes('Pinned by'));
  assert.ok(said.includes(segment) && said.includes(active), `${segment}, ${active}: ${said}`);
  await links(page, 'sel', /^g0x/);
  assert.match(await tab(page), /^Heatmap/, 'the view stays');

  // A block that pins the segment is one of those that were active then.
  const pin = at(page, 'detail-pin').first();
  const pinned = await pin.textContent();
  await pin.click();
  const detail = await until('the block is selected', () => text(page, 'detail-allocation'));
  assert.ok(detail.includes(pinned.split(' · ')[0]), `${pinned}: ${detail}`);
  await links(page, 'sel', /^a\d+$/);
});

test('the heatmap by keyboard, in words and in a link', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await press(page, '6');
  await isDrawn(page, / a row$/);
  const here = await status(page);
  // What a screen reader hears adds up to the free memory at the cursor.
  const words = await until('the heatmap in words', () => text(page, 'text-twin'), (now) => now.includes('Heatmap: at the cursor'));
  const [, usable, small] = /, (\S+ \S+) cached in usable gaps, (\S+ \S+) cached in gaps that are too small/.exec(words);
  const bytes = (said) => Number(said.split(' ')[0]) * 1024 ** ['B', 'KiB', 'MiB', 'GiB'].indexOf(said.split(' ')[1]);
  const free = bytes(usable) + bytes(small);
  assert.ok(Math.abs(free - here.cached) <= 0.01 * here.cached, `${words}: ${here.cached}`);

  const whole = (await address(page)).get('w');
  await press(page, 'w', 'w');
  await until('a part is shown', async () => (await address(page)).get('w'), (now) => now !== whole);
  await press(page, 'b');
  await addressSays(page, 'heat', 'sizes');
  const told = await pointUntil(page, 'heatmap-canvas', PLACES, /Requests of .*Most that could serve it.*Least/s);
  assert.match(told, /\d+ gaps?/);
  await press(page, 'b');
  await addressSays(page, 'heat', null);

  await press(page, 'v');
  await until('the segments are shown', () => tab(page), (name) => name.startsWith('Segments'));
  await until('the segment is selected', () => text(page, 'detail-segment'));
  await standsAt(page, here.position);
  const [size] = await bytesIn(at(page, 'detail-segment'));
  assert.ok(size > 0);

  // Only this segment, from the menu of the heatmap.
  await press(page, '6');
  await isDrawn(page, / a row$/);
  const rows = await text(page, 'heatmap-note');
  await at(page, 'heatmap-part').selectOption({ index: (await at(page, 'heatmap-part').locator('option').count()) - 1 });
  await until('one segment is shown', () => text(page, 'heatmap-note'), (now) => now !== rows);
  await links(page, 'part', /^segment:0x/);
});

test('a failed request is drawn over the gap that came closest, and in the row of its size', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await at(page, 'verdict').waitFor();
  await goTo(page, 'Heatmap');
  await isDrawn(page, / a row$/);
  await until('the key names it', () => text(page, 'heatmap-key'), (said) => said.includes('failed request'));
  const words = await until('the failure in words', () => text(page, 'text-twin'), (now) => now.includes('failed here'));
  const [, requested, gap] = /A request of (\S+ \S+) failed here: the gap that came closest has (\S+ \S+)\./.exec(words);
  const told = await pointUntil(page, 'heatmap-canvas', CLOSEST, /this request failed/);
  assert.ok(told.includes(`Requested\n${requested}`) && told.includes(`This gap\n${gap}`), `${words}: ${told}`);
  await page.screenshot('heatmap-failed');

  // The same failure where sizes are shown.
  await press(page, 'b');
  await addressSays(page, 'heat', 'sizes');
  const again = await pointUntil(page, 'heatmap-canvas', LARGEST, /this request failed/);
  assert.equal(again, told);
  await press(page, 'b');
  await addressSays(page, 'heat', null);

  // A click selects the segment of the gap, at the failure.
  const { position } = await status(page);
  await pointUntil(page, 'heatmap-canvas', CLOSEST, /this request failed/);
  await page.tab.mouse.down();
  await page.tab.mouse.up();
  await standsAt(page, position);
  await until('the segment is selected', () => text(page, 'detail-segment'));
  assert.match(await tab(page), /^Heatmap/, 'the view stays');
});

test('a person zooms into addresses, and selects a range', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await goTo(page, 'Heatmap');
  await isDrawn(page, / a row$/);
  const row = await text(page, 'heatmap-note');
  await press(page, '+', '+', '+');
  await isDrawn(page, / of .* · .* a row$/);
  await links(page, 'rows', /^\d+(\.\d+)?,\d+(\.\d+)?$/);
  // The note has the new window before the picture has its rows.
  await until('rows are finer', () => text(page, 'heatmap-note'), (note) => note.split(' · ')[1] !== row);
  await page.screenshot('heatmap-zoomed');
  // A cell says what a row of it holds: never more than its bytes.
  const told = await pointUntil(page, 'heatmap-canvas', PLACES, /(Allocated|Cached, usable)\n\d/);
  const size = (said) => Number(said.split(' ')[0]) * 1024 ** ['B', 'KiB', 'MiB', 'GiB'].indexOf(said.split(' ')[1]);
  const most = [...told.matchAll(/(?:Allocated|Cached, usable|Cached, too small)\n([\d.]+ \w*B)/g)].map((found) => size(found[1]));
  const bytes = size(/ · (\S+ \S+) a row/.exec(await text(page, 'heatmap-note'))[1]);
  assert.ok(most.length > 0 && most.every((one) => one <= bytes * 1.01), `${told}: ${bytes}`);

  // The wheel with Alt goes on from there, and Esc goes back to all addresses.
  const before = (await address(page)).get('rows');
  await page.tab.keyboard.down('Alt');
  await page.tab.mouse.wheel(0, -240);
  await page.tab.keyboard.up('Alt');
  await until('the wheel has zoomed', async () => (await address(page)).get('rows'), (now) => now !== before);
  await press(page, 'Escape');
  await addressSays(page, 'rows', null);
  await isDrawn(page, /^\S+ \S+ a row$/);

  const box = await at(page, 'heatmap-canvas').boundingBox();
  const y = box.y + box.height * 0.6;
  await page.tab.mouse.move(box.x + box.width * 0.3, y);
  await page.tab.mouse.down();
  await page.tab.mouse.move(box.x + box.width * 0.4, y);
  await page.tab.mouse.move(box.x + box.width * 0.5, y);
  await page.tab.mouse.up();
  await links(page, 'r', /^\d+,\d+$/);
  await at(page, 'detail-range').waitFor();
  await page.screenshot('heatmap-range');
});
