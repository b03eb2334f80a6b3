// A person comes back: recently opened files are listed, and after a reload no file has to be dropped again.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { address, addressSays, at, goTo, says, text, until } from './workbench.mjs';

const file = (name, as = name) =>
  ({ name: as, mimeType: 'application/octet-stream', buffer: readFileSync(new URL(`../fixtures/${name}`, import.meta.url)) });

/** Returns the names of the copies in the origin's private file system. */
const copies = (page) =>
  page.tab.evaluate(async () => {
    const names = [];
    try {
      const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('opened');
      for await (const name of folder.keys()) names.push(name);
    } catch {
      // Nothing was kept yet.
    }
    return names;
  });

/** Returns the entries that the browser keeps. */
const entries = (page) =>
  page.tab.evaluate(
    () =>
      new Promise((done) => {
        const request = indexedDB.open('vramscope', 1);
        request.onupgradeneeded = () => request.result.createObjectStore('files', { keyPath: 'id' });
        request.onsuccess = () => {
          const all = request.result.transaction('files').objectStore('files').getAll();
          all.onsuccess = () => {
            request.result.close();
            done(all.result.map(({ name, ready, hash, peak, copy, handle }) => ({ name, ready, hash, peak, copy, handle: handle?.kind })));
          };
        };
      }),
  );

/** Waits until a file is kept, with its identity. */
const kept = (page, name) =>
  until(`${name} is kept`, () => entries(page), (all) => all.some((entry) => entry.name === name && entry.ready && entry.hash));

/** Counts the dialogs that ask whether to leave the page, and accepts each. */
function countQuestions(page) {
  const asked = [];
  page.tab.on('dialog', (dialog) => {
    asked.push(dialog.type());
    void dialog.accept();
  });
  return asked;
}

const rows = (page) => at(page, 'recent-file').allInnerTexts();

test('a reload comes back to the same file and the same view', async (t) => {
  const page = await openPage(t);
  const asked = countQuestions(page);
  await page.load(file('ring.pickle', 'my job.pickle'));
  await goTo(page, 'Events');
  await addressSays(page, 'tab', 'events');
  await kept(page, 'my job.pickle');
  await until('the identity', async () => (await address(page)).get('hash'));
  const link = new URL(page.tab.url()).hash;
  await page.tab.reload();
  await page.reach('ready');
  assert.match(await page.tab.title(), /^my job\.pickle/);
  assert.equal(await at(page, 'tab-events').getAttribute('aria-selected'), 'true');
  await until('the same link again', () => new URL(page.tab.url()).hash, (now) => now === link);
  assert.deepEqual(asked, [], 'nothing is lost, so nothing is asked');
});

/** Opens a page, two files in turn, and the start page again. */
async function withTwoFiles(t) {
  const page = await openPage(t);
  await page.load(file('protocol4.pickle', 'first.pickle'));
  await kept(page, 'first.pickle');
  await page.load(file('ring.pickle', 'second.pickle'));
  await kept(page, 'second.pickle');
  await page.open();
  return page;
}

test('files opened lately are listed with what they are, opened on a click, and forgotten', async (t) => {
  const page = await withTwoFiles(t);
  await until('both are listed, the newest first', () => rows(page), (said) => said.length === 2 && said[0].includes('second.pickle'));
  const [, first] = await rows(page);
  assert.match(first, /first\.pickle[\s\S]*out of memory[\s\S]*peak [\d.]+ [KMG]iB reserved[\s\S]*( ago|just now)/);
  assert.match(await text(page, 'recent-note'), /copies, which never leave it: of files up to 512 MiB, at most 2\.00 GiB/);
  await page.screenshot('recent-list');
  await at(page, 'recent-open').filter({ hasText: 'first.pickle' }).click();
  await page.reach('ready');
  assert.match(await page.tab.title(), /^first\.pickle/);
  await page.open();
  await until('it is the newest now', () => rows(page), (said) => said[0]?.includes('first.pickle'));
  await page.tab.getByRole('button', { name: 'Forget first.pickle' }).click();
  await until('one is left', () => rows(page), (said) => said.length === 1 && said[0].includes('second.pickle'));
  assert.equal((await copies(page)).length, 1);
  await at(page, 'forget-all').click();
  await until('none is left', () => at(page, 'recent').count(), (count) => count === 0);
  await until('no copy either', () => copies(page), (names) => names.length === 0);
});

