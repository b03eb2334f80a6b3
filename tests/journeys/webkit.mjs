// Opens the sample in WebKit, and every view of it. WebKitGTK's own driver is spoken to: playwright only drives a WebKit of its own.
//
//   VRAMSCOPE_PROGRAM=target/debug/vramscope xvfb-run -a node tests/journeys/webkit.mjs
//
// Debian: apt-get install webkit2gtk-driver xvfb
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { atEnd } from './ending.mjs';
import { startServer } from './program.mjs';
import { until } from './workbench.mjs';

/** Returns a port that nobody listens on. */
const freePort = () =>
  new Promise((done) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });

/** Starts WebKit. Returns what sends a command of WebDriver to its only window, and returns the answer's value. Ends with the test. */
async function startWebKit(t) {
  const port = await freePort();
  const driver = spawn('WebKitWebDriver', [`--port=${port}`], { stdio: 'inherit' });
  atEnd(t, () => driver.kill());
  const send = async (method, path, body) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, body: body && JSON.stringify(body) });
    const { value } = await answer.json();
    assert.ok(answer.ok, `${method} ${path}: ${value?.message}`);
    return value;
  };
  await until('the driver is ready', () => send('GET', '/status').catch(() => false));
  const { sessionId } = await send('POST', '/session', { capabilities: { alwaysMatch: {} } });
  atEnd(t, () => send('DELETE', `/session/${sessionId}`));
  return (method, path, body) => send(method, `/session/${sessionId}${path}`, body);
}

test('every view of the sample opens in WebKit', { timeout: 180_000 }, async (t) => {
  const { url } = await startServer(t);
  const send = await startWebKit(t);
  const evaluate = (script) => send('POST', '/execute/sync', { script: `return ${script}`, args: [] });
  const click = async (name) => {
    const found = await send('POST', '/element', { using: 'css selector', value: `[data-testid="${name}"]` });
    await send('POST', `/element/${Object.values(found)[0]}/click`, {});
  };
  const TABS = '[...document.querySelectorAll("[role=tab][data-testid^=tab-]")]';
  const shown = () =>
    evaluate(`({
      state: document.documentElement.dataset.state,
      pending: document.documentElement.dataset.pending ?? '0',
      tab: ${TABS}.find((tab) => tab.ariaSelected === 'true')?.dataset.testid ?? '',
      alerts: [...document.querySelectorAll('[role=alert]')].filter((alert) => alert.checkVisibility()).map((alert) => alert.innerText).join(),
    })`);

  await send('POST', '/url', { url });
  await until('the page is there', () => evaluate(`document.querySelector('[data-testid="open-sample"]') !== null`));
  await click('open-sample');
  await until('the sample is open', shown, ({ state, tab }) => state === 'ready' && tab !== '');
  const tabs = await evaluate(`${TABS}.map((tab) => tab.dataset.testid)`);
  assert.ok(tabs.length >= 5, tabs.join());
  for (const tab of tabs) {
    await click(tab);
    const there = await until(`${tab} has all answers`, shown, (now) => now.tab === tab && now.pending === '0');
    assert.deepEqual([there.state, there.alerts], ['ready', ''], tab);
  }
});
