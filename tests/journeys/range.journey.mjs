// A person asks what changed between two moments: selects a range, reads its sums, and follows a line from the list.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hold, holdWorkers, release, said } from './held.mjs';
import { openPage } from './page.mjs';
import { address, addressSays, answered, at, bytesIn, goTo, legendBytes, movesFrom, openSample, press, savedSample, says, standsAt, status, text, until } from './workbench.mjs';

/** Drags over a canvas from one share of its width to another. */
async function drag(page, name, from, to) {
  const box = await at(page, name).boundingBox();
  const y = box.y + box.height / 2;
  await page.tab.mouse.move(box.x + from * box.width, y);
  await page.tab.mouse.down();
  await page.tab.mouse.move(box.x + ((from + to) / 2) * box.width, y);
  await page.tab.mouse.move(box.x + to * box.width, y);
  await page.tab.mouse.up();
}

/** Returns the range in the address bar; null without one. */
async function range(page) {
  const found = (await address(page)).get('r');
  return found && found.split(',').map(Number);
}

/** Waits for a range other than `before` and its sums. Returns its ends. */
async function rangeAfter(page, before) {
  const now = await until('another range', () => range(page), (now) => String(now) !== String(before));
  const pane = at(page, 'detail-range');
  await until(`the sums of ${now}`, () => pane.getAttribute('data-range'), (of) => of === String(now));
  return now;
}

/** Returns the exact bytes of a fact of the details. */
async function fact(page, name) {
  const row = at(page, 'details').locator('.fact', { has: page.tab.locator(`dt:text-is("${name}")`) }).first();
  return (await bytesIn(row))[0];
}

const sum = (bytes) => bytes.reduce((sum, bytes) => sum + bytes, 0);

/** The exact requested bytes at a position: the cursor is sent there by its events. */
async function requestedAt(page, position) {
  const { position: now } = await status(page);
  if (now !== position) {
    const link = new URL(page.tab.url()).hash.replace(/cur=\d+/, `cur=${position}`);
    await page.tab.evaluate((hash) => { location.hash = hash; }, link);
  }
  return (await standsAt(page, position)).requested;
}

test('a drag selects a range, and its sums are those of its ends', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await drag(page, 'timeline-canvas', 0.4, 0.6);
  const [from, to] = await rangeAfter(page, null);
  assert.ok(from < to);
  await page.screenshot('range-selected');

  const requested = await fact(page, 'Requested');
  const [allocated, freed] = [await fact(page, 'Newly allocated'), await fact(page, 'Freed')];
  const [kept, churn] = [await fact(page, 'Still live'), await fact(page, 'Churn')];
  assert.equal(allocated - freed, requested, 'what was allocated and not freed is the change');
  assert.equal(kept + churn, allocated);
  assert.deepEqual(await bytesIn(at(page, 'range-change')), [requested], 'the status line says the same');
  assert.deepEqual(await bytesIn(at(page, 'range-live')), [kept]);
  const twin = await until('the range in words', () => text(page, 'text-twin'), (said) => said.includes('Range of events'));
  assert.ok(twin.includes(`Range of events ${(from + 1).toLocaleString('en-US')} to ${to.toLocaleString('en-US')}`), twin);

  // Every order lists the lines of one sum.
  const orders = [['range-kept', kept], ['range-growth', requested], ['range-churn', churn], ['range-allocated', allocated], ['range-freed', freed]];
  for (const [order, total] of orders) {
    await at(page, order).click();
    const listed = async () => sum(await bytesIn(at(page, 'detail-range').locator('.legend-list')));
    await until(`${order} adds up to ${total}`, listed, (sum) => sum === total);
  }

  // The cursor shows the same at both ends, and at the peak.
  const peak = await fact(page, 'Peak inside');
  const before = await status(page);
  await at(page, 'range-go-peak').click();
  assert.equal((await movesFrom(page, before.position)).requested, peak);
  const ends = [await requestedAt(page, from), await requestedAt(page, to)];
  assert.equal(ends[1] - ends[0], requested);
});

test('Enter zooms to the range, Esc clears it, and the link has it', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await drag(page, 'overview-canvas', 0.3, 0.5);
  const [from, to] = await rangeAfter(page, null);
  assert.equal((await address(page)).get('w'), null, 'a drag over the overview does not zoom');
  await press(page, 'Enter');
  await addressSays(page, 'w', `${from},${to + 1}`);
  await press(page, 'Escape');
  await addressSays(page, 'r', null);
  await at(page, 'detail-none').waitFor();
  await addressSays(page, 'w', `${from},${to + 1}`);

  // Without a pointer: a mark at the cursor, which is extended.
  const before = (await status(page)).position;
  await press(page, 'p');
  const { position } = await until('the cursor is at the peak', () => status(page), (now) => now.position !== before);
  await press(page, 'm');
  await addressSays(page, 'r', `${position},${position}`);
  await press(page, '<', '<', '<');
  await addressSays(page, 'r', `${position - 3},${position}`);
  await press(page, 'Shift+ArrowLeft');
  const extended = await rangeAfter(page, [position - 3, position]);
  assert.ok(extended[0] < position - 3 && extended[1] === position, `${extended}`);

  const link = new URL(page.tab.url()).hash;
  const other = await openPage(t, { address: link });
  await other.load(await savedSample(other));
  await addressSays(other, 'r', String(extended));
  assert.deepEqual(await rangeAfter(other, null), extended);
});