test('files opened lately are in the file menu and in the palette, and come before an empty list of jobs', async (t) => {
  const page = await withTwoFiles(t);
  await at(page, 'sessions').waitFor();
  await until('both are listed', () => rows(page), (said) => said.length === 2);
  assert.match((await rows(page))[0], /just now|\d+ s ago/);
  const tops = () => page.tab.evaluate(() => ['recent', 'drop-target', 'sessions'].map((name) => document.querySelector(`[data-testid="${name}"]`)?.getBoundingClientRect().top));
  await until('files first', tops, ([recent, drop, jobs]) => recent < drop && drop < jobs);
  await page.screenshot('recent-start');

  await at(page, 'recent-open').filter({ hasText: 'first.pickle' }).click();
  await page.reach('ready');
  await at(page, 'file-menu').click();
  const listed = () => at(page, 'menu-recent').allInnerTexts();
  await until('only the one that is not open', listed, (said) => said.length === 1 && said[0].includes('second.pickle'));
  assert.match(await text(page, 'menu-sessions'), /^Start page/);
  await page.screenshot('recent-menu');
  await at(page, 'menu-recent').click();
  await until('it is shown', () => page.tab.title(), (title) => title.startsWith('second.pickle'));
  await page.reach('ready');
  await at(page, 'file-menu').click();
  await page.tab.getByRole('button', { name: 'Close first.pickle' }).click();
  await page.tab.keyboard.press('Escape');
  await page.tab.keyboard.press('Control+k');
  await at(page, 'palette-input').fill('first');
  await until('it is found by its name', () => page.tab.locator('[data-command=recent]').allInnerTexts(), (said) => said[0]?.includes('first.pickle'));
  await page.tab.keyboard.press('Enter');
  await until('it is shown', () => page.tab.title(), (title) => title.startsWith('first.pickle'));
});

test('the same file opened twice is kept once', async (t) => {
  const page = await openPage(t);
  await page.load(file('protocol4.pickle'));
  await kept(page, 'protocol4.pickle');
  await page.open();
  await at(page, 'recent-open').click();
  await page.reach('ready');
  await kept(page, 'protocol4.pickle');
  assert.equal((await entries(page)).length, 1);
  assert.equal((await copies(page)).length, 1);
});

test('a file that is kept while another one is keeps its copy', async (t) => {
  const page = await openPage(t);
  const said = await page.tab.evaluate(async () => {
    const { name } = performance.getEntriesByType('resource').find(({ name }) => /\/recent-\w+\.js$/.test(name));
    const { keep, list, open } = await import(name);
    const keeps = (name, most) => keep(new File([`this is ${name}`], name, { lastModified: 1 }), undefined, 1e6, 1e9, most);
    const many = 40;
    for (let i = 0; i < many; i += 1) await keeps(`${i}.pickle`, 100);
    // Forgets all others, one after another; meanwhile, another file comes, as it does from another tab.
    const first = keeps('first.pickle', 1);
    while ((await list()).length >= many) await new Promise((done) => setTimeout(done));
    const second = await keeps('second.pickle', 100);
    await first;
    return (await open(second, false))?.text();
  });
  assert.equal(said, 'this is second.pickle');
});

test('a file with a handle is opened from where it is, and nothing is copied', async (t) => {
  const page = await openPage(t);
  // The browser's own dialog can't be used by a script; a file of the origin's private file system has such a handle too.
  const install = () => {
    globalThis.showOpenFilePicker = async () => {
      const folder = await navigator.storage.getDirectory();
      return [await folder.getFileHandle('on disk.pickle')];
    };
  };
  await page.tab.addInitScript(install);
  await page.open();
  const bytes = [...file('protocol4.pickle').buffer];
  await page.tab.evaluate(async (bytes) => {
    const handle = await (await navigator.storage.getDirectory()).getFileHandle('on disk.pickle', { create: true });
    const writable = await handle.createWritable();
    await writable.write(new Uint8Array(bytes));
    await writable.close();
  }, bytes);
  await at(page, 'open-file').click();
  await page.reach('ready');
  const [entry] = await kept(page, 'on disk.pickle');
  assert.equal(entry.handle, 'file');
  assert.deepEqual(await copies(page), []);
  await goTo(page, 'Segments');
  await addressSays(page, 'tab', 'segments');
  await until('the identity', async () => (await address(page)).get('hash'));
  await page.tab.reload();
  await page.reach('ready');
  assert.equal(await at(page, 'tab-segments').getAttribute('aria-selected'), 'true');
  await page.open();
  await says(page, 'recent-note', /opened from their place on your disk\. Nothing is copied\./);

  // If the browser requires permission, only a button asks for it.
  const link = await page.tab.evaluate(async () => {
    const request = indexedDB.open('vramscope', 1);
    const database = await new Promise((done) => { request.onsuccess = () => done(request.result); });
    const all = database.transaction('files').objectStore('files').getAll();
    const [entry] = await new Promise((done) => { all.onsuccess = () => done(all.result); });
    database.close();
    return `#v=1&file=${encodeURIComponent(entry.name)}&hash=${entry.hash}&dev=0&tab=flame`;
  });
  await page.tab.addInitScript(() => {
    // A blank page has no such files.
    if (!globalThis.FileSystemFileHandle) return;
    let may = 'prompt';
    FileSystemFileHandle.prototype.queryPermission = async () => may;
    // The journey answers in place of a person.
    FileSystemFileHandle.prototype.requestPermission = () =>
      new Promise((done) => {
        globalThis.answerPermission = (answer) => {
          may = answer === 'granted' ? answer : may;
          done(answer);
        };
      });
  });
  const answer = (as) => page.tab.evaluate((as) => globalThis.answerPermission(as), as);
  await page.tab.goto('about:blank');
  await page.open(link);
  await at(page, 'open-again').waitFor();
  assert.equal(await page.state(), 'empty');
  await page.screenshot('recent-open-again');
  const asked = /^Waiting for the browser's permission to read “on disk\.pickle”/;
  await at(page, 'open-again').click();
  await says(page, 'notice', asked);
  await page.screenshot('recent-waiting');
  // Cancelled: whatever the browser is answered then, nothing is opened.
  await at(page, 'notice-cancel').click();
  await until('nothing is waited for', () => at(page, 'notice').count(), (count) => count === 0);
  await answer('denied');
  await at(page, 'open-again').click();
  await says(page, 'notice', asked);
  await answer('denied');
  await says(page, 'notice', /was not allowed to read “on disk\.pickle”.*drop the file on this page/);
  assert.equal(await page.state(), 'empty');
  await at(page, 'open-again').click();
  await says(page, 'notice', asked);
  await answer('granted');
  await page.reach('ready');
  assert.equal(await at(page, 'tab-flame').getAttribute('aria-selected'), 'true');
});

