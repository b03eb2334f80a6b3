// A person searches for a line, walks through its allocations, and then filters for them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { trainingJob } from './training.mjs';
import { address, addressSays, answered, at, bytesIn, goTo, legendBytes, movesFrom, number, openSample, press, says, standsAt, status, text, until } from './workbench.mjs';

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
const held = async (page) => (await legendBytes(page)).reduce((sum, bytes) => sum + bytes, 0);

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

  // Esc closes the list and leaves the box, and a second one ends the search.
  assert.ok(await at(page, 'search-list').isVisible());
  await press(page, 'Escape');
  await until('the list is closed', () => at(page, 'search-list').count(), (count) => count === 0);
  assert.equal(await at(page, 'search-input').inputValue(), 'evaluate.py:33');
  assert.ok(await at(page, 'search-input').evaluate((input) => input !== document.activeElement));
  await press(page, 'Escape');
  await addressSays(page, 'q', null);
  assert.equal(await at(page, 'search-input').inputValue(), '');

  // So does a button, which stays in the box.
  await search(page, 'model.py');
  await at(page, 'search-clear').click();
  await addressSays(page, 'q', null);
  assert.ok(await at(page, 'search-input').evaluate((input) => input === document.activeElement && input.value === ''));
});

test('a pattern finds what the text finds, and an invalid one is explained', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  const plain = await search(page, 'model.py:113');
  await press(page, 'Escape', 'Escape', 'Escape');
  assert.deepEqual(await search(page, '/model\\.py:11[3]/'), plain);
  await press(page, 'Escape', 'Escape', 'Escape');

  await press(page, '/');
  await page.tab.keyboard.type('/(/');
  await until('it is marked', () => at(page, 'search-input').getAttribute('aria-invalid'), (is) => is === 'true');
  const sentence = await says(page, 'search-error', /\w+ \w+/);
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
  const forms = await at(page, 'search-help-list').locator('.term').allInnerTexts();
  assert.ok(forms.length >= 5, String(forms));
  await at(page, 'search-help-list').getByRole('button').first().click();
  assert.equal(await at(page, 'search-input').inputValue(), forms[0]);
  await says(page, 'search-result', /no match|·/i);
  assert.ok(await at(page, 'search-help-list').isHidden());

  for (const leave of [() => press(page, 'Escape'), () => press(page, 'Tab'), () => at(page, 'status').click()]) {
    await at(page, 'search-help').click();
    await at(page, 'search-help-list').waitFor();
    await leave();
    await at(page, 'search-help-list').waitFor({ state: 'hidden' });
  }
});

test('Enter goes to the row that the arrow keys chose, also where no allocation matches', async (t) => {
  const page = await openPage(t);
  const file = trainingJob();
  const job = JSON.parse(file.buffer);
  const start = job.device_traces[0][0].time_us;
  job.external_annotations = ['warm-up', 'second warm-up', 'third warm-up'].flatMap((name, i) => ['START', 'END'].map(
    (stage, j) => ({ device: 0, name, stage, time_us: start + 100 * i + 50 * j + 5 }),
  ));
  await page.load({ ...file, buffer: Buffer.from(JSON.stringify(job)) });
  await at(page, 'search-input').fill('warm-up');
  const listed = await until('three spans', () => groups(page), (listed) => listed.marks?.count === 3);
  assert.equal(listed.allocations, undefined);
  const cursors = [];
  for (const keys of [['ArrowDown', 'Enter'], ['Enter'], ['ArrowDown', 'Enter']]) {
    const before = (await status(page)).position;
    await press(page, ...keys);
    cursors.push((await movesFrom(page, before)).position);
  }
  // The first row, the next by Enter alone, and the next by the arrow key.
  assert.ok(cursors[0] < cursors[1] && cursors[1] < cursors[2], cursors.join());
});

test('Enter goes to a match of what was just typed', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await press(page, '/');
  await page.tab.keyboard.type('evaluate.py:33');
  await press(page, 'Enter');
  await until('a hit is stood on', () => found(page), (now) => now?.at !== undefined);
  assert.match(await at(page, 'detail-allocation').innerText(), /evaluate\.py:33/);
});

