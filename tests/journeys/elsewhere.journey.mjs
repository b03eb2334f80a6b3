// A person follows a link that names a trace on another server.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openPage, pageUrl } from './page.mjs';
import { startSite } from './site.mjs';
import { addressSays, at, says, text, until } from './workbench.mjs';

const body = readFileSync(fileURLToPath(new URL('../fixtures/two_devices.pickle', import.meta.url)));
const open = { 'Access-Control-Allow-Origin': '*' };

/** Drops the complaints about requests to a site, which are meant. */
function allow(page, site, ...others) {
  const meant = [`another server: ${site.origin}`, ...others];
  page.complaints = page.complaints.filter((said) => !meant.some((part) => said.includes(part)));
}

test('the page asks, and opens the trace with nothing but its URL', async (t) => {
  const site = await startSite(t, { '/runs/7/a trace.pickle': { headers: open, body }, '/runs/7/a%20trace.pickle': { headers: open, body } });
  const url = `${site.origin}/runs/7/a%20trace.pickle?sig=1`;
  const page = await openPage(t, { address: `?url=${encodeURIComponent(url)}` });
  await at(page, 'offer').waitFor();
  assert.equal(await text(page, 'offer-origin'), site.origin);
  assert.equal(await text(page, 'offer-url'), url);
  assert.match(await text(page, 'offer'), /Open “a trace\.pickle” from/);
  assert.equal(site.asked.length, 0, 'nothing is fetched before the person agrees');
  await page.screenshot('elsewhere-asks');

  await at(page, 'offer-accept').click();
  await page.reach('ready');
  assert.match(await page.tab.title(), /^a trace\.pickle · /);
  await says(page, 'file-origin', new RegExp(`from ${site.origin}`));
  await page.screenshot('elsewhere-open');
  assert.equal(new URL(page.tab.url()).searchParams.get('url'), url, 'a reload asks again, and opens it again');
  assert.equal(site.asked.length, 1);
  const { headers } = site.asked[0];
  assert.equal(headers.origin, new URL(pageUrl()).origin);
  for (const name of ['cookie', 'authorization', 'referer']) assert.equal(headers[name], undefined, name);
  allow(page, site);
});