test('a browser without such storage shows nothing of it, and asks before files are lost', async (t) => {
  const page = await openPage(t);
  await page.tab.addInitScript(() => {
    StorageManager.prototype.getDirectory = () => Promise.reject(new DOMException('no', 'SecurityError'));
    delete globalThis.showOpenFilePicker;
  });
  await page.open();
  const asked = countQuestions(page);
  await page.load(file('protocol4.pickle'));
  // Browsers let a page ask only after a person has used it.
  await goTo(page, 'Events');
  await addressSays(page, 'tab', 'events');
  await page.tab.reload();
  await says(page, 'awaited', /protocol4\.pickle/);
  assert.equal(await at(page, 'recent').count(), 0);
  assert.deepEqual(asked, ['beforeunload']);
  await page.load(file('protocol4.pickle'));
  assert.equal(await at(page, 'tab-events').getAttribute('aria-selected'), 'true');
  await at(page, 'file-menu').click();
  await page.tab.getByRole('button', { name: 'Close protocol4.pickle' }).click();
  await at(page, 'start').waitFor();
  await page.tab.reload();
  await at(page, 'start').waitFor();
  assert.deepEqual(asked, ['beforeunload'], 'nothing is open, so nothing is asked');
});

test('what was set is there again on the next visit, and a link wins over it', async (t) => {
  const page = await openPage(t, { theme: 'light' });
  await page.load(file('ring.pickle'));
  await goTo(page, 'Flame');
  await page.tab.keyboard.press('x');
  await addressSays(page, 'x', 'time');
  await page.tab.keyboard.press('h');
  await page.tab.keyboard.press('t');
  await page.tab.keyboard.press('t');
  await until('dark', () => page.tab.evaluate(() => document.documentElement.dataset.theme), (theme) => theme === 'dark');
  const width = () => at(page, 'details-pane').evaluate((pane) => Math.round(pane.getBoundingClientRect().width));
  await at(page, 'details-splitter').focus();
  for (let i = 0; i < 4; i += 1) await page.tab.keyboard.press('ArrowLeft');
  const wide = await until('it is wider', width, (now) => now > 380);
  await page.open();
  assert.equal(await page.tab.evaluate(() => document.documentElement.dataset.theme), 'dark', 'before anything is drawn');
  await page.load(file('ring.pickle'));
  assert.equal(await at(page, 'tab-flame').getAttribute('aria-selected'), 'true');
  await addressSays(page, 'x', 'time');
  assert.equal(await until('the width', width, (now) => now === wide), wide);
  await page.screenshot('recent-preferences');
  await page.tab.goto('about:blank');
  await page.open('#v=1&tab=events&x=event');
  await page.load(file('ring.pickle'));
  assert.equal(await at(page, 'tab-events').getAttribute('aria-selected'), 'true');
  // Bad content is ignored.
  await page.tab.evaluate(() => localStorage.setItem('vramscope-preferences', 'p=1&theme=&width=x&tab=%'));
  await page.tab.goto('about:blank');
  await page.open();
  await page.load(file('ring.pickle'));
  assert.equal(await at(page, 'tab-timeline').getAttribute('aria-selected'), 'true');
});
