// What the list of jobs says of recordings that are kept, damaged or about to be deleted.
import assert from 'node:assert/strict';
import { chmodSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { emptyFolder, startJobIn, startJob, startServer } from './program.mjs';
import { at, number, says, text, until } from './workbench.mjs';

const HOUR_US = 3_600_000_000;

/** Returns the server's sessions. */
const sessions = async (server) => (await (await fetch(`${server.url}api/v1/sessions`)).json()).sessions;

/** Changes the server's list before the page gets it. Returns the limits that the page asked for. */
async function rewrite(page, change) {
  const limits = [];
  await page.tab.route(/\/api\/v1\/sessions\?/, async (route) => {
    limits.push(new URL(route.request().url()).searchParams.get('limit'));
    const response = await route.fetch();
    const list = await response.json();
    await route.fulfill({ response, json: change(list) ?? list });
  });
  return limits;
}

test('a recording is pinned and unpinned, also over a reload', async (t) => {
  const server = await startServer(t);
  await startJob(t, server.url, 'transformer', '--steps', '3').ended;
  const page = await openPage(t);
  const pin = at(page, 'session-pin');
  const isPressed = (is) => until(`pinned is ${is}`, () => pin.getAttribute('aria-pressed'), (pressed) => pressed === String(is));
  await isPressed(false);
  await pin.click();
  await isPressed(true);
  assert.equal((await sessions(server))[0].pinned, true);
  await page.screenshot('jobs-pinned');
  await page.tab.reload();
  await isPressed(true);
  await pin.click();
  await isPressed(false);
  assert.equal((await sessions(server))[0].pinned, false);
});

test('nothing of the list is cut off on a desktop, however wide and long it is', async (t) => {
  const server = await startServer(t);
  await startJob(t, server.url, 'transformer', '--steps', '3').ended;
  for (const count of [1, 5, 20]) {
    const page = await openPage(t);
    // Rows with all that a row may have; the server knows the first of them.
    const [{ id }] = await sessions(server);
    await page.tab.route(/\/api\/v1\/sessions\/[^/?]+\//, (route) =>
      route.continue({ url: route.request().url().replace(/sessions\/[^/?]+\//, `sessions/${id}/`) }));
    await rewrite(page, (list) => {
      const [one] = list.sessions;
      const state = ['live', 'lost', 'ended'];
      list.sessions = Array.from({ length: count }, (_, i) => ({
        ...one,
        id: i === 0 ? one.id : one.id.slice(0, -2) + String(i).padStart(2, '0'),
        name: i % 2 ? 'pretrain-llama-3-70b-with-a-long-name.py' : one.name,
        state: state[i % 3],
        rank: i,
        events: 123_456_789,
        events_per_second: 1_234_567,
        lost: i % 4 === 1 ? 1_234_567 : 0,
        damaged_bytes: i % 4 === 1 ? 123_456 : 0,
        oom: i % 4 === 1 ? 1 : 0,
        delete_us: i % 5 === 0 ? Date.now() * 1000 + 23.5 * HOUR_US : null,
        devices: Array.from({ length: 1 + (i % 5) }, (_, number) => ({ number, name: 'NVIDIA H100 80GB HBM3', capacity: 85e9, reserved: 84e9, allocated: 83e9 })),
      }));
      list.total = count;
    });
    await page.tab.goto(server.url);
    await until(`${count} jobs`, () => at(page, 'session-pin').count(), (shown) => shown === count);
    assert.equal(await at(page, 'session-full').first().locator('rect').getAttribute('width'), '98', 'per cent are reserved');
    for (const width of [1200, 1366, 1440, 1920]) {
      await page.tab.setViewportSize({ width, height: 800 });
      const cut = await page.tab.evaluate(() => {
        const stage = document.querySelector('.stage');
        const list = document.querySelector('.sessions').getBoundingClientRect();
        const parts = [...document.querySelectorAll('.session, .session > *, .session :is(button, a, b), .session-numbers > *, .session-devices > *, .session-marks > *')];
        const isCut = (part) => {
          const { left, right, width } = part.getBoundingClientRect();
          if (width === 0) return false;
          const isClipped = getComputedStyle(part).overflowX !== 'visible' && part.scrollWidth > part.clientWidth + 1;
          // A name may be as long as it likes: it ends with an ellipsis, and its tooltip has the whole.
          return left < list.left - 1 || right > list.right + 1 || (isClipped && !part.matches('.session-open, .session-place'));
        };
        // Each row has what it shows within its own height, and the page is as wide as the window.
        const overlaps = [...document.querySelectorAll('.session')].flatMap((row) => {
          const box = row.getBoundingClientRect();
          return [...row.children].filter((part) => part.offsetHeight > 0 && part.getBoundingClientRect().bottom > box.bottom + 1);
        });
        const beside = [...document.querySelectorAll('.session')].flatMap((row) => {
          const cells = [...row.querySelectorAll('.session-name > *, .session-devices > *, .session-spark, .session-numbers > *, .session-marks > *, .session-acts > *')].map((cell) => [cell, cell.getBoundingClientRect()]);
          return cells.filter(([one, a], i) => a.width > 0 && cells.slice(0, i).some(([other, b]) =>
            one.parentElement !== other.parentElement && b.width > 0 && a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1)).map(([cell]) => cell);
        });
        const wide = stage.scrollWidth > stage.clientWidth ? [stage] : [];
        return [...parts.filter(isCut), ...overlaps, ...beside, ...wide].map((part) => `${part.className}: ${part.textContent}`);
      });
      assert.deepEqual(cut, [], `${count} jobs at ${width}`);
      await page.tab.locator('.session').last().scrollIntoViewIfNeeded();
      const [box, stage] = [await page.tab.locator('.session').last().boundingBox(), await page.tab.locator('.stage').boundingBox()];
      assert.ok(box.y >= stage.y && box.y + box.height <= stage.y + stage.height + 1, `the last of ${count} jobs is reached at ${width}`);
      if (width !== 1366) await page.screenshot(`jobs-${count}-${width}`);
    }
  }
});

test('a row shows the damage to its recording, and the rest of the recording opens', async (t) => {
  const folder = emptyFolder(t);
  const server = await startServer(t, folder);
  const job = startJob(t, server.url, 'transformer', '--rate', '3000', '--steps', '4000');
  await until('events are stored', () => sessions(server), ([session]) => session?.events > 5_000);
  await server.stop();
  job.child.kill('SIGKILL');
  const [log] = readdirSync(join(folder, 'wal'));
  const bytes = readFileSync(join(folder, 'wal', log));
  bytes[Math.floor(bytes.length / 2)] ^= 0xff;
  writeFileSync(join(folder, 'wal', log), bytes);
  await server.start();

  const page = await openPage(t);
  await says(page, 'session-damaged', /^[\d.]+ ([KM]i)?B damaged$/);
  await says(page, 'session-note', /damaged.*set aside/);
  await page.screenshot('jobs-damaged');
  await at(page, 'session-open').click();
  await page.reach('ready');
});

test('a deletion is announced, and a long list grows on demand', async (t) => {
  const server = await startServer(t);
  await startJob(t, server.url, 'transformer', '--steps', '3').ended;
  const page = await openPage(t);
  await at(page, 'session').waitFor();
  let loading = true;
  const limits = await rewrite(page, (list) => {
    list.sessions[0].delete_us = Date.now() * 1000 + 23.5 * HOUR_US;
    list.total = 1_234;
    list.loading = loading;
  });
  await says(page, 'session-deletion', /deletes it in 23 h \d+ min unless you pin it/);
  await says(page, 'sessions-extent', /^The newest 1 of 1,234 jobs are shown\.$/);
  await at(page, 'sessions-loading').waitFor();
  await page.screenshot('jobs-announced');
  const shown = number(limits.at(-1));
  await at(page, 'sessions-more').click();
  await until('more are asked for', () => number(limits.at(-1)), (limit) => limit > shown);
  loading = false;
  await until('all was looked through', () => text(page, 'sessions-loading'), (said) => said === '');
});

test('the page offers what a token may do, and says why it is not enough', async (t) => {
  const tokens = { jobs: 'ingest-0123456789abcdef', people: 'read-0123456789abcdef', boss: 'admin-0123456789abcdef' };
  const folder = emptyFolder(t);
  const file = join(folder, 'tokens');
  const roles = { jobs: 'ingest', people: 'read', boss: 'admin' };
  const lines = Object.entries(tokens).map(([name, token]) => `${name} ${roles[name]} ${token}`);
  writeFileSync(file, [...lines, `old read old-0123456789abcdef expires=2020-01-01`, ''].join('\n'));
  chmodSync(file, 0o600);
  const server = await startServer(t, join(folder, 'data'), ['--tokens', file]);
  await startJobIn(t, { ...process.env, VRAMSCOPE_TOKEN: tokens.jobs }, server.url, 'transformer', '--steps', '3').ended;

  const page = await openPage(t);
  const give = async (token) => {
    await at(page, 'token-input').fill(token);
    await at(page, 'token-give').click();
  };
  await says(page, 'token', /This server requires a token\. If it printed a link/);
  for (const [token, reason] of [
    ['nobody-0123456789abcdef', /doesn't know the token/],
    ['old-0123456789abcdef', /has expired/],
    [tokens.jobs, /lacks the role read/],
  ]) {
    await give(token);
    await says(page, 'token', reason);
    await page.screenshot(`jobs-token-${reason.source.split(' ')[1]}`);
  }
  // Who reads may neither pin nor delete, nor start the demo.
  await give(tokens.people);
  await at(page, 'session').waitFor();
  await at(page, 'session-download').waitFor();
  for (const name of ['session-pin', 'session-delete', 'watch-demo']) assert.equal(await at(page, name).count(), 0, name);
  await page.screenshot('jobs-reader');
  await at(page, 'token-leave').click();
  await give(tokens.boss);
  await at(page, 'watch-demo').waitFor();
  await at(page, 'session-pin').click();
  await until('it is pinned', () => at(page, 'session-pin').getAttribute('aria-pressed'), (pressed) => pressed === 'true');
  await at(page, 'session-delete').click();
  await page.screenshot('jobs-deleting');
  await at(page, 'session-delete-yes').click();
  await until('it is gone', () => at(page, 'session').count(), (count) => count === 0);
  // The browser logs each refusal.
  page.complaints = page.complaints.filter((complaint) => !/status of 40[13]/.test(complaint));
});

test('the link that a server prints opens its page, which keeps the token out of its address', async (t) => {
  // As where the system does not tell the server who is asking.
  const server = await startServer(t, emptyFolder(t), [], { VRAMSCOPE_USERS_UNKNOWN: '1' });
  const [, link] = await until('the link is printed', () => /^Open it with (\S+)$/.exec(server.said.at(-1)), (found) => found);
  const [, token] = /#token=([0-9a-f]{64})$/.exec(link);
  await startJobIn(t, { ...process.env, VRAMSCOPE_TOKEN: token }, server.url, 'transformer', '--steps', '3').ended;
  const page = await openPage(t);
  await says(page, 'token', /If it printed a link when it started, open that/);
  // Pasted over the address of a page that is open.
  await page.tab.evaluate((hash) => { location.hash = hash; }, new URL(link).hash);
  await at(page, 'session').waitFor();
  assert.equal(page.tab.url(), server.url);
  await page.tab.reload();
  await at(page, 'session').waitFor();
  await at(page, 'session-pin').click();
  await until('it is pinned', () => at(page, 'session-pin').getAttribute('aria-pressed'), (pressed) => pressed === 'true');
  await at(page, 'session-delete').click();
  await at(page, 'session-delete-yes').click();
  await until('it is gone', () => at(page, 'session').count(), (count) => count === 0);
  assert.ok(page.requests.every((url) => !url.includes(token)), 'the token is in no URL');
  page.complaints = page.complaints.filter((complaint) => !/status of 401/.test(complaint));

  const fresh = await openPage(t, { address: new URL(link).hash });
  await at(fresh, 'watch-demo').waitFor();
  assert.equal(fresh.tab.url(), server.url);
});

test('a page that waits for a job asks less and less often, and at once when it is shown', async (t) => {
  await startServer(t);
  const page = await openPage(t, { address: '#job=nothing' });
  const asked = [];
  page.tab.on('request', (request) => {
    if (/\/api\/v1\/sessions$/.test(request.url())) asked.push(performance.now());
  });
  const pause = () => asked.at(-1) - asked.at(-2);
  await until('seconds between two requests', () => pause(), (pause) => pause > 3_500);
  const count = asked.length;
  await page.tab.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
  await until('another request', () => asked.length, (now) => now > count);
  assert.ok(pause() < 3_000, `${pause()} ms`);
});

test('the list is asked for less often while nothing changes, and at once when the page is shown', async (t) => {
  const server = await startServer(t);
  const page = await openPage(t);
  const asked = [];
  page.tab.on('request', (request) => {
    if (/\/api\/v1\/sessions\?/.test(request.url())) asked.push(performance.now());
  });
  await page.open();
  await at(page, 'sessions').waitFor();
  const pause = () => asked.at(-1) - asked.at(-2);
  await until('seconds between two requests', () => pause(), (pause) => pause > 3_500);
  const count = asked.length;
  await page.tab.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
  await until('another request', () => asked.length, (now) => now > count);
  assert.ok(pause() < 3_000, `${pause()} ms`);
});
