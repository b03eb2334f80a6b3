// A person opens the page for the first time, and looks at the sample.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';

test('the page opens empty, under its policy, and contacts no other server', async (t) => {
  const page = await openPage(t);
  assert.equal(await page.state(), 'empty');
  assert.match(page.answer.headers()['content-security-policy'], /default-src 'none'/);
  assert.ok(await page.tab.evaluate(() => crossOriginIsolated));
  assert.match(await page.tab.locator('body').innerText(), /never leaves|stays? (in|on) (your|this|the)/i);
  await page.screenshot('opening-empty');
});

test('the policy holds: no inline script, no request to another server', async (t) => {
  const page = await openPage(t);
  const ran = await page.tab.evaluate(() => {
    const script = document.createElement('script');
    script.textContent = 'globalThis.ran = true';
    document.head.append(script);
    return Boolean(globalThis.ran);
  });
  const reached = await page.tab.evaluate(() => fetch('http://127.0.0.1:9/').then(() => true, () => false));
  assert.deepEqual({ ran, reached }, { ran: false, reached: false });
  // This test expects both refusals, and no other error.
  const refusals = page.complaints.filter((text) => /Content.Security.Policy|another server|failed: http:\/\/127.0.0.1:9/i.test(text));
  assert.ok(refusals.length >= 2, page.complaints.join('\n'));
  page.complaints = page.complaints.filter((text) => !refusals.includes(text));
});

test('the sample is one click away', async (t) => {
  const page = await openPage(t);
  await page.loadSample();
  await page.screenshot('opening-sample');
});

test('the sample opens in a small dark window', async (t) => {
  const page = await openPage(t, { width: 1024, height: 700, theme: 'dark' });
  await page.loadSample();
  await page.screenshot('opening-sample-dark');
});
