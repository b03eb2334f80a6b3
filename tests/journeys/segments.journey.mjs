// A person looks at how the reserved memory is divided, and moves the cursor to see how that came about.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { addressSays, at, goTo, movesFrom, number, openSample, pointUntil, press, standsAt, text, until } from './workbench.mjs';

/** Returns the line above the map: largest gap, cached bytes, segments and blocks, as displayed. */
async function note(page) {
  const said = /^largest gap (.+) · (.+) cached · ([\d,]+) segments? · ([\d,]+) blocks?$/.exec(await text(page, 'segments-note'));
  return said && { segments: number(said[3]), blocks: number(said[4]), cached: said[2], largest: said[1] };
}

/** Waits until the line above the map and the status line agree at a position. */
async function agree(page, position) {
  const here = await standsAt(page, position);
  const [, cached, largest] = /cached\s+(\S+ \S+)\s+\(largest gap (\S+ \S+)\)/.exec(here.text);
  const map = await until(`the map at ${position}: ${cached}, ${largest}`, () => note(page), (now) => now?.cached === cached && now?.largest === largest);
  return { ...map, reserved: here.reserved };
}

test('the map follows the cursor, and agrees with the status line', async (t) => {
  const page = await openPage(t);
  const { position } = await openSample(page);
  await goTo(page, 'Segments');
  const opened = await agree(page, position);
  // Without a selection, the details show the same totals, which are computed elsewhere.
  const details = (await text(page, 'detail-none')).replace(/\s+/g, ' ');
  assert.match(details, new RegExp(`${opened.segments} segments`));
  assert.match(details, new RegExp(`${opened.blocks} blocks`));
  await page.screenshot('segments');

  for (let back = 1; back <= 3; back += 1) {
    await press(page, ',');
    await agree(page, position - back);
  }
  await press(page, 'p');
  const peak = await movesFrom(page, position - 3);
  const then = await agree(page, peak.position);
  assert.notDeepEqual(then, opened);

  await press(page, 'Home');
  await standsAt(page, 0);
  await until('nothing is reserved', () => at(page, 'segments-canvas').innerText(), (said) => said.includes('Nothing is reserved at the cursor'));
});

test('a released segment leaves the map at that event', async (t) => {
  const page = await openPage(t);
  const { position } = await openSample(page);
  await goTo(page, 'Events');
  await at(page, 'events-segment_free').click();
  await press(page, ',');
  const { position: given } = await movesFrom(page, position);
  await at(page, 'events-all').click();
  await goTo(page, 'Segments');
  const after = await agree(page, given);
  await press(page, ',');
  const before = await agree(page, given - 1);
  assert.equal(before.segments, after.segments + 1);
  assert.ok(before.reserved > after.reserved);
});

test('a click on a block selects its allocation, in the segment under the pointer', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await goTo(page, 'Segments');
  await until('the map', () => note(page));
  const places = [0.1, 0.2, 0.3, 0.4, 0.5].flatMap((y) => [0.05, 0.2, 0.4, 0.6].map((x) => [x, y]));
  const told = await pointUntil(page, 'segments-canvas', places, /\.py:\d+[\s\S]*Block[\s\S]*Segment[\s\S]*0x/);
  const [, amount, unit] = /Segment\s+([\d.]+) (\w+)/.exec(told);
  const segment = Number(/0x[0-9a-f]+/.exec(told)[0]);
  const size = Number(amount) * 1024 ** ['B', 'KiB', 'MiB', 'GiB'].indexOf(unit);
  await page.tab.mouse.down();
  await page.tab.mouse.up();

  const pane = at(page, 'detail-allocation');
  await pane.waitFor();
  const address = Number(/Address\s*(0x[0-9a-f]+)/.exec(await pane.innerText())[1]);
  // The size is written with three digits.
  assert.ok(address >= segment && address < segment + 1.01 * size, `${address} in ${told}`);
  await addressSays(page, 'sel', `a${await pane.getAttribute('data-id')}`);
  await page.screenshot('segments-selected');
});

