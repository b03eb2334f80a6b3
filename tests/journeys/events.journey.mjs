// A person walks through the allocator's history, event by event.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { startJob, startServer } from './program.mjs';
import { addressSays, at, bytesIn, copied, goTo, movesFrom, number, openSample, press, says, standsAt, unfoldToolbar, until } from './workbench.mjs';

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

test('a list that is sorted and then filtered is read from its top', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await goTo(page, 'Events');
  await at(page, 'sort-size').click();
  await at(page, 'sort-size').click();
  await until('the largest first', () => sizes(page), (found) => found.length > 2 && found[0] >= found[1] && found[0] > found.at(-1));
  await at(page, 'events-filter').click();
  assert.ok(await at(page, 'filter-line').evaluate((field) => field === document.activeElement), 'what is typed goes into the field');
  await page.tab.keyboard.type('train.py');
  await press(page, 'Enter');
  await says(page, 'events-count', / of /);
  await until('the top', () => page.tab.locator('.events .virtual').evaluate((list) => list.scrollTop), (top) => top === 0);
  // The first Esc closes the fields, and keeps what is selected.
  await press(page, 'Escape');
  await until('the fields are closed', () => at(page, 'events-filter-form').count(), (count) => count === 0);
});

test('a segment that the event at the cursor released is described as it was', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await goTo(page, 'Events');
  await at(page, 'events-segment_free').click();
  await at(page, 'event-row').first().click();
  await says(page, 'segment-released', /Released by the event at the cursor/);
  assert.match(await at(page, 'detail-segment').innerText(), /segment/);
});

