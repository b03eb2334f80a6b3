// A person watches a job while it runs: from the list of jobs to the downloaded recording.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { holdWorkers, messages } from './held.mjs';
import { openPage } from './page.mjs';
import { startJob, startServer } from './program.mjs';
import { address, addressSays, at, events, follows, goTo, movesFrom, number, openSession, pointUntil, press, says, status, text, until } from './workbench.mjs';

test('a job is watched from its first event to its end, and its recording can be downloaded', async (t) => {
  const server = await startServer(t);
  const page = await openPage(t);
  await at(page, 'sessions').waitFor();
  await page.screenshot('live-no-session');

  const job = startJob(t, server.url, 'transformer', '--rate', '3000', '--steps', '4000');
  const row = at(page, 'session');
  await row.first().waitFor();
  assert.equal(await row.getAttribute('data-state'), 'live');
  await says(page, 'session-rate', /[1-9][\d,]* events\/s/);
  await row.locator('.sparkline').waitFor();
  await page.screenshot('live-sessions');
  await openSession(page);

  // It grows, and the cursor stays at its newest event.
  const first = await until('the first events', () => events(page), (count) => count > 100);
  await until('it grows', () => events(page), (count) => count > first + 2000);
  await until('the cursor is at the newest event', () => status(page), (now) => now.position > now.events - 1000);
  assert.match(await text(page, 'live-said'), /s behind/);
  assert.ok((await address(page)).get('session'));
  assert.equal((await address(page)).get('cur'), null, 'what is followed is followed by the link, too');
  await page.screenshot('live-following');
  for (const name of ['segments', 'flame', 'events', 'findings', 'timeline']) {
    await goTo(page, name);
    await page.tab.waitForTimeout(400);
    assert.ok(await follows(page), name);
    await page.screenshot(`live-${name}`);
  }

  // While paused, the picture stands still, and the bar counts the new events.
  await press(page, 'Space');
  await says(page, 'live-state', /paused/i);
  const held = await events(page);
  const said = () => at(page, 'details').innerText();
  // The last answers about the held moment are still on their way.
  const details = await until('the details rest', async () => {
    const first = await said();
    await page.tab.waitForTimeout(500);
    return (await said()) === first ? first : '';
  }, Boolean);
  await until('more came since', async () => number(/[\d,]+/.exec(await text(page, 'live-since'))?.[0] ?? '0'), (count) => count > 1000);
  assert.equal(await events(page), held);
  assert.equal(await said(), details);
  // A question that is asked only now is also answered for the held moment.
  await goTo(page, 'events');
  await says(page, 'events-count', new RegExp(held.toLocaleString('en-US')));
  await goTo(page, 'timeline');
  await page.screenshot('live-paused');
  await press(page, 'Space');
  await until('all of it is there', () => events(page), (count) => count > held + 1000);

  // Scrolled back, the view stays in place while the session grows.
  await press(page, 'w', 'w', 'w', 'Shift+a');
  await until('it is not followed', () => follows(page), (is) => !is);
  await pointUntil(page, 'timeline-canvas', [[0.4, 0.9], [0.5, 0.8], [0.6, 0.9], [0.3, 0.95], [0.7, 0.95]], /[KMG]iB/);
  // What was followed last may still be on its way.
  const stands = async () => {
    const { position } = await status(page);
    await page.tab.waitForTimeout(300);
    return (await status(page)).position === position ? position : null;
  };
  const before = await until('the cursor stands', stands, (position) => position !== null);
  await page.tab.mouse.down();
  await page.tab.mouse.up();
  await at(page, 'details').waitFor();
  const clicked = (await movesFrom(page, before)).position;
  const grown = await events(page);
  await until('it grows on', () => events(page), (count) => count > grown + 1000);
  assert.equal((await status(page)).position, clicked);
  await page.screenshot('live-scrolled-back');

  // Back to the newest events.
  await at(page, 'live-now').click();
  await until('it is followed', () => follows(page));

  job.child.kill('SIGINT');
  const { session, events_sent: sent, events_lost: lost } = await job.ended;
  await says(page, 'live-said', /Job ended/);
  assert.equal(lost, 0);
  await until('every event came', () => events(page), (count) => count === sent);
  await page.screenshot('live-ended');

  // The server's download is the same.
  await press(page, 'Control+k');
  await at(page, 'palette-input').fill('start page');
  await press(page, 'Enter');
  await row.first().waitFor();
  await until('it has ended', () => row.getAttribute('data-state'), (state) => state === 'ended');
  assert.equal(await row.getAttribute('data-session'), session);
  const [download] = await Promise.all([page.tab.waitForEvent('download'), at(page, 'session-download').click()]);
  await page.load(await download.path());
  await until('the file holds every event', () => events(page), (count) => count === sent);
});

