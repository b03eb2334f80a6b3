// Another site shows a trace in Vramscope: in a frame, or in a window that it opens.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openPage } from './page.mjs';
import { emptyFolder, startServer } from './program.mjs';
import { startSite } from './site.mjs';
import { until } from './workbench.mjs';

const trace = readFileSync(fileURLToPath(new URL('../fixtures/two_devices.json', import.meta.url)));

/** The other site: a page that frames Vramscope or opens it, and one that only knows the first. */
const SITE = {
  '/': {
    headers: { 'Content-Type': 'text/html' },
    body: `<!doctype html><title>CI</title><style>iframe { width: 1200px; height: 800px }</style><script>
      globalThis.heard = [];
      globalThis.viewer = null;
      addEventListener('message', (event) => heard.push({ data: event.data, origin: event.origin }));
      // Asks until there is an answer, as a site has to: it does not know when the page listens.
      globalThis.pinged = (target) => new Promise((done) => {
        viewer = target;
        const timer = setInterval(() => {
          if (heard.some(({ data }) => data.type === 'vramscope-pong')) { clearInterval(timer); done(true); }
          else target.postMessage({ type: 'vramscope-ping' }, '*');
        }, 50);
      });
      globalThis.framed = (url) => new Promise((done) => {
        const frame = document.createElement('iframe');
        frame.src = url;
        frame.onload = () => done();
        document.body.append(frame);
        viewer = frame.contentWindow;
      });
      globalThis.send = (message) => viewer.postMessage(message, '*');
      globalThis.sendTrace = (bytes, name) => send({ type: 'vramscope-open', name, buffer: new Uint8Array(bytes).buffer });
    </script>`,
  },
  '/stranger': { headers: { 'Content-Type': 'text/html' }, body: '<!doctype html><title>Stranger</title>' },
};

/** Starts the site and a server that lets it frame the page, and opens the site. */
async function openSite(t, { isAllowed = true } = {}) {
  const site = await startSite(t, SITE);
  const server = await startServer(t, emptyFolder(t), isAllowed ? ['--embed-origin', site.origin] : []);
  const page = await openPage(t);
  // What is shown is another site now.
  page.complaints.length = 0;
  await page.tab.goto(`${site.origin}/`);
  return { page, tab: page.tab, site, url: `${server.url}?embed` };
}

const heard = (tab) => tab.evaluate(() => globalThis.heard.map(({ data }) => data.type));
const hears = (tab, ...types) => until(`the site hears ${types}`, () => heard(tab), (found) => found.filter((type) => type !== 'vramscope-pong').join() === types.join());
const sendTrace = (tab, name = 'run 7.json') => tab.evaluate(([bytes, name]) => globalThis.sendTrace(bytes, name), [[...trace], name]);
const forget = (page) => { page.complaints = page.complaints.filter((said) => !/^another server: /.test(said)); };

test('by default, no site frames the page', async (t) => {
  const { page, tab, url } = await openSite(t, { isAllowed: false });
  for (const address of [url, url.replace('?embed', '')]) {
    await tab.evaluate((url) => globalThis.framed(url), address);
    await until('the frame is refused', () => tab.frames().at(-1).url(), (shown) => shown.startsWith('chrome-error:'));
  }
  page.complaints.length = 0;
});

test('an allowed site frames the page that is meant for it, and no other', async (t) => {
  const { page, tab, url } = await openSite(t);
  await tab.evaluate((url) => globalThis.framed(url), url.replace('?embed', ''));
  await until('the frame is refused', () => tab.frames().at(-1).url(), (shown) => shown.startsWith('chrome-error:'));
  await tab.evaluate((url) => globalThis.framed(url), url);
  const frame = tab.frameLocator('iframe').last();
  await frame.getByTestId('awaits-message').waitFor();
  for (const absent of ['sessions', 'open-sample', 'watch-demo']) assert.equal(await frame.getByTestId(absent).count(), 0, absent);
  page.complaints.length = 0;
});

