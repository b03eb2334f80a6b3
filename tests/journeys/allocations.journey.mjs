// A person looks through the allocations that are live: the largest, the oldest, those of one line.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { at, goTo, press, text, until } from './workbench.mjs';

const rows = (page) => at(page, 'allocation-row');
/** Returns the bytes of the first rows. */
const bytes = (page) => rows(page).locator('.bytes').evaluateAll((all) => all.slice(0, 8).map((one) => Number(one.dataset.bytes)));
const falls = (numbers) => numbers.every((number, i) => i === 0 || numbers[i - 1] >= number);

test('what is live is a table: the largest first, equal ones in one row', async (t) => {
  const page = await openPage(t);
  await page.loadSample();
  await press(page, '8');
  await rows(page).first().waitFor();
  const largest = await bytes(page);
  assert.ok(largest.length > 3 && falls(largest), `the largest first: ${largest}`);
  const size = await at(page, 'allocation-size').first().innerText();
  assert.match(size, /^\d[\d,]* × [\d.]+ MiB$/, 'the largest row is of many');
  const count = async () => Number((await at(page, 'allocations-total').innerText()).match(/^([\d,]+) allocation/)[1].replaceAll(',', ''));
  const all = await count();

  // A click explains the line, and the menu knows it.
  await rows(page).first().click();
  await at(page, 'detail-line').waitFor();
  await rows(page).first().click({ button: 'right' });
  await page.tab.getByRole('menu').waitFor();
  await press(page, 'Escape');

  // One row each: as many, and a click explains the allocation.
  await at(page, 'allocations-fold').click();
  await until('each has a row', () => at(page, 'allocation-size').first().innerText(), (said) => !said.includes('×'));
  assert.equal(await count(), all);
  await rows(page).first().click();
  await at(page, 'detail-allocation').waitFor();
  await at(page, 'allocations-fold').click();
  await until('they share a row again', () => at(page, 'allocation-size').first().innerText(), (said) => said === size);
});

test('the table is sorted, filtered and read with the keyboard', async (t) => {
  const page = await openPage(t, { width: 1024, height: 700 });
  await page.loadSample();
  await goTo(page, 'Allocations');
  await rows(page).first().waitFor();
  const heads = () => page.tab.locator('.allocations [role=columnheader]').evaluateAll((all) => all.map((one) => one.ariaSort));
  assert.equal((await heads())[0], 'descending');
  await at(page, 'sort-bytes').click();
  await until('the smallest comes first', () => bytes(page), (now) => falls([...now].reverse()) && now.at(-1) >= now[0]);
  assert.equal((await heads())[0], 'ascending');
  await at(page, 'sort-site').click();
  await until('it is sorted by the line', heads, (now) => now.includes('ascending') && now[0] === 'none');
  // A link and a reload keep the order.
  await until('the address says so', () => page.tab.url(), (now) => now.includes('alloc=site'));
  await at(page, 'sort-bytes').click();

  await page.tab.getByRole('grid', { name: 'Allocations' }).focus();
  await page.tab.keyboard.press('ArrowDown');
  await at(page, 'detail-line').waitFor();
  const first = await text(page, 'detail-line');
  await page.tab.keyboard.press('ArrowDown');
  await until('the next row is explained', () => page.tab.locator('.detail').innerText(), (now) => now !== first);

  // A filter and the moment hold here too.
  const total = await text(page, 'allocations-total');
  await at(page, 'list-peak').click();
  await until('the total is of the peak', () => text(page, 'allocations-total'), (now) => now !== total && /at the peak/.test(now));
});
