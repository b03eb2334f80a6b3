// A person asks which lines hold the memory, and wants the answer to add up.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { address, addressSays, at, goTo, movesFrom, number, openSample, press, standsAt, status, text, until } from './workbench.mjs';

/** Returns the exact sum above the graph. */
const total = async (page) => Number(await at(page, 'flame-sum').getAttribute('data-total'));

/** Waits until the sum above the graph equals the requested bytes in the status line. */
async function sumsTo(page, requested) {
  await until(`the graph sums to ${requested}`, () => total(page), (sum) => sum === requested);
  await until('it says so', () => text(page, 'flame-sum'), (said) => said.includes('= total requested at event'));
}

/** Returns the visible rows of the table: depth, share and bytes, as displayed. */
const rows = (page) =>
  page.tab.getByRole('treeitem').evaluateAll((all) =>
    all.map((row) => {
      const [bytes, share, count] = [...row.querySelectorAll('.cell-number')].map((cell) => cell.textContent);
      return { level: Number(row.getAttribute('aria-level')), bytes, share, count: Number(count.replaceAll(',', '')), name: row.querySelector('b').textContent };
    }),
  );

test('the graph sums exactly to the status line, at the cursor and at the peak', async (t) => {
  const page = await openPage(t);
  const opened = await openSample(page);
  await goTo(page, 'Flame');
  await sumsTo(page, opened.requested);
  await page.screenshot('flame');

  // The peak is shown without moving the cursor, and is what the cursor finds there.
  await at(page, 'flame').getByTestId('list-peak').click();
  const shown = async () => Number(await at(page, 'flame-sum').getAttribute('data-total'));
  const atPeak = await until('the peak is larger', shown, (total) => total > opened.requested);
  assert.equal((await status(page)).position, opened.position, 'the cursor stays');
  await press(page, 'p');
  const peak = await movesFrom(page, opened.position);
  assert.equal(peak.requested, atPeak);
  await at(page, 'flame').getByTestId('list-cursor').click();
  await sumsTo(page, peak.requested);

  await at(page, 'flame-bottom-up').click();
  await addressSays(page, 'flame', 'up');
  await sumsTo(page, peak.requested);
  await page.screenshot('flame-bottom-up');
  await press(page, ',');
  const before = await standsAt(page, peak.position - 1);
  assert.ok(before.requested < peak.requested);
  await sumsTo(page, before.requested);
});

test('the table has the same sum, and each level adds up', async (t) => {
  const page = await openPage(t);
  const { requested } = await openSample(page);
  await goTo(page, 'Flame');
  await sumsTo(page, requested);
  await at(page, 'flame-as-table').click();
  const [sum, , count] = (await text(page, 'flame-sum')).match(/^(\S+ \S+) (in) ([\d,]+) allocations?/).slice(1);

  for (const direction of ['flame-bottom-up', 'flame-top-down']) {
    await at(page, direction).click();
    await until(`${direction} is on`, () => at(page, direction).getAttribute('aria-pressed'), (is) => is === 'true');
    const [root] = await until('rows', () => rows(page), (rows) => rows.length > 1);
    assert.deepEqual([root.level, root.bytes, root.share, root.count], [1, sum, '100 %', number(count)]);
  }
  // Closing the first branch makes room for its siblings.
  await page.tab.getByRole('tree').focus();
  await press(page, 'Home', 'ArrowRight', 'ArrowLeft');
  const second = async () => (await rows(page)).filter(({ level }) => level === 2).reduce((sum, row) => sum + row.count, 0);
  await until('the lines below the root add up', second, (sum) => sum === number(count));

  const opened = (await rows(page)).length;
  await press(page, 'Home', 'ArrowLeft');
  await until('the root is closed', () => rows(page), (rows) => rows.length === 1);
  await press(page, 'ArrowRight');
  await until('the root is open', () => rows(page), (rows) => rows.length === opened);
  await page.screenshot('flame-table');
});

test('a click zooms into a box, and the path above it leads back', async (t) => {
  const page = await openPage(t);
  const { requested } = await openSample(page);
  await goTo(page, 'Flame');
  await sumsTo(page, requested);
  const canvas = page.tab.locator('.flame canvas').first();
  const crumbs = page.tab.getByRole('navigation', { name: 'Zoom path' });
  const picture = () => canvas.screenshot().then((png) => png.toString('base64'));
  const whole = await picture();
  const path = async () => (await crumbs.innerText()).replace(/\s+/g, ' ');
  const box = await canvas.boundingBox();
  const place = [box.x + box.width * 0.3, box.y + 70];
  await page.tab.mouse.click(...place);
  await until('the path is shown', path, (said) => /^All › .+/.test(said));
  await until('another picture', async () => (await picture()) !== whole);
  await page.screenshot('flame-zoomed');
  // The graph has not moved, and the tooltip is of the box that is now under the pointer.
  assert.deepEqual(await canvas.boundingBox(), box);
  const tip = await text(page, 'flame-tip');
  await page.tab.mouse.move(box.x + 1, box.y + 10);
  await until('the tooltip is of another box', () => text(page, 'flame-tip'), (said) => said !== tip);
  await page.tab.mouse.move(...place);
  assert.equal(await until('the tooltip is of that box', () => text(page, 'flame-tip'), (said) => said !== ''), tip);

  await at(page, 'flame-zoom-out').click();
  await until('the path is gone', path, (said) => said === 'All');
  await sumsTo(page, requested);
  await addressSays(page, 'tab', 'flame');
});