test('arrow keys walk from block to block and from segment to segment', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await goTo(page, 'Segments');
  await at(page, 'segments-canvas').focus();
  /** Presses a key, and returns the segment's address or the allocation's number that the details show then. */
  const leadsTo = async (key, testid, before) => {
    await page.tab.keyboard.press(key);
    await at(page, testid).waitFor();
    const which = async () => (testid === 'detail-allocation' ? at(page, testid).getAttribute('data-id') : /0x[0-9a-f]+/.exec(await text(page, testid))?.[0]);
    return until(`another place after ${key}`, which, (now) => now && now !== before);
  };
  const first = await leadsTo('ArrowDown', 'detail-segment');
  const second = await leadsTo('ArrowDown', 'detail-segment', first);
  assert.notEqual(first, second);
  const block = await leadsTo('ArrowRight', 'detail-allocation');
  const next = await leadsTo('ArrowRight', 'detail-allocation', block);
  assert.equal(await leadsTo('ArrowLeft', 'detail-allocation', next), block);
  await leadsTo('ArrowDown', 'detail-segment');
  await press(page, 'Escape');
  await at(page, 'detail-none').waitFor();
});

test('packed and to scale show the same segments', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await goTo(page, 'Segments');
  const before = await until('the map', () => note(page));
  const picture = () => at(page, 'segments-canvas').screenshot().then((png) => png.toString('base64'));
  const toScale = await picture();

  await at(page, 'layout-packed').click();
  await addressSays(page, 'seg', 'packed');
  assert.equal(await at(page, 'layout-packed').getAttribute('aria-pressed'), 'true');
  await until('another picture', async () => (await picture()) !== toScale);
  assert.deepEqual(await note(page), before);
  await page.screenshot('segments-packed');
  await at(page, 'layout-scale').click();
  await addressSays(page, 'seg', null);
  assert.deepEqual(await note(page), before);
});

test('segments are sorted and grouped, and stay the same ones', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await goTo(page, 'Segments');
  const before = await until('the map', () => note(page));
  const picture = () => at(page, 'segments-canvas').screenshot().then((png) => png.toString('base64'));
  let last = await picture();
  for (const [menu, value, key, said] of [
    ['segment-order', 'size', 'segsort', 'size'],
    ['segment-group', 'pool', 'seggroup', 'pool'],
    ['segment-group', 'pool and stream', 'seggroup', 'both'],
    ['segment-order', 'free share', 'segsort', 'free'],
  ]) {
    await at(page, menu).selectOption(value);
    await addressSays(page, key, said);
    const shown = last;
    if (value !== 'pool and stream') await until(`another picture by ${value}`, async () => (await picture()) !== shown);
    last = await picture();
    assert.deepEqual(await note(page), before);
    await page.screenshot(`segments-${value.replaceAll(' ', '-')}`);
  }
  await at(page, 'layout-packed').click();
  await page.screenshot('segments-packed-free-share');
});

test('a selected segment is shown through time, step by step and playing', async (t) => {
  const page = await openPage(t);
  await page.tab.emulateMedia({ reducedMotion: 'no-preference' });
  const { position } = await openSample(page);
  await goTo(page, 'Segments');
  await until('the map', () => note(page));
  const places = [0.1, 0.2, 0.3, 0.4, 0.5].flatMap((y) => [0.15, 0.3, 0.5, 0.7, 0.9].map((x) => [x, y]));
  await pointUntil(page, 'segments-canvas', places, /Gap/);
  await page.tab.mouse.down();
  await page.tab.mouse.up();
  await at(page, 'segment-strip').waitFor();
  await until('its picture', () => at(page, 'strip-picture').evaluate((canvas) => canvas.width), (width) => width > 100);
  await at(page, 'strip-back').click();
  const back = await movesFrom(page, position);
  assert.ok(back.position < position);
  await page.screenshot('segments-strip');

  await at(page, 'strip-play').click();
  await until('it plays', () => at(page, 'strip-play').innerText(), (said) => said === 'Pause');
  const one = await movesFrom(page, back.position);
  await movesFrom(page, one.position);
  await at(page, 'strip-play').click();
  await until('it rests', () => at(page, 'strip-play').innerText(), (said) => said === 'Play');

  await at(page, 'strip-close').click();
  await at(page, 'segment-strip').waitFor({ state: 'detached' });
});

test('a person who wants no motion steps', async (t) => {
  const page = await openPage(t);
  await page.tab.emulateMedia({ reducedMotion: 'reduce' });
  const { position } = await openSample(page);
  await goTo(page, 'Segments');
  await until('the map', () => note(page));
  const places = [0.1, 0.2, 0.3, 0.4, 0.5].flatMap((y) => [0.15, 0.3, 0.5, 0.7, 0.9].map((x) => [x, y]));
  await pointUntil(page, 'segments-canvas', places, /Gap/);
  await page.tab.mouse.down();
  await page.tab.mouse.up();
  await at(page, 'segment-strip').waitFor();
  assert.equal(await at(page, 'strip-play').count(), 0);
  await at(page, 'strip-back').click();
  assert.ok((await movesFrom(page, position)).position < position);
});
