// A person sends a colleague the link to a view; the colleague drops the same file and sees the same.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { address, addressSays, answered, at, goTo, movesFrom, openSample, press, savedSample, says, standsAt, status, until } from './workbench.mjs';

/** Returns a file of the tests under another name. */
const fixture = (file, name) =>
  ({ name, mimeType: 'application/octet-stream', buffer: readFileSync(new URL(`../fixtures/${file}`, import.meta.url)) });

/** Waits until the address bar has the file's identity, and returns it. */
const identity = (page) =>
  until('the hash in the address bar', async () => (await address(page)).get('hash'), (hash) => /^[0-9a-f]{32}$/.test(hash ?? ''));

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
  // The rows must not change between the press and the release.
  await answered(page);
  await page.tab.locator('[data-testid="event-row"][aria-selected="true"]').click();
  await at(page, 'detail-allocation').waitFor();
  const id = await at(page, 'detail-allocation').getAttribute('data-id');
  await addressSays(page, 'sel', `a${id}`);
  await addressSays(page, 'cur', String(position));
  await addressSays(page, 'tab', 'events');
  await identity(page);
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

test('a browser that does not have the file asks for it, and restores the view', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await press(page, 'w', 'w');
  await goTo(page, 'Segments');
  await addressSays(page, 'tab', 'segments');
  await until('the window is in the link', () => address(page), (now) => now.has('w'));
  await identity(page);
  const link = new URL(page.tab.url()).hash;
  const other = await openPage(t, { address: link });
  await says(other, 'awaited', /sample\.pickle/);
  await other.load(await savedSample(other));
  assert.equal(await at(other, 'tab-segments').getAttribute('aria-selected'), 'true');
  await until('the same link again', () => new URL(other.tab.url()).hash, (now) => now === link);
});

test('the same file under another name is recognized', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await goTo(page, 'Flame');
  await at(page, 'flame-as-table').click();
  await addressSays(page, 'table', '1');
  const hash = await identity(page);
  const other = await openPage(t, { address: new URL(page.tab.url()).hash });
  await other.load(await savedSample(other, 'renamed.pickle'));
  assert.equal(await at(other, 'tab-flame').getAttribute('aria-selected'), 'true');
  assert.equal(await at(other, 'flame-as-table').getAttribute('aria-pressed'), 'true');
  assert.equal(await at(other, 'notice').count(), 0);
  await addressSays(other, 'file', 'renamed.pickle');
  assert.equal(await identity(other), hash);
});

test('a link is not applied to another file of the same name unless the person wants it', async (t) => {
  const page = await openPage(t);
  const { position } = await openSample(page);
  await goTo(page, 'Events');
  await addressSays(page, 'tab', 'events');
  await identity(page);
  const link = new URL(page.tab.url()).hash;

  const other = await openPage(t, { address: link, theme: 'dark' });
  await other.load(fixture('two_devices.pickle', 'sample.pickle'));
  const notice = await says(other, 'notice', /content differs/);
  assert.match(notice, /named “sample\.pickle” like the one of the link.*The link's view was not applied/);
  assert.equal(await at(other, 'tab-timeline').getAttribute('aria-selected'), 'true');
  const opened = await status(other);
  assert.ok(opened.position <= opened.events && opened.events < position, 'the file is another one');
  await other.screenshot('link-differs');
  await at(other, 'notice-apply').press('Enter');
  await until('the tab of the link', () => at(other, 'tab-events').getAttribute('aria-selected'), (is) => is === 'true');
  await says(other, 'notice', /Not restored: .*the cursor/);
  // The address follows when the view has come to rest.
  const first = await identity(page);
  await until('the address of this file', () => identity(other), (hash) => hash !== first);
});

test('a link without an identity opens, and says that it knows the name only', async (t) => {
  const page = await openPage(t, { address: '#v=1&file=sample.pickle&dev=0&tab=events&x=event&cur=4321&f=%3E1MiB' });
  await page.load(await savedSample(page));
  await standsAt(page, 4321);
  assert.equal(await at(page, 'tab-events').getAttribute('aria-selected'), 'true');
  assert.match((await at(page, 'filter-chip').allInnerTexts()).join(), />1MiB/);
  await says(page, 'notice', /names only the file/);
  await page.screenshot('link-name-only');
  await addressSays(page, 'v', '1');
  await identity(page);
});

test('of a link of a later version everything is restored that is understood, and the rest is named', async (t) => {
  const page = await openPage(t, { address: '#v=99&file=sample.pickle&tab=hologram&x=event&cur=4321&fog=1' });
  await says(page, 'awaited', /sample\.pickle/);
  await page.load(await savedSample(page));
  await standsAt(page, 4321);
  await says(page, 'notice', /newer version of Vramscope\. Not restored: the tab, a part that this version doesn't know/);
  assert.equal(await at(page, 'tab-timeline').getAttribute('aria-selected'), 'true');
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
  await says(page, 'notice', /could not be read: a filter, the tab, the visible part, the colours, the device/);
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