test('the place among the matches is that of the term, and not of the one before', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  const before = await search(page, 'forward');
  await press(page, 'Enter');
  await until('a place among them', () => found(page), ({ at }) => at > 0);
  await page.tab.keyboard.press('Control+a');
  await page.tab.keyboard.type('size>100MB');
  await addressSays(page, 'q', 'size>100MB');
  const after = await until('other matches', () => found(page), ({ count }) => count !== before.count);
  assert.ok(after.at === undefined || after.at <= after.count, `${after.at} of ${after.count}`);
  assert.equal(after.at, undefined, 'no step was made since');
});

test('several words are one search, and an error leaves the words in view', async (t) => {
  const page = await openPage(t, { width: 1024, height: 700 });
  await openSample(page);
  const large = await search(page, '>100MiB');
  await press(page, 'Escape', 'Escape', 'Escape');
  const line = await search(page, 'evaluate.py');
  await press(page, 'Escape', 'Escape', 'Escape');
  const both = await search(page, '>100MiB evaluate.py');
  assert.ok(both.count > 0 && both.count <= Math.min(large.count, line.count), JSON.stringify([both, large, line]));
  await page.tab.keyboard.type(' -evaluate.py');
  await says(page, 'search-none', /^No allocation is larger than 100 MiB and has “evaluate\.py” in its stack and does not have “evaluate\.py” in its stack/);
  await press(page, 'Escape', 'Escape', 'Escape');
  await search(page, 'evaluate.py >100MiB');
  await says(page, 'search-understood', /^Understood as any allocation that has “evaluate\.py” in its stack and is larger than 100 MiB$/);
  await page.screenshot('search-words');
  await press(page, 'Control+Enter');
  await addressSays(page, 'f', 'evaluate.py >100MiB');
  await page.tab.reload();
  await page.reach('ready');
  await until('the chip is there', () => at(page, 'filter-chip').allInnerTexts(), (chips) => chips.length === 1 && chips[0].includes('evaluate.py >100MiB'));

  // What can't be read is answered below the field, which keeps its room.
  await at(page, 'search-input').fill('>800XiB evaluate.py:33 and much more');
  await says(page, 'search-error', /“800XiB” is not a size/);
  const [field, fault] = await page.tab.evaluate(() => ['search-input', 'search-error'].map((name) => {
    const element = document.querySelector(`[data-testid="${name}"]`);
    const { top, bottom, width } = element.getBoundingClientRect();
    return { top, bottom, width, isCut: element.scrollWidth > element.clientWidth + 1 };
  }));
  assert.ok(fault.top >= field.bottom - 2 && !fault.isCut && !field.isCut && field.width > 180, JSON.stringify({ field, fault }));
  await page.screenshot('search-error');
});

/** Returns the groups of the list: the number of matches, and the texts of the rows, read at one moment. */
function groups(page) {
  return page.tab.evaluate(() => Object.fromEntries(
    [...document.querySelectorAll('[data-testid="search-list"] .found-group')].map((group) => [
      group.dataset.testid.replace('found-', ''),
      {
        count: Number(/^[\d,]+/.exec(group.querySelector('[data-testid="found-count"]').textContent)[0].replaceAll(',', '')),
        rows: [...group.querySelectorAll('.found-row')].map((row) => row.textContent),
      },
    ]),
  ));
}

/** Returns the selected row of the list, whether it is in view, and what the address bar says, read at one moment. */
function stoodOn(page) {
  return page.tab.evaluate(() => {
    const row = document.querySelector('.found-row.is-selected');
    const view = new URLSearchParams(location.hash.slice(1));
    if (!row) return null;
    const [inner, outer] = [row.getBoundingClientRect(), row.parentElement.getBoundingClientRect()];
    const isInView = inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
    return { when: Number.parseFloat(row.querySelector('.found-when').textContent), isInView, selection: view.get('sel') };
  });
}