test('the menu of columns is whole, and tells which columns have no room', async (t) => {
  const page = await openPage(t, { width: 1024, height: 700 });
  await openSample(page);
  await goTo(page, 'Events');
  await unfoldToolbar(page);
  await at(page, 'events-columns').click();
  const list = await at(page, 'events-columns-list').boundingBox();
  const window = page.tab.viewportSize();
  assert.ok(list.x >= 0 && list.x + list.width <= window.width && list.y + list.height <= window.height, JSON.stringify(list));
  const rows = await at(page, 'events-columns-list').locator('[role=menuitemcheckbox]').allInnerTexts();
  const shown = await page.tab.getByRole('columnheader').count() - 1;
  const crowded = rows.filter((row) => /no room/.test(row)).length;
  assert.ok(crowded > 0 && crowded + shown === rows.length, `${crowded} of ${rows.length} have no room, ${shown} are shown`);
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

/** Returns the cells of a column that are on the screen, read at one moment. */
const column = (page, name) => page.tab.evaluate((name) =>
  [...document.querySelectorAll(`[data-testid="event-row"] [data-column="${name}"]`)].map((cell) => cell.title || cell.textContent), name);

const sizes = (page) => bytesIn(at(page, 'event-row').locator('[data-column="size"]'));

test('the list is sorted by a press on a head, and columns are chosen', async (t) => {
  const page = await openPage(t);
  const { position } = await openSample(page);
  await goTo(page, 'Events');
  await until('rows', () => rows(page), (rows) => rows.length > 0);
  await at(page, 'sort-size').click();
  await addressSays(page, 'sort', 'size');
  await at(page, 'sort-size').click();
  await addressSays(page, 'sort', '-size');
  await page.tab.getByRole('grid', { name: 'Events' }).focus();
  await press(page, 'Home');
  const largest = await until('the largest first', () => sizes(page), (sizes) => sizes.length > 10 && sizes.every((size, i) => i === 0 || size <= sizes[i - 1]));
  await page.screenshot('events-sorted');
  await press(page, 'ArrowDown');
  const second = await movesFrom(page, position);
  assert.notEqual(second.position, position);
  await press(page, 'End');
  await until('the smallest last', () => sizes(page), (sizes) => sizes.length > 10 && sizes.at(-1) < largest[0]);
  await at(page, 'sort-size').click();
  await addressSays(page, 'sort', null);

  assert.ok((await column(page, 'since')).length > 0, 'the time since the event before');
  await unfoldToolbar(page);
  await at(page, 'events-columns').click();
  await at(page, 'column-address').click();
  await at(page, 'column-since').click();
  await page.screenshot('events-columns');
  await press(page, 'Escape');
  await until('the columns are gone', async () => [...(await column(page, 'address')), ...(await column(page, 'since'))], (cells) => cells.length === 0);
  await addressSays(page, 'hide', 'since,address');
});

test('an event leads to its free and back, and is copied with its stack', async (t) => {
  const page = await openPage(t);
  const { position } = await openSample(page);
  await goTo(page, 'Events');
  await at(page, 'events-free_requested').click();
  await until('frees', () => rows(page), (rows) => rows.length > 0 && rows.every(([, action]) => action === 'free_requested'));
  await page.tab.getByRole('grid', { name: 'Events' }).focus();
  await press(page, 'Home');
  const freed = await movesFrom(page, position);
  const partner = page.tab.locator(`[data-event="${freed.position - 1}"]`).getByTestId('event-partner');
  assert.match(await partner.getAttribute('title'), /^Go to its alloc, event [\d,]+ \(E\)$/);
  await partner.click();
  const there = await movesFrom(page, freed.position);
  const event = there.position - 1;
  await at(page, 'events-all').click();
  await until('it is an alloc', () => page.tab.locator(`[data-event="${event}"] .cell-action`).allTextContents(), (said) => said[0] === 'alloc');
  await press(page, 'e');
  await standsAt(page, freed.position);
  await press(page, 'e');
  await standsAt(page, event + 1);

  await page.tab.getByRole('grid', { name: 'Events' }).focus();
  await press(page, 'Control+c');
  await page.tab.getByText(/^Copied event/).first().waitFor();
  const said = await copied(page);
  const lines = said.split('\n');
  assert.match(lines[0], new RegExp(`^event ${(event + 1).toLocaleString('en')}  [\\d,]+ µs  alloc  [\\d,]+ bytes  0x[0-9a-f]+  stream `));
  assert.ok(lines.length > 1 && lines.slice(1).every((line) => line.startsWith('    ')), said);
  await page.screenshot('events-copied');
});

test('fields filter by line and size as the search box would', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await goTo(page, 'Events');
  await at(page, 'events-filter').click();
  await at(page, 'filter-line').fill('model.py');
  await at(page, 'filter-least').fill('1mb');
  await press(page, 'Enter');
  await until('two filters', () => at(page, 'filter-chip').allInnerTexts(), (chips) => chips.length === 2 && chips[1].includes('size>=1mb'));
  await until('only large ones', () => sizes(page), (sizes) => sizes.length > 0 && sizes.every((size) => size >= 1 << 20));
  await page.screenshot('events-filters');
  await at(page, 'filter-most').fill('much');
  await press(page, 'Enter');
  await until('the mistake is explained', () => at(page, 'events-filter-form').getByRole('alert').allInnerTexts(), (said) => /is not a size/.test(said[0]));
});

test('the list follows a running job until it is scrolled up', async (t) => {
  const server = await startServer(t);
  startJob(t, server.url, 'transformer', '--rate', '500', '--steps', '4000');
  const page = await openPage(t);
  await at(page, 'session-open').first().click();
  await page.reach('ready');
  await goTo(page, 'Events');
  const shown = () => page.tab.evaluate(() => ({
    last: Number([...document.querySelectorAll('[data-event]')].at(-1)?.dataset.event ?? -1),
    follows: document.querySelector('[data-testid="events-follow"]')?.getAttribute('aria-pressed'),
    rows: Number(document.querySelector('[role="grid"]')?.getAttribute('aria-rowcount') ?? 0) - 1,
  }));
  const first = await until('it follows', shown, (now) => now.follows === 'true' && now.rows > 200 && now.last >= now.rows - 400);
  await until('new events are shown', shown, (now) => now.last > first.last + 300);
  const box = await page.tab.getByRole('grid', { name: 'Events' }).boundingBox();
  await page.tab.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.tab.mouse.wheel(0, -1_000);
  const held = await until('it stays', shown, (now) => now.follows === 'false');
  const later = await until('more events came', shown, (now) => now.rows > held.rows + 300);
  assert.ok(later.last < held.rows, `${later.last} is what was scrolled to`);
  await at(page, 'events-follow').click();
  await until('it follows again', shown, (now) => now.follows === 'true' && now.last >= now.rows - 400);
});