test('the number of the line that was clicked is the number that is shown', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await drag(page, 'timeline-canvas', 0.2, 0.8);
  await rangeAfter(page, null);
  const first = at(page, 'range-line').first();
  const [kept] = await bytesIn(first);
  const name = (await first.innerText()).split('\n')[0];
  await first.click();
  await at(page, 'detail-line').waitFor();
  assert.ok((await at(page, 'detail-line').locator('h2').innerText()).startsWith(name.replace('…', '').trim().slice(0, 20)));
  assert.equal(await fact(page, 'Range: still live'), kept);
  await page.screenshot('range-line');
  await press(page, 'Escape');
  await at(page, 'detail-range').waitFor();

  await goTo(page, 'Findings');
  for (const [moment, fact_name] of [['list-cursor', 'Requested'], ['list-peak', 'Requested'], ['list-growth', 'Growth']]) {
    await at(page, 'lines').getByTestId(moment).click();
    await until(`${moment} is chosen`, () => at(page, 'lines').getByTestId(moment).getAttribute('aria-pressed'), (is) => is === 'true');
    for (const row of [0, 2]) {
      const listed = async () => (await bytesIn(at(page, 'lines').locator('tbody tr').nth(row)))[0];
      let number = -1;
      await until('the list is at rest', async () => { const before = number; number = await listed(); return before === number; });
      await at(page, 'line').nth(row).click();
      await until(`${moment}: row ${row} has ${number}`, () => fact(page, fact_name), (shown) => shown === number);
    }
  }
  // Its stacks add up to it.
  const line = at(page, 'detail-line');
  const stacks = await line.getByTestId('line-stack').count();
  if (stacks > 0) assert.equal(sum(await bytesIn(line.locator('.legend-list').first())), await fact(page, 'Growth'));
});

test('beside an out-of-memory stand the call sites of its moment', async (t) => {
  const page = await openPage(t);
  const failed = await openSample(page);
  const oom = failed.position;
  assert.match(await says(page, 'legend-moment', /when memory ran out/), new RegExp(oom.toLocaleString('en-US')));
  const legend = async () => sum(await legendBytes(page));
  await until('the legend adds up to the moment', legend, (bytes) => bytes === failed.requested);
  await page.screenshot('range-oom');

  await goTo(page, 'Findings');
  const list = at(page, 'lines');
  const listed = async () => sum((await list.locator('tbody tr td:first-child .bytes').evaluateAll((all) => all.map((one) => Number(one.dataset.bytes)))));
  await until('so does the list', listed, (bytes) => bytes === failed.requested);
  const largest = await at(page, 'line').first().innerText();
  const row = async (i) => (await list.locator('tbody tr').nth(i).innerText()).replace(/\s+/g, ' ');
  assert.match(await row(0), /^3\.84 GiB .*append gpt\/evaluate\.py:33$/, 'the line that leaks is the first');

  // At the peak it is another list, and says so.
  await list.getByTestId('list-peak').click();
  assert.match(await says(page, 'lines-go', /at the peak/), /event [\d,]+/);
  await until('it was the third at the peak', () => row(2), (said) => /^2\.40 GiB .*append gpt\/evaluate\.py:33$/.test(said));
  const peak = await listed();
  assert.notEqual(peak, failed.requested);
  assert.equal((await status(page)).position, oom, 'the cursor stays');
  await at(page, 'lines-go').click();
  await movesFrom(page, oom);
  await until('the status adds up to the peak', async () => (await status(page)).requested, (bytes) => bytes === peak);

  await press(page, 'o');
  await standsAt(page, oom);
  await list.getByTestId('list-cursor').click();
  await until('the list is back', listed, (bytes) => bytes === failed.requested);
  assert.equal(await at(page, 'line').first().innerText(), largest);
  await addressSays(page, 'list', null);
});

test('a late answer undoes nothing of what a person did meanwhile', async (t) => {
  const page = await openPage(t);
  await holdWorkers(page);
  const isShown = (name) => until(`${name} is shown`, () => page.tab.title(), (title) => title.startsWith(name));
  await openSample(page);
  await page.drop(await savedSample(page, 'other.pickle'));
  await isShown('other.pickle');
  await page.reach('ready');
  await at(page, 'axis-time').click();
  await addressSays(page, 'x', 'time');
  // In these colours, nothing was asked on the other axis.
  await at(page, 'timeline-color').selectOption({ label: 'size' });
  await answered(page);

  // The window of the other axis is that of before the zoom.
  await hold(page);
  await press(page, 'x');
  await said(page);
  await press(page, 'w', 'w', 'w');
  await release(page);
  await addressSays(page, 'x', 'event');
  await until('it is zoomed', async () => (await address(page)).get('w'));

  // A range that is drawn on one file is none of another.
  await at(page, 'axis-time').click();
  await addressSays(page, 'x', 'time');
  await answered(page);
  await hold(page);
  await drag(page, 'timeline-canvas', 0.4, 0.6);
  await said(page);
  await press(page, 'k');
  await release(page);
  await isShown('sample.pickle');
  await answered(page);
  assert.equal(await range(page), null);
  await press(page, 'k');
  await isShown('other.pickle');
  assert.equal(await range(page), null);
});