/** Focuses the graph and presses keys that move from its root. Returns the text of the selected box for screen readers. */
async function choose(page, ...keys) {
  await at(page, 'flame-scroll').focus();
  await press(page, ...keys);
  return until('a box is chosen', () => text(page, 'flame-chosen'), (said) => said.length > 0);
}

const chips = (page) => page.tab.getByTestId('flame-chip').allInnerTexts();

test('transforms are applied by key and menu, keep the sum, and are removed one by one', async (t) => {
  const page = await openPage(t);
  const { requested } = await openSample(page);
  await goTo(page, 'Flame');
  await sumsTo(page, requested);

  await choose(page, 'ArrowDown', 'ArrowDown');
  await press(page, 'm');
  const [merged] = await until('one is listed', () => chips(page), (all) => all.length === 1);
  assert.match(merged, /^Merged: \S+/);
  await until('the link has it', async () => (await address(page)).get('flameops'), (said) => /^m\d+$/.test(said));
  assert.equal(await total(page), requested, 'merged bytes go to the caller');

  await choose(page, 'ArrowDown');
  await at(page, 'flame-transform').click();
  await page.screenshot('flame-transforms');
  await at(page, 'flame-collapse-recursion').click();
  await until('two are listed', () => chips(page), (all) => all.length === 2);
  assert.equal(await total(page), requested, 'collapsed bytes stay');

  // Dropping the largest box below the root leaves less; without it, all is back.
  await choose(page, 'ArrowDown');
  await press(page, 'd');
  await until('three are listed', () => chips(page), (all) => all.length === 3 && all[2].startsWith('Dropped: '));
  const left = await until('less is left', () => total(page), (sum) => sum < requested);
  assert.ok(left >= 0);
  await page.tab.getByTestId('flame-chip').nth(2).getByRole('button').click();
  await until('all is back', () => total(page), (sum) => sum === requested);
  await page.tab.getByTestId('flame-chip').nth(0).getByRole('button').click();
  await until('one is left', () => chips(page), (all) => all.length === 1 && all[0].startsWith('Recursion: '));
  await press(page, 'Escape');
  await until('none is left', () => chips(page), (all) => all.length === 0);
  assert.equal(await total(page), requested);
});

test('a focus shows the bytes of its box', async (t) => {
  const page = await openPage(t);
  const { requested } = await openSample(page);
  await goTo(page, 'Flame');
  await sumsTo(page, requested);
  const said = await choose(page, 'ArrowDown', 'ArrowDown');
  await press(page, 'Shift+F');
  const [, bytes] = /, ([\d.]+ \w+), \S+ %$/.exec(said);
  await until(`the graph has the ${bytes} of its box`, () => text(page, 'flame-sum'), (sum) => sum.startsWith(bytes));
  await until('it is listed', () => chips(page), (all) => all.length === 1 && all[0].startsWith('Subtree: '));
  assert.ok((await total(page)) <= requested);
});

test('a search says how many bytes its boxes hold, each counted once', async (t) => {
  const page = await openPage(t);
  const { requested } = await openSample(page);
  await goTo(page, 'Flame');
  await sumsTo(page, requested);
  await press(page, '/');
  await page.tab.keyboard.type('py');
  await press(page, 'Enter');
  const matched = async () => Number(await at(page, 'flame-matched').getAttribute('data-bytes'));
  const bytes = await until('the matches are summed', matched, (bytes) => bytes > 0);
  // Every stack of the sample has Python frames, most of them several: still no byte counts twice.
  assert.ok(bytes <= requested, `${bytes} of ${requested}`);
  await page.screenshot('flame-search');
});

test('callers stand over callees, with one sum', async (t) => {
  const page = await openPage(t);
  const { requested } = await openSample(page);
  await goTo(page, 'Flame');
  await sumsTo(page, requested);
  await choose(page, 'ArrowDown', 'ArrowDown');
  await press(page, 's');
  await until('both halves', () => page.tab.getByTestId('flame-canvas').count(), (count) => count === 2);
  await until('the link has it', async () => (await address(page)).get('sandwich'), (said) => /^f\d+$/.test(said));
  await until('its sum', () => total(page), (sum) => sum > 0 && sum <= requested);
  await page.screenshot('flame-sandwich');
  await press(page, 'Escape');
  await until('one graph again', () => page.tab.getByTestId('flame-canvas').count(), (count) => count === 1);
  await sumsTo(page, requested);
});

test('differences show what grew and what shrank', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await goTo(page, 'Flame');
  await at(page, 'flame').getByTestId('list-growth').click();
  await at(page, 'flame-differs').click();
  await addressSays(page, 'differs', '1');
  const sums = () => at(page, 'flame-sum').evaluate((sum) => ({ ...sum.dataset }));
  const { total: all, grew, shrank } = await until('the sums', sums, (sums) => sums.grew !== undefined);
  assert.ok(Number(grew) > 0 && Number(shrank) >= 0 && Number(all) >= Number(grew));
  await page.screenshot('flame-differences');
});