test('a link opens its session, and a connection that is lost comes back', async (t) => {
  const server = await startServer(t);
  const page = await openPage(t);
  const job = startJob(t, server.url, 'transformer', '--rate', '2000', '--steps', '4000');
  await openSession(page);
  const session = (await until('an address', () => address(page), (found) => found.get('session'))).get('session');
  await page.open(`#session=${session}`);
  await page.tab.reload();
  await page.reach('ready');
  // Pasted while the list of jobs is shown, the link opens its session at its view.
  await press(page, 'Control+k');
  await at(page, 'palette-input').fill('start page');
  await press(page, 'Enter');
  await at(page, 'session').first().waitFor();
  await page.tab.evaluate((hash) => { window.location.hash = hash; }, `#v=1&session=${session}&tab=events&cur=7`);
  await until('the session is there again', () => status(page), (now) => now.position === 7);
  assert.equal(await at(page, 'tab-events').getAttribute('aria-selected'), 'true');
  assert.ok(!(await follows(page)));
  await at(page, 'live-now').click();
  await addressSays(page, 'session', session);
  await until('it grows', () => events(page), (count) => count > 1000);

  await server.stop();
  await says(page, 'live-said', /Connection lost; retrying in \d+ s/);
  await page.screenshot('live-cut-off');
  const held = await events(page);
  await server.start();
  await says(page, 'live-said', /s behind/);
  await until('it grows on', () => events(page), (count) => count > held + 1000);
  job.child.kill('SIGINT');
  const { events_sent: sent } = await job.ended;
  await until('every event came, once', () => events(page), (count) => count === sent);
  // The browser logs each failed attempt.
  page.complaints = page.complaints.filter((complaint) => !/ERR_CONNECTION_REFUSED|WebSocket|failed:/.test(complaint));
});

test('a command opens another job, and Back returns to the first', async (t) => {
  const server = await startServer(t);
  const page = await openPage(t);
  const run = () => startJob(t, server.url, 'transformer', '--rate', '1000', '--steps', '4000');
  run();
  await openSession(page);
  const first = (await until('an address', () => address(page), (found) => found.get('session'))).get('session');
  run();
  await press(page, 'Control+k');
  await at(page, 'palette-input').fill('another job');
  const found = () => at(page, 'palette-row').first().innerText({ timeout: 1000 }).catch(() => '');
  await until('the command is found', found, (row) => row.includes('Watch another job'));
  await press(page, 'Enter');
  const rows = at(page, 'jobs').getByTestId('session');
  await until('two jobs run', () => rows.count(), (count) => count === 2);
  await page.screenshot('live-jobs');
  const ids = await rows.evaluateAll((found) => found.map((row) => row.dataset.session));
  const other = ids.find((id) => id !== first);
  await rows.nth(ids.indexOf(other)).getByTestId('session-open').click();
  await addressSays(page, 'session', other);
  await page.reach('ready');
  assert.equal(await at(page, 'jobs').count(), 0, 'the list gave way');

  await page.tab.goBack();
  await addressSays(page, 'session', first);
  await until('its events are there', () => events(page), (count) => count > 0);
  await page.tab.goForward();
  await addressSays(page, 'session', other);
  // One more step back is the list of jobs.
  await page.tab.goBack();
  await page.tab.goBack();
  await at(page, 'start').waitFor();
  await at(page, 'session').first().waitFor();
});

test('the demo is one click away', async (t) => {
  await startServer(t);
  for (const theme of ['light', 'dark']) {
    const page = await openPage(t, { theme, width: 1024, height: 700 });
    await page.tab.getByRole('button', { name: 'Watch live demo' }).click();
    await page.reach('ready');
    const first = await until('its first events', () => events(page), (count) => count > 0);
    await until('it grows', () => events(page), (count) => count > first);
    await page.screenshot(`live-demo-${theme}`);
  }
});

test('a worker whose job has ended says nothing more', async (t) => {
  const server = await startServer(t);
  await startJob(t, server.url, 'transformer', '--steps', '3').ended;
  const page = await openPage(t);
  await holdWorkers(page);
  await openSession(page);
  await says(page, 'live-said', /Job ended/);
  let [count, since] = [0, performance.now()];
  await until('three reports would have come', async () => {
    const now = await messages(page);
    if (now !== count) [count, since] = [now, performance.now()];
    return performance.now() - since;
  }, (quiet) => quiet > 1_600);
});