test('matches are listed in groups, and Enter walks through them by time and keeps them in view', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  // Enter begins at the cursor.
  await press(page, 'Home');
  await standsAt(page, 0);
  const all = await search(page, 'model.py');
  const listed = await until('the list', () => groups(page), (listed) => listed.allocations?.rows.length > 0);
  assert.equal(listed.allocations.count, all.count);
  assert.ok(listed.lines.count > 1 && listed.lines.rows.length === Math.min(listed.lines.count, 60), JSON.stringify(listed.lines));
  // The lines that requested most come first.
  const sizes = await bytesIn(at(page, 'found-lines').locator('.found-row'));
  assert.deepEqual(sizes, [...sizes].sort((a, b) => b - a));
  await page.screenshot('search-list');

  // More steps than the list has rows in view.
  let last = -1;
  const seen = new Set();
  for (let steps = 0; steps < 25; steps += 1) {
    await press(page, 'Enter');
    const now = await until('the next match', () => stoodOn(page), (now) => now && !seen.has(now.selection) && now.isInView);
    assert.ok(now.when >= last, `${now.when} after ${last}`);
    last = now.when;
    seen.add(now.selection);
  }
  await press(page, 'Shift+Enter');
  const back = await until('the match before', () => stoodOn(page), (now) => now && now.selection === [...seen].at(-2));
  assert.ok(back.when <= last);
  // The window follows the matches.
  const window = await page.tab.evaluate(() => new URLSearchParams(location.hash.slice(1)).get('w'));
  const cursor = (await page.tab.evaluate(() => document.querySelector('[data-testid="status"]').textContent)).match(/([\d.]+) s/);
  if (window) {
    const [from, to] = window.split(',').map((us) => Number(us) / 1e6);
    assert.ok(Number(cursor[1]) >= from - 0.001 && Number(cursor[1]) <= to + 0.001, `${cursor[1]} in ${window}`);
  }

  // The arrow keys reach the other groups.
  const rows = listed.allocations.rows.length;
  await until('a line is chosen', async () => {
    await press(page, 'ArrowDown');
    return at(page, 'search-input').getAttribute('aria-activedescendant');
  }, (id) => id === 'found-l0');
  assert.ok(rows > 0);
  await press(page, 'Enter');
  await at(page, 'detail-line').waitFor();
  await until('the line is selected', () => address(page), (now) => now.get('sel')?.startsWith('l'));
  await page.screenshot('search-line');
});

test('the list begins around the match that Enter goes to, and the other matches stay in colour', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await press(page, 'End');
  await until('the cursor is at the end', () => text(page, 'status'), (said) => {
    const [, at, of] = /event ([\d,]+) of ([\d,]+)/.exec(said) ?? [];
    return at && at === of;
  });
  const all = await search(page, 'model.py');
  // The rows that are in view before the first step, and the first of them after it.
  const inView = () => page.tab.evaluate(() => [...document.querySelectorAll('[data-testid="found-allocations"] .found-row')]
    .filter((row) => {
      const [inner, outer] = [row.getBoundingClientRect(), row.parentElement.getBoundingClientRect()];
      return inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
    })
    .map((row) => row.textContent));
  // The list that was asked for at the end, not the one before it.
  await answered(page);
  const rows = await until('rows in view', inView, (rows) => rows.length > 0);
  await page.screenshot('search-around');
  await press(page, 'Enter');
  await until('a hit is stood on', () => found(page), (now) => now.at !== undefined && now.count === all.count);
  await until('a row is selected', () => stoodOn(page), (now) => now?.isInView);
  const gone = await page.tab.evaluate(() => document.querySelector('.found-row.is-selected').textContent);
  assert.ok(rows.includes(gone), `${gone} of ${rows.join(' | ')}`);
  await press(page, 'Escape');
  await page.screenshot('search-colours');
});

test('units are forgiven, and what nothing matches is answered with what was understood', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  const say = async (term) => {
    await at(page, 'search-input').fill(term);
    await addressSays(page, 'q', term);
  };
  await say('size>900GB');
  await says(page, 'search-none', /^No allocation is larger than 900 GiB \(size>900GB\)\. The largest is [\d.]+ [KMG]iB\.$/);
  await says(page, 'search-result', /No matches/);
  await page.screenshot('search-none');
  await say('size > 1.5 mb');
  await says(page, 'search-understood', /^Understood as requests larger than 1\.5 MiB$/);
  const spaced = await found(page);
  await say('>1.5MiB');
  await until('the same matches', () => found(page), (now) => now.count === spaced.count);
  const listed = await until('segments too', () => groups(page), (listed) => listed.segments?.count > 0);
  assert.match(listed.segments.rows[0], /^0x[0-9a-f]+/);
  await at(page, 'found-segments').locator('.found-row').first().click();
  await addressSays(page, 'tab', 'segments');
  await at(page, 'detail-segment').waitFor();
});
