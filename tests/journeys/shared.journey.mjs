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
  await press(page, 'u');
  await says(page, 'share-loading', /^The trace is still loading: \d+ %\./);
  await page.screenshot('shared-early-share');
  await press(page, 'Escape');
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

test('the view of a link is there before the rest of the trace, and a search waits beside it', async (t) => {
  const server = await startServer(t);
  const link = await share(server.url, await sharedRecording(t, server.url, ...RUN));
  const front = await startFront(t, server.url);
  const release = front.hold(further);
  for (const axis of ['event', 'time']) {
    const page = await openPage(t, { address: `s-${link.token}#v=1&x=${axis}&cur=30001&sel=a4710` });
    await page.reach('ready');
    // What is not exact says so.
    await says(page, 'near-requested', /^requested (at most )?[\d.]+ [KMG]iB$/);
    await says(page, 'near-reserved', /^reserved at most [\d.]+ [KMG]iB$/);
    assert.match(await text(page, 'status-preview'), /event 30,001 of/);
    await says(page, 'detail-unknown', /Allocation 4,710[^]*still loading/);
    await page.screenshot(`shared-early-link-${axis}`);
    if (axis === 'time') continue;

    // The column of the picture that a click hits has exact totals.
    const plot = await at(page, 'timeline-canvas').boundingBox();
    await page.tab.mouse.click(plot.x + plot.width / 2, plot.y + plot.height - 60);
    await says(page, 'near-requested', /^requested [\d.]+ [KMG]iB$/);

    await at(page, 'search-input').fill('>1MiB');
    await says(page, 'search-result', /needs the whole trace, which is still loading/);
    assert.equal(await page.tab.locator('.timeline .canvas-empty').count(), 0);
    await page.screenshot('shared-early-search');
    release();
    await isComplete(page);
    await says(page, 'search-result', /\d+ · /);
    await until('the exact totals', () => status(page), (now) => now.position > 0);
    front.hold(further);
  }
});

test('on a phone the note on the download stands clear of the tabs', async (t) => {
  const server = await startServer(t);
  const link = await share(server.url, await sharedRecording(t, server.url, ...RUN));
  const front = await startFront(t, server.url);
  front.hold(further);
  const page = await openPage(t, { address: `s-${link.token}`, width: 390, height: 844 });
  await page.reach('ready');
  const [note, tabs] = [await at(page, 'detail-bar').boundingBox(), await page.tab.getByRole('tablist').boundingBox()];
  assert.ok(note.y >= tabs.y + tabs.height && note.x + note.width <= 390, JSON.stringify({ note, tabs }));
  await page.screenshot('shared-early-phone');
});

test('the address of a shared trace goes with it when it is closed', async (t) => {
  const server = await startServer(t);
  const link = await share(server.url, await sharedRecording(t, server.url, ...RUN));
  const page = await openPage(t, { address: `s-${link.token}` });
  await page.reach('ready');
  await isComplete(page);
  await at(page, 'file-menu').click();
  await at(page, 'file-close').click();
  const there = () => page.tab.evaluate(() => location.pathname + location.hash);
  await until('the address names nothing', there, (address) => address === '/');
  await page.tab.reload();
  await page.tab.locator('input[type=file]').first().waitFor({ state: 'attached' });
  assert.equal(await page.state(), 'empty');
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
  await says(page, 'password-error', /wrong/);
  assert.equal(await at(page, 'password-error').getAttribute('role'), 'alert');
  await page.screenshot('shared-password-wrong');
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

test('passwords that are tried too fast have to wait, in the same form', async (t) => {
  const server = await startServer(t);
  const link = await share(server.url, await sharedRecording(t, server.url, ...RUN), { password: 'open sesame' });
  const page = await openPage(t, { address: `s-${link.token}` });
  await at(page, 'password').waitFor();
  const button = at(page, 'password-give');
  for (let tried = 0; tried < 30 && (await button.isEnabled()); tried += 1) {
    const answered = page.tab.waitForResponse(/\/open$/);
    await at(page, 'password-input').fill(`open barley ${tried}`);
    await page.tab.keyboard.press('Enter');
    await (await answered).finished();
    await says(page, 'password-error', /wrong|Too many/);
  }
  await says(page, 'password-error', /^Too many passwords were tried\. Wait \d+ seconds?, then try again\.$/);
  const seconds = async () => Number(/^Wait (\d+) s$/.exec(await button.innerText())?.[1] ?? 0);
  const first = await seconds();
  assert.ok(first > 0);
  assert.equal(await page.tab.evaluate(() => document.activeElement?.id), 'password-input');
  await page.screenshot('shared-password-wait');
  await until('it counts down', seconds, (left) => left < first);
  // The browser reports the responses with the statuses 401 and 429.
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
  await page.open(`s-${'a'.repeat(40)}`);
  await says(page, 'shared-failed', /This link is not right[^]*something was added[^]*Copy the whole link/);
  // The page works as always.
  await at(page, 'shared-leave').click();
  await page.loadSample();
  page.complaints.length = 0;
});