test('a trace from a site is shown if the person agrees, and the site is named', async (t) => {
  const { page, tab, site, url } = await openSite(t);
  await tab.evaluate((url) => globalThis.framed(url), url);
  await tab.evaluate(() => globalThis.pinged(globalThis.viewer));
  await sendTrace(tab);
  const frame = tab.frameLocator('iframe');
  await frame.getByTestId('offer').waitFor();
  assert.equal(await frame.getByTestId('offer-origin').innerText(), site.origin);
  assert.match(await frame.getByTestId('offer').innerText(), /wants to show “run 7\.json” \(.+\) here/);
  await page.screenshot('embedding-asks');
  assert.deepEqual((await heard(tab)).filter((type) => type !== 'vramscope-pong'), []);
  await frame.getByTestId('offer-remember').check();
  await frame.getByTestId('offer-accept').click();
  await hears(tab, 'vramscope-opened');
  await frame.getByTestId('file-origin').getByText(`from ${site.origin}`).waitFor();
  await frame.getByTestId('status').waitFor();
  // Nothing is uploaded from here: the site could lead the person's clicks.
  await frame.getByTestId('share-button').click();
  await frame.getByTestId('share-no-server').waitFor();
  assert.equal(await frame.getByTestId('share-go').count(), 0);
  await frame.getByTestId('dialog-close').click();
  await page.screenshot('embedding-open');
  // Only these words left the page, and only to the site.
  const said = await tab.evaluate(() => globalThis.heard);
  assert.ok(said.every(({ data, origin }) => Object.keys(data).join() === 'type' && url.startsWith(origin)), JSON.stringify(said));

  // The site is remembered: the next trace takes the place of the first.
  await tab.reload();
  await tab.evaluate((url) => globalThis.framed(url), url);
  await tab.evaluate(() => globalThis.pinged(globalThis.viewer));
  for (const name of ['first.json', 'second.json']) await sendTrace(tab, name);
  await hears(tab, 'vramscope-opened', 'vramscope-opened');
  await frame.getByTestId('file-menu').getByText('second.json').waitFor();
  await frame.getByTestId('file-menu').click();
  assert.equal(await frame.getByTestId('file-row').count(), 1);
  forget(page);
});

test('a refusal holds, and the question is not repeated', async (t) => {
  const { page, tab, url } = await openSite(t);
  await tab.evaluate((url) => globalThis.framed(url), url);
  await tab.evaluate(() => globalThis.pinged(globalThis.viewer));
  await sendTrace(tab);
  const frame = tab.frameLocator('iframe');
  await frame.getByTestId('offer-refuse').click();
  await hears(tab, 'vramscope-refused');
  await sendTrace(tab);
  await hears(tab, 'vramscope-refused', 'vramscope-refused');
  assert.equal(await frame.getByTestId('offer').count(), 0);
  assert.equal(await frame.locator(':root').getAttribute('data-state'), 'empty');
  forget(page);
});

test('strangers and malformed messages are ignored', async (t) => {
  const { page, tab, site, url } = await openSite(t);
  await tab.evaluate((url) => globalThis.framed(url), url);
  await tab.evaluate(() => globalThis.pinged(globalThis.viewer));
  // A frame beside it has its window, but did not open it.
  await tab.evaluate((url) => globalThis.framed(url), `${site.origin}/stranger`);
  await tab.frames().at(-1).evaluate((bytes) => {
    parent.frames[0].postMessage({ type: 'vramscope-ping' }, '*');
    parent.frames[0].postMessage({ type: 'vramscope-open', name: 'a.json', buffer: new Uint8Array(bytes).buffer }, '*');
  }, [...trace]);
  await tab.evaluate((bytes) => {
    globalThis.viewer = document.querySelector('iframe').contentWindow;
    globalThis.heard.length = 0;
    const buffer = () => new Uint8Array(bytes).buffer;
    for (const message of [
      null,
      'vramscope-open',
      7,
      [],
      {},
      { type: 'vramscope-open' },
      { type: 'vramscope-open', name: 'a.json', buffer: new Uint8Array(bytes) },
      { type: 'vramscope-open', name: 'a.json', buffer: new ArrayBuffer(0) },
      { type: 'vramscope-open', name: 7, buffer: buffer() },
      { type: 'vramscope-open', name: '', buffer: buffer() },
      { type: 'vramscope-open', name: '\u202e\n', buffer: buffer() },
      { type: 'vramscope-open', name: 'a.json', buffer: buffer(), share: true },
      { type: 'vramscope-share', name: 'a.json', buffer: buffer() },
      { type: ['vramscope-open'], name: 'a.json', buffer: buffer() },
    ]) globalThis.send(message);
  }, [...trace]);
  // Messages keep their order: after the answer to this one, all others were read.
  await tab.evaluate(() => globalThis.pinged(globalThis.viewer));
  assert.deepEqual([...new Set(await heard(tab))], ['vramscope-pong']);
  const frame = tab.frameLocator('iframe').first();
  assert.equal(await frame.getByTestId('offer').count(), 0);
  assert.equal(await frame.locator(':root').getAttribute('data-state'), 'empty');
  forget(page);
});

test('a site that may not frame the page opens it in a window, and asks there', async (t) => {
  const { page, tab, url } = await openSite(t, { isAllowed: false });
  const opened = tab.waitForEvent('popup');
  await tab.evaluate((url) => { globalThis.popup = globalThis.open(url); }, url);
  const popup = await opened;
  await tab.evaluate(() => globalThis.pinged(globalThis.popup));
  await sendTrace(tab);
  await popup.getByTestId('offer-accept').click();
  await hears(tab, 'vramscope-opened');
  await popup.getByTestId('file-menu').getByText('run 7.json').waitFor();

  // The usual page cuts the tie to who opened it, and does not listen.
  const usual = tab.waitForEvent('popup');
  await tab.evaluate((url) => { globalThis.popup = globalThis.open(url); }, url.replace('?embed', ''));
  const other = await usual;
  await other.getByTestId('start').waitFor();
  assert.equal(await other.evaluate(() => globalThis.opener), null);
  forget(page);
});
