// A person walks through the allocator's history, event by event.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { addressSays, at, bytesIn, goTo, movesFrom, number, openSample, press, says, standsAt, until } from './workbench.mjs';

/** Returns the action toggles with their counts. */
async function counts(page) {
  const toggles = at(page, 'events').locator('.toggles .toggle', { has: page.tab.locator('.count') });
  const texts = await toggles.evaluateAll((all) => all.map((toggle) => [toggle.dataset.testid, toggle.querySelector('.count').textContent]));
  return Object.fromEntries(texts.map(([name, count]) => [name.replace('events-', ''), number(count)]));
}

/** Returns the numbers of the visible rows, and how often each action occurs among them. */
const rows = (page) => at(page, 'event-row').evaluateAll((all) => all.map((row) => [Number(row.dataset.event), row.querySelector('.cell-action').textContent]));

/** Returns the number of rows of the whole list. */
const listed = async (page) => Number(await page.tab.getByRole('grid', { name: 'Events' }).getAttribute('aria-rowcount')) - 1;

test('the list holds every event, and a click on a row moves the cursor there', async (t) => {
  const page = await openPage(t);
  const opened = await openSample(page);
  await goTo(page, 'Events');
  const total = number((await says(page, 'events-count', /^6\d,\d{3} events$/)).split(' ')[0]);
  assert.equal(total, opened.events);
  assert.equal(await listed(page), total);
  const all = Object.values(await counts(page)).reduce((sum, count) => sum + count, 0);
  assert.equal(all, total, 'the actions add up to the events');

  // The list opens where the cursor stands.
  // A row beside it is named by its event, since the number of a row on the screen changes while the list scrolls.
  const event = opened.position - 3;
  await until('the row of the cursor', () => rows(page), (rows) => [event, event + 2].every((near) => rows.some(([found]) => found === near)));
  const row = page.tab.locator(`[data-event="${event}"]`);
  const cells = await row.getByRole('gridcell').allInnerTexts();
  assert.equal(number(cells[0]), event + 1);
  await row.click();
  const there = await standsAt(page, event + 1);
  assert.match(there.text.replace(/\s+/g, ' '), new RegExp(`event ${cells[0]} of`));
  await addressSays(page, 'cur', String(event + 1));
  await until('the row is selected', () => row.getAttribute('aria-selected'), (is) => is === 'true');

  await press(page, '.');
  await standsAt(page, event + 2);
  await press(page, ',');
  await standsAt(page, event + 1);
  await press(page, ',', ',', ',');
  await standsAt(page, event - 2);
  await page.screenshot('events');
});

test('a step changes the totals by the size of the event', async (t) => {
  const page = await openPage(t);
  const { position } = await openSample(page);
  await goTo(page, 'Events');
  await at(page, 'events-segment_free').click();
  await press(page, ',');
  // The cursor stands right after a segment was given back; without the filter, a step back is before that.
  const after = await movesFrom(page, position);
  const [size] = await bytesIn(page.tab.locator(`[data-event="${after.position - 1}"]`));
  await at(page, 'events-all').click();
  await press(page, ',');
  const before = await standsAt(page, after.position - 1);
  assert.equal(before.reserved - after.reserved, size);
  assert.equal(before.requested, after.requested);
});

test('toggles leave as many events as their counts say', async (t) => {
  const page = await openPage(t);
  const { events } = await openSample(page);
  await goTo(page, 'Events');
  await says(page, 'events-count', /events$/);
  const said = await counts(page);
  assert.equal(said.oom, 1);

  await at(page, 'events-oom').click();
  await says(page, 'events-count', new RegExp(`^${said.oom} of `));
  await until('one row, of the action', () => rows(page), (rows) => rows.length === said.oom && rows.every(([, action]) => action === 'oom'));
  assert.equal(await listed(page), said.oom);
  await addressSays(page, 'act', 'oom');

  await at(page, 'events-segment_free').click();
  const both = said.oom + said.segment_free;
  await says(page, 'events-count', new RegExp(`^${both} of `));
  assert.equal(await listed(page), both);
  await at(page, 'events-all').click();
  await says(page, 'events-count', /^[\d,]+ events$/);
  assert.equal(await listed(page), events);
  await addressSays(page, 'act', null);
});

test('keys go to the ends of the list and to the peak', async (t) => {
  const page = await openPage(t);
  const { events, position } = await openSample(page);
  await goTo(page, 'Events');
  await until('rows', () => rows(page), (rows) => rows.length > 0);

  // Elsewhere these keys move the cursor; in the list they select a row, so the first event and not the start.
  await press(page, 'Home');
  await standsAt(page, 0);
  await press(page, 'End');
  await standsAt(page, events);
  await page.tab.getByRole('grid', { name: 'Events' }).focus();
  await press(page, 'Home');
  await standsAt(page, 1);
  await until('the first row is on the screen', () => rows(page), (rows) => rows[0]?.[0] === 0);
  await press(page, 'ArrowDown', 'ArrowDown');
  await standsAt(page, 3);
  await press(page, 'End');
  await standsAt(page, events);
  await until('the last row is on the screen', () => rows(page), (rows) => rows.at(-1)?.[0] === events - 1);

  await press(page, 'o');
  await standsAt(page, position);
  await until('the row of the cursor is the flag’s', () => rows(page), (rows) => rows.some(([event, action]) => event === position - 1 && action === 'oom'));
  await press(page, 'p');
  const peak = await movesFrom(page, position);
  await press(page, '.');
  const after = await standsAt(page, peak.position + 1);
  await press(page, ',', ',');
  const before = await standsAt(page, peak.position - 1);
  // Freed memory counts until the free is completed.
  assert.ok(before.requested < peak.requested && after.requested <= peak.requested, 'nothing is above the peak');
});