test('a no is a no', async (t) => {
  const site = await startSite(t, { '/a.pickle': { headers: open, body } });
  const page = await openPage(t, { address: `?url=${site.origin}/a.pickle` });
  for (const close of [() => at(page, 'offer-refuse').click(), () => page.tab.keyboard.press('Escape')]) {
    await page.open(`?url=${site.origin}/a.pickle`);
    await at(page, 'offer').waitFor();
    await close();
    await at(page, 'offer').waitFor({ state: 'detached' });
    assert.equal(await page.state(), 'empty');
    // A page that is loaded again does not ask again.
    assert.equal(new URL(page.tab.url()).search, '');
  }
  // Enter does what the highlighted button says, and the rest of the address stays.
  await page.open(`?url=${site.origin}/a.pickle#v=1&tab=flame`);
  await at(page, 'offer').waitFor();
  await page.tab.keyboard.press('Enter');
  await at(page, 'offer').waitFor({ state: 'detached' });
  assert.match(await at(page, 'start').innerText(), /Open file/);
  assert.equal(new URL(page.tab.url()).search, '');
  assert.match(page.tab.url(), /#v=1&tab=flame$/);
  assert.equal(site.asked.length, 0);
});

test('addresses that no page should open are refused with a reason', async (t) => {
  const page = await openPage(t);
  for (const [url, why] of [
    ['javascript:alert(1)', /only http:\/\/ and https:\/\//],
    ['file:///etc/passwd', /only http:\/\/ and https:\/\//],
    ['data:application/octet-stream,a', /only http:\/\/ and https:\/\//],
    ['blob:http://localhost/1', /only http:\/\/ and https:\/\//],
    ['https://user@example.org/a.pickle', /a user name or a password/],
    ['https://user:secret@example.org/a.pickle', /a user name or a password/],
    ['/api/v1/sessions', /not a whole URL/],
    ['', /not a whole URL/],
    [`https://example.org/${'a'.repeat(9000)}`, /too long/],
  ]) {
    await page.open(`?url=${encodeURIComponent(url)}`);
    await says(page, 'notice', why);
    assert.equal(await at(page, 'offer').count(), 0, url);
    assert.equal(await page.state(), 'empty');
  }
});

test('the page explains what the other server did wrong', async (t) => {
  const other = await startSite(t, { '/a.pickle': { headers: open, body } });
  const site = await startSite(t, {
    '/closed.pickle': { body },
    '/gone.pickle': { status: 404, headers: open },
    '/kept.pickle': { status: 403, headers: open },
    '/moved.pickle': { status: 302, headers: { ...open, Location: `${other.origin}/a.pickle` } },
    '/text.pickle': { headers: open, body: 'no trace at all' },
  });
  const page = await openPage(t);
  const origin = new URL(pageUrl()).origin.replaceAll('.', '\\.');
  for (const [name, why] of [
    ['closed', new RegExp(`Access-Control-Allow-Origin: ${origin}`)],
    ['gone', new RegExp(`^${new URL(site.origin).host} has no file at this address\\..*Status 404`)],
    ['kept', /may have expired.*Ask the person.*Status 403/],
    ['moved', /redirects to another host/],
    ['text', /./],
  ]) {
    await page.open(`?url=${site.origin}/${name}.pickle`);
    await at(page, 'offer-accept').click();
    await page.reach('error');
    await says(page, 'error-message', why);
    // Nothing is said of a file that did not arrive.
    assert.equal(/Supported files/.test(await text(page, 'failed')), name === 'text', name);
    const before = site.asked.length;
    await at(page, 'fetch-again').click();
    await until('it is asked again', () => site.asked.length, (asked) => asked > before);
    await page.reach('error');
  }
  assert.equal(other.asked.length, 0, 'the policy names one origin');
  // Browsers report each of these to the console.
  allow(page, site, 'CORS policy', '403', '404', 'Content Security Policy', `failed: ${site.origin}`, `failed: ${other.origin}`, `another server: ${other.origin}`, 'Failed to load resource', 'Fetch API cannot load');
});

test('a long download shows its progress, and is cancelled', async (t) => {
  const site = await startSite(t, { '/a.pickle': { headers: { ...open, 'Content-Length': '1000000' }, body: '' } });
  const page = await openPage(t, { address: `?url=${site.origin}/a.pickle` });
  await at(page, 'offer-accept').click();
  await page.reach('loading');
  await until('it was asked', () => site.asked.length, (asked) => asked === 1);
  await at(page, 'cancel').click();
  await until('the start page', () => page.state(), (state) => state === 'empty');
  allow(page, site, 'failed: ');
});

test('a server that goes away is named, and nothing is kept that cannot be had back', async (t) => {
  let isThere = true;
  const cut = (request) => request.socket.destroy();
  const site = await startSite(t, { '/a.pickle': (request) => (isThere ? { headers: open, body } : cut(request)) });
  const page = await openPage(t, { address: `?url=${site.origin}/a.pickle` });
  await at(page, 'offer-accept').click();
  await page.reach('ready');
  // A link in the address must not wait for the file once it is gone.
  await addressSays(page, 'file', 'a.pickle');
  isThere = false;
  await page.tab.reload();
  await at(page, 'offer-accept').click();
  await page.reach('error');
  await says(page, 'error-message', new RegExp(new URL(site.origin).host));
  await at(page, 'fetch-again').waitFor();
  await page.screenshot('elsewhere-gone');
  // Closed, it is neither in the address nor among the files opened lately.
  await at(page, 'close-failed').click();
  await until('the start page', () => page.state(), (state) => state === 'empty');
  assert.equal(new URL(page.tab.url()).search, '');
  await until('nothing is left in the address', () => new URL(page.tab.url()).hash, (hash) => hash === '');
  await page.tab.reload();
  await at(page, 'start').waitFor();
  assert.equal(await at(page, 'offer').count(), 0);
  assert.ok(!(await at(page, 'start').innerText()).includes('a.pickle'));
  allow(page, site, `failed: ${site.origin}`, 'Failed to load resource', 'Fetch API cannot load', 'ERR_EMPTY_RESPONSE', 'CORS policy');
});

test('a page without such a link connects to its own server only', async (t) => {
  const site = await startSite(t, { '/a.pickle': { headers: open, body } });
  for (const [address, policy] of [
    ['', "connect-src 'self';"],
    [`?url=${site.origin}/a.pickle`, `connect-src 'self' ${site.origin};`],
    ['?url=https://a;script-src%20*/', "connect-src 'self';"],
  ]) {
    const answer = await fetch(pageUrl() + address);
    assert.ok(answer.headers.get('content-security-policy').includes(policy), address);
  }
});
