// A person opens a trace that somebody shared by a link: at once, while it is still arriving; with a password; and too late.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { startServer } from './program.mjs';
import { share, sharedRecording, startFront, unshare } from './sharing.mjs';
import { at, goTo, press, says, status, text, until } from './workbench.mjs';

/** A run that fills more than one request, and whose last step runs out of memory. */
const RUN = ['sample'];

/** The requests for what follows the first preview. */
const further = ({ path, range }) => /\/trace$/.test(path) && range?.from > 0;

const isComplete = (page) => until('all of it is here', () => at(page, 'detail-bar').count(), (count) => count === 0);

test('the first picture comes before the rest of the trace', async (t) => {
  const server = await startServer(t);
  const link = await share(server.url, await sharedRecording(t, server.url, ...RUN));
  const front = await startFront(t, server.url);
  const release = front.hold(further);
  const page = await openPage(t, { address: `s-${link.token}` });
  await page.reach('ready');
  assert.ok(front.asked[0].sent < link.bytes / 2, `${front.asked[0].sent} of ${link.bytes} bytes`);
  assert.equal(await at(page, 'detail-bar').getAttribute('data-state'), 'loading');
  await says(page, 'detail-said', /totals are exact/);
  assert.match(await page.tab.title(), /^shared run/);
  // The picture itself, and not a sentence in its place.
  assert.equal(await page.tab.locator('.timeline .canvas-empty').count(), 0);
  const early = await until('the status line', () => status(page), (now) => now.position > 0);
  await page.screenshot('shared-early');

  // What only the whole trace can tell says so.
  await goTo(page, 'Segments');
  await says(page, 'detail-awaited', /needs the whole trace, which is still loading/);
  await page.screenshot('shared-early-segments');
  await goTo(page, 'Timeline');
  await press(page, 'w', 'w', 'w');
  assert.equal(await page.tab.locator('.timeline .canvas-empty').count(), 0);
  await page.screenshot('shared-early-zoomed');

  release();
  await isComplete(page);
  assert.deepEqual(await until('the status line', () => status(page), (now) => now.position > 0), early);
  await page.screenshot('shared-complete');

  // Every view works, and what was chosen before is still chosen.
  await goTo(page, 'Segments');
  await says(page, 'segments-note', /\d/);
  await goTo(page, 'Events');
  await at(page, 'event-row').first().waitFor();
  await goTo(page, 'Flame');
  await page.tab.locator('.flame canvas').first().waitFor();
  await goTo(page, 'Findings');
  await at(page, 'file-facts').waitFor();
});

test('a download that is cut goes on where it was', async (t) => {
  const server = await startServer(t);
  const link = await share(server.url, await sharedRecording(t, server.url, ...RUN));
  const front = await startFront(t, server.url);
  front.cut(further, 20_000);
  const page = await openPage(t, { address: `s-${link.token}` });
  await page.reach('ready');
  await isComplete(page);
  const ranges = front.asked.map(({ range }) => range.from);
  assert.ok(ranges.length >= 3 && ranges[2] >= ranges[1], ranges.join());
  page.complaints.length = 0;
  await goTo(page, 'Events');
  await at(page, 'event-row').first().waitFor();
});

test('a link that is deleted while it is being opened keeps its first picture', async (t) => {
  const server = await startServer(t);
  const link = await share(server.url, await sharedRecording(t, server.url, ...RUN));
  const front = await startFront(t, server.url);
  const release = front.hold(further);
  const page = await openPage(t, { address: `s-${link.token}` });
  await page.reach('ready');
  await unshare(server.url, link);
  release();
  await until('the download stopped', () => at(page, 'detail-bar').getAttribute('data-state'), (state) => state === 'stopped');
  assert.match(await text(page, 'detail-said'), /deleted.*What is shown is a preview/);
  assert.ok((await status(page)).position > 0);
  await page.screenshot('shared-stopped');
  // The browser reports the response with the status 410.
  page.complaints.length = 0;

  await page.tab.reload();
  await at(page, 'shared-failed').waitFor();
  assert.match(await page.alerts(), /This link is gone[^]*deleted[^]*Ask the person/);
  await page.screenshot('shared-deleted');
  page.complaints.length = 0;
});

test('a link with a password asks for it, and forgets it with the page', async (t) => {
  const server = await startServer(t);
  const link = await share(server.url, await sharedRecording(t, server.url, ...RUN), { password: 'open sesame' });
  const page = await openPage(t, { address: `s-${link.token}` });
  await at(page, 'password').waitFor();
  await page.screenshot('shared-password');
  await until('the field has the focus', () => page.tab.evaluate(() => document.activeElement?.id), (id) => id === 'password-input');
  await page.tab.keyboard.type('open barley');
  await page.tab.keyboard.press('Enter');
  await until('it is wrong', () => at(page, 'password').innerText(), (said) => /wrong/.test(said));
  await at(page, 'password-input').fill('open sesame');
  await page.tab.keyboard.press('Enter');
  await until('it opens', () => page.state(), (state) => state === 'ready');
  await isComplete(page);
  assert.doesNotMatch(page.tab.url(), /sesame/);
  const kept = await page.tab.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }));
  assert.doesNotMatch(kept, /sesame/);
  await page.tab.reload();
  await at(page, 'password').waitFor();
  // The browser reports the responses with the status 401.
  page.complaints.length = 0;
});

test('a link that expired, and one that never was, say what to do next', async (t) => {
  const server = await startServer(t);
  const link = await share(server.url, await sharedRecording(t, server.url, ...RUN), { expires: 1 });
  const trace = new URL(`api/v1/traces/${link.token}`, server.url);
  await until('it expired', async () => (await fetch(trace)).status, (status) => status === 410);
  const page = await openPage(t, { address: `s-${link.token}` });
  await at(page, 'shared-failed').waitFor();
  assert.match(await page.alerts(), /This link is gone[^]*expired[^]*Ask the person/);
  await page.screenshot('shared-expired');
  await page.open(`s-${'a'.repeat(39)}`);
  await at(page, 'shared-failed').waitFor();
  assert.match(await page.alerts(), /There is no such link[^]*address/);
  await page.screenshot('shared-unknown');
  // The page works as always.
  await at(page, 'shared-leave').click();
  await page.loadSample();
  page.complaints.length = 0;
});
