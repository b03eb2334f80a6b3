// A person has several jobs, looks for something in one that runs, pauses and goes on, and loses it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { startJob, startJobIn, startServer } from './program.mjs';
import { address, at, events, follows, goTo, number, openSession, press, says, status, text, until } from './workbench.mjs';

/** Opens the first session of the list, and waits for its first events. */
async function openRunning(page) {
  await openSession(page);
  await until('its first events', () => events(page), (count) => count > 500);
}

/** Returns the length of the window in the address, or of all that is shown. */
const length = async (page) => {
  const window = (await address(page)).get('w');
  const [from, to] = (window ?? '0,0').split(',').map(Number);
  return to - from;
};

test('two runs of one program have different rows and accessible names', async (t) => {
  const server = await startServer(t);
  for (let i = 0; i < 2; i += 1) startJob(t, server.url, 'transformer', '--rate', '2000', '--steps', '4000');
  const page = await openPage(t);
  await until('two jobs run', () => at(page, 'session').count(), (count) => count === 2);
  const places = await at(page, 'session-place').allInnerTexts();
  for (const place of places) assert.match(place, /process \d+ · started \d\d:\d\d:\d\d UTC$/);
  assert.notEqual(places[0], places[1]);
  for (const name of ['session-open', 'session-pin', 'session-download']) {
    const labels = await at(page, name).evaluateAll((all) => all.map((one) => one.getAttribute('aria-label')));
    assert.equal(new Set(labels).size, 2, labels.join('; '));
    for (const label of labels) assert.match(label, /transformer.*, process \d+, started /);
  }
  await page.screenshot('running-rows');

  const phone = await openPage(t, { width: 390, height: 844, touch: true });
  await phone.tab.locator('.sparkline').first().waitFor();
  const line = await phone.tab.locator('.sparkline').first().boundingBox();
  assert.ok(line.width > 300 && line.height > 20, JSON.stringify(line));
  await phone.screenshot('running-rows-phone');
});

test('a search of a running job begins at what is on the screen', async (t) => {
  const server = await startServer(t);
  startJob(t, server.url, 'transformer', '--rate', '2000', '--steps', '4000');
  const page = await openPage(t);
  await openRunning(page);
  assert.ok(await follows(page));
  await press(page, '/');
  await page.tab.keyboard.type('size>1KiB');
  await at(page, 'found-row').first().waitFor();
  await page.screenshot('running-search-list');
  const before = (await status(page)).position;
  // Forward from the newest event there is nothing yet, so both directions begin with the newest match.
  await press(page, 'Enter');
  // A match is stood on, so the view no longer follows; it is one of the newest, not the first of the run.
  await until('it is not followed', () => follows(page), (is) => !is);
  const said = async () => /^([\d,]+) of ([\d,]+)/.exec(await text(page, 'search-result'));
  const [, number1] = await until('its number', said);
  assert.ok(number(number1) > 1);
  // Only now: until a match has its number, the cursor may be where the view stopped to follow.
  const first = await until('a match', () => status(page), (now) => now.position > 0 && now.position < now.events);
  assert.ok(first.position > before / 2, `${first.position} is near ${before}`);
  await press(page, 'Shift+Enter');
  const earlier = await until('the match before', () => status(page), (now) => now.position < first.position);
  await press(page, 'Enter');
  await until('the match after', () => status(page), (now) => now.position > earlier.position);
  const held = await events(page);
  await until('it grows on', () => events(page), (count) => count > held);
  // One Escape leaves the box and closes the list, another clears the search.
  await press(page, 'Escape');
  await until('the list is closed', () => at(page, 'search-list').count(), (count) => count === 0);
  await until('the box is left', () => page.tab.evaluate(() => document.activeElement?.id), (id) => id !== 'search-input');
  await press(page, 'Escape');
  await until('the search is cleared', () => at(page, 'search-input').inputValue(), (value) => value === '');
});

test('resuming keeps the zoom', async (t) => {
  const server = await startServer(t);
  startJob(t, server.url, 'transformer', '--rate', '2000', '--steps', '4000');
  const page = await openPage(t);
  await openRunning(page);
  await until('some seconds', () => events(page), (count) => count > 4000);
  await press(page, 'Space');
  await says(page, 'live-state', /paused/i);
  await press(page, 'Home');
  // The address follows each zoom a moment later.
  let zoomed = await length(page);
  for (let turn = 0; turn < 4; turn += 1) {
    const before = zoomed;
    await press(page, 'w');
    zoomed = await until('it is zoomed', () => length(page), (length) => length > 0 && length !== before);
  }
  await press(page, 'Space');
  await until('it is followed', () => follows(page));
  const bounds = await until('the newest events', () => status(page), (now) => now.position > now.events - 1000);
  assert.ok(bounds.events > 4000);
  // What is followed is not in the address: it is paused again to be read.
  await press(page, 'Space');
  const again = await until('its window', () => length(page), (length) => length > 0);
  assert.ok(Math.abs(again - zoomed) < zoomed / 50, `${again} is ${zoomed}`);
});

