// A person sends a colleague the link to a view; the colleague drops the same file and sees the same.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { address, addressSays, at, goTo, movesFrom, openSample, press, says, standsAt, status, until } from './workbench.mjs';

/** Returns the sample as a file, as downloaded from the server. */
async function savedSample(page, name = 'sample.pickle') {
  const answer = await page.tab.request.get(new URL('sample.pickle', page.tab.url()).href);
  return { name, mimeType: 'application/octet-stream', buffer: await answer.body() };
}

test('a link restores tab, cursor, selection and filter once the same file is dropped', async (t) => {
  const page = await openPage(t);
  const opened = await openSample(page);
  await press(page, '/');
  await page.tab.keyboard.type('>1MiB');
  await press(page, 'Control+Enter');
  await addressSays(page, 'f', '>1MiB');
  await press(page, 'Escape', 'p');
  const { position } = await movesFrom(page, opened.position);
  await goTo(page, 'Events');
  await until('the row of the cursor', () => at(page, 'event-row').locator(`xpath=self::*[@aria-selected="true"]`).count(), (count) => count === 1);
  await page.tab.locator('[data-testid="event-row"][aria-selected="true"]').click();
  await at(page, 'detail-allocation').waitFor();
  const id = await at(page, 'detail-allocation').getAttribute('data-id');
  await addressSays(page, 'sel', `a${id}`);
  await addressSays(page, 'cur', String(position));
  await addressSays(page, 'tab', 'events');
  const link = new URL(page.tab.url()).hash;

  const other = await openPage(t, { address: link });
  assert.equal(await other.state(), 'empty');
  assert.match(await says(other, 'awaited', /Drop that file/), /sample\.pickle/);
  await other.screenshot('link-awaited');
  await other.load(await savedSample(other));
  assert.deepEqual(await standsAt(other, position), await status(page));
  assert.equal(await at(other, 'tab-events').getAttribute('aria-selected'), 'true');
  assert.equal(await at(other, 'detail-allocation').getAttribute('data-id'), id);
  assert.match((await at(other, 'filter-chip').allInnerTexts()).join(), />1MiB/);
  await until('the same link again', () => new URL(other.tab.url()).hash, (now) => now === link);
  await other.screenshot('link-restored');
});

test('a reload asks for the same file, and restores the view', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await press(page, 'w', 'w');
  await goTo(page, 'Segments');
  await addressSays(page, 'tab', 'segments');
  await until('the window is in the link', () => address(page), (now) => now.has('w'));
  const link = new URL(page.tab.url()).hash;
  await page.tab.reload();
  await says(page, 'awaited', /sample\.pickle/);
  await page.load(await savedSample(page));
  assert.equal(await at(page, 'tab-segments').getAttribute('aria-selected'), 'true');
  await until('the same link again', () => new URL(page.tab.url()).hash, (now) => now === link);
});

test('a link of a later version is reported, and the data is shown', async (t) => {
  const page = await openPage(t, { address: '#v=99&file=sample.pickle&tab=hologram&w=1,2&cur=3' });
  const notice = await says(page, 'notice', /newer version/);
  assert.match(notice, /sample\.pickle/);
  await page.load(await savedSample(page));
  const { position } = await movesFrom(page, -1);
  assert.ok(position > 3, 'nothing of it was taken over');
  await addressSays(page, 'v', '1');
});

test('a link with parts that make no sense never hides the data', async (t) => {
  const link = '#v=1&file=sample.pickle&dev=9&tab=nope&w=NaN,1&cur=99999999&sel=a99999999&f=%zz&color=mud';
  const page = await openPage(t, { address: link });
  await says(page, 'awaited', /sample\.pickle/);
  await page.load(await savedSample(page));
  const { position, events } = await movesFrom(page, -1);
  assert.equal(position, events, 'a cursor behind the end stands at the end');
  assert.equal(await at(page, 'tab-timeline').getAttribute('aria-selected'), 'true');
  await at(page, 'detail-none').waitFor();
});

test('a link to another file doesn’t touch the one that is dropped', async (t) => {
  const page = await openPage(t, { address: '#v=1&file=other.pickle&tab=events&cur=7' });
  await says(page, 'awaited', /other\.pickle/);
  await page.load(await savedSample(page));
  const { position } = await movesFrom(page, -1);
  assert.ok(position > 7);
  await addressSays(page, 'file', 'sample.pickle');
  await addressSays(page, 'tab', 'timeline');
});
