// A person opens many files one after another: the page keeps the memory of two, and every file is a click away.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { startJob, startServer } from './program.mjs';
import { addressSays, at, goTo, press, status, until } from './workbench.mjs';

const file = (name, as = name) =>
  ({ name: as, mimeType: 'application/octet-stream', buffer: readFileSync(new URL(`../fixtures/${name}`, import.meta.url)) });

/** Opens a file after others, and waits for its picture. */
async function add(page, name, from = 'protocol4.pickle') {
  await page.drop(file(from, name));
  await until(`${name} is the file`, () => page.tab.title(), (title) => title.startsWith(name));
  await page.reach('ready');
}

/** Returns the rows of the menu of files, which is left closed. */
async function rows(page) {
  await at(page, 'file-menu').click();
  const found = await at(page, 'file-row').allInnerTexts();
  await press(page, 'Escape');
  return found.map((row) => row.replaceAll('\n', ' '));
}

test('files that were not looked at lately are put away, and come back on a click as they were left', async (t) => {
  const page = await openPage(t);
  await add(page, 'first.pickle', 'ring.pickle');
  await goTo(page, 'Events');
  await press(page, 'Home', '.', '.', '.');
  await until('the third event', () => status(page), (now) => now.position === 3);
  for (let i = 2; i <= 8; i += 1) await add(page, `${i}.pickle`);
  const said = await until('two are ready', () => rows(page), (found) => found.filter((row) => /page’s memory/.test(row)).length === 2);
  assert.equal(said.filter((row) => /not loaded/.test(row)).length, 6, said.join('\n'));
  assert.equal(page.tab.workers().filter((worker) => /worker/.test(worker.url())).length, 2, 'workers have ended');
  await at(page, 'file-menu').click();
  await page.screenshot('putaway-menu');
  await at(page, 'file-row').filter({ hasText: 'first.pickle' }).click();
  await until('it is shown', () => page.tab.title(), (title) => title.startsWith('first.pickle'));
  await page.reach('ready');
  assert.equal(await at(page, 'tab-events').getAttribute('aria-selected'), 'true');
  await until('where it was left', () => status(page), (now) => now.position === 3);
  assert.equal((await until('two again', () => rows(page), (found) => found.filter((row) => /page’s memory/.test(row)).length === 2)).length, 8);
});

test('Back leads to a file that was put away', async (t) => {
  const page = await openPage(t);
  await add(page, '1.pickle', 'ring.pickle');
  await goTo(page, 'Flame');
  await addressSays(page, 'tab', 'flame');
  for (let i = 2; i <= 4; i += 1) await add(page, `${i}.pickle`);
  await until('it is put away', () => rows(page), (found) => /not loaded/.test(found[0]));
  for (const name of ['3.pickle', '2.pickle', '1.pickle']) {
    await page.tab.evaluate(() => history.back());
    await until(`${name} is the file`, () => page.tab.title(), (title) => title.startsWith(name));
  }
  await page.reach('ready');
  assert.equal(await at(page, 'tab-flame').getAttribute('aria-selected'), 'true');
});

test('all files are closed at once, and a session is never put away', async (t) => {
  const server = await startServer(t);
  const page = await openPage(t);
  startJob(t, server.url, 'transformer', '--rate', '500', '--steps', '4000');
  await at(page, 'session-open').first().click();
  await page.reach('ready');
  for (let i = 1; i <= 4; i += 1) await add(page, `${i}.pickle`);
  const said = await until('two are put away', () => rows(page), (found) => found.filter((row) => /not loaded/.test(row)).length === 2);
  assert.match(said[0], /live/, 'the session goes on');
  await at(page, 'file-menu').click();
  await at(page, 'menu-close-all').click();
  await at(page, 'start').waitFor();
  assert.equal(await at(page, 'file-menu').count(), 0);
});