test('the text version of a job that is followed is of one moment', async (t) => {
  const server = await startServer(t);
  startJob(t, server.url, 'transformer', '--rate', '3000', '--steps', '4000');
  const page = await openPage(t);
  await openRunning(page);
  for (const name of ['timeline', 'events']) {
    await goTo(page, name);
    const pattern = name === 'events' ? /Events: row ([\d,]+), the last\./ : /Showing /;
    const said = await until(`the text of ${name}`, () => text(page, 'text-twin'), (said) => /^At event [\d,]+, the newest: /.test(said) && pattern.test(said));
    const [, moment] = /^At event ([\d,]+), the newest/.exec(said);
    const [, cursor] = /Cursor at event ([\d,]+):/.exec(said);
    assert.equal(moment, cursor, said);
    if (name === 'events') assert.equal(pattern.exec(said)[1], cursor, said);
  }
});

test('a call site keeps its line where there is little room', async (t) => {
  const server = await startServer(t);
  startJob(t, server.url, 'transformer', '--rate', '1000', '--steps', '4000');
  for (const [width, height] of [[1440, 900], [1024, 700], [820, 700]]) {
    const page = await openPage(t, { width, height });
    await openRunning(page);
    await goTo(page, 'events');
    const cut = () => page.tab.evaluate(() => [...document.querySelectorAll('.cell-site .site-line')].map((line) => {
      const [inner, cell] = [line.getBoundingClientRect(), line.closest('.cell-site').getBoundingClientRect()];
      return [line.textContent, line.scrollWidth <= line.clientWidth + 1 && inner.right <= cell.right + 1];
    }).filter(([text]) => text));
    const lines = await until('lines are shown', cut, (all) => all.length > 0);
    assert.deepEqual(lines.filter(([, is]) => !is), [], `${width}`);
    await page.screenshot(`running-events-${width}`);
  }
});

test('a job that dies of its memory says so, and one that is killed may come back', async (t) => {
  const server = await startServer(t);
  const leak = startJob(t, server.url, 'leak', '--capacity', '4GiB');
  const page = await openPage(t);
  await openRunning(page);
  await leak.ended.catch(() => {});
  await says(page, 'live-said', /^Job ended: out of memory$/);
  assert.equal(await at(page, 'live-pause').count(), 0);
  await page.screenshot('running-ran-out');

  const job = startJob(t, server.url, 'transformer', '--rate', '1000', '--steps', '4000');
  await page.open();
  // The other one is listed as well, and alone at first.
  await page.tab.locator('[data-testid="session"][data-state="live"]').waitFor();
  await openRunning(page);
  await at(page, 'live-pause').waitFor();
  job.child.kill('SIGKILL');
  await says(page, 'live-said', /^No data from the job for .*: it was killed, or its connection is down\. It continues here if it reconnects\.$/);
  await until('there is nothing to pause', () => at(page, 'live-pause').count(), (count) => count === 0);
  await page.screenshot('running-killed');
});

test('a page that watches a job comes back to it and its view', async (t) => {
  const server = await startServer(t);
  const env = { ...process.env, VRAMSCOPE_JOB: 'train.py-xyz' };
  const job = startJobIn(t, env, server.url, 'transformer', '--rate', '1000', '--steps', '4000', '--name', 'rank A');
  const page = await openPage(t, { address: `${server.url}#job=train.py-xyz` });
  await page.reach('ready');
  await goTo(page, 'flame');
  await until('the address follows', async () => page.tab.url(), (url) => url.includes('job=train.py-xyz') && url.includes('tab=flame'));
  const { session } = Object.fromEntries(await address(page));
  await page.tab.reload();
  await page.reach('ready');
  await until('its view is there', () => at(page, 'tab-flame').getAttribute('aria-selected'), (is) => is === 'true');
  assert.match(await page.tab.title(), /rank A/);
  if (session) assert.equal((await address(page)).get('session'), session);
  // Another process of the job still appears.
  startJobIn(t, env, server.url, 'transformer', '--rate', '1000', '--steps', '4000', '--name', 'rank B');
  await at(page, 'file-menu').click();
  await until('both are listed', async () => (await at(page, 'file-row').allInnerTexts()).join(' '), (rows) => rows.includes('rank A') && rows.includes('rank B'));
  job.child.kill('SIGINT');
});

test('a page that waits for a job says so, and shows it once it is there', async (t) => {
  const server = await startServer(t);
  const page = await openPage(t, { address: `${server.url}#job=train.py-none` });
  await says(page, 'notice', /^Waiting for “train\.py-none” to use the GPU/);
  await page.screenshot('running-no-session');
  startJobIn(t, { ...process.env, VRAMSCOPE_JOB: 'train.py-none' }, server.url, 'transformer', '--steps', '3', '--name', 'late');
  await until('it appears', () => page.tab.title(), (title) => title.startsWith('late'));
});

test('nothing moves beside a picture that follows a job', async (t) => {
  const server = await startServer(t);
  startJob(t, server.url, 'transformer', '--rate', '3000', '--steps', '4000');
  const page = await openPage(t);
  await openRunning(page);
  const rows = async () => String(await at(page, 'legend').locator('.legend-label').allInnerTexts());
  const below = () => page.tab.getByRole('heading', { name: 'At the cursor' }).evaluate((heading) => heading.getBoundingClientRect().top);
  const [first, place] = [await rows(), await until('the totals are there', () => below().catch(() => 0))];
  const seen = new Set([first]);
  // The rows are those of the newest event: of two positions one has others.
  await until('there are other rows', async () => {
    assert.equal(await below(), place);
    return seen.add(await rows()).size;
  }, (different) => different >= 3);
});
