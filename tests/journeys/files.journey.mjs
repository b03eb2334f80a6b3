// A person opens files of every kind, several at once, and cancels one that takes too long.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { hold, holdWorkers, release, said } from './held.mjs';
import { openPage } from './page.mjs';
import { emptyFolder } from './program.mjs';
import { at, movesFrom, press, says, text, until } from './workbench.mjs';

const fixture = (name) => fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url));
const maker = fileURLToPath(new URL('../measure/make_snapshot.py', import.meta.url));

/** The findings of each file in the order of the page, the most important first, without what the verdict tells. */
const EARLIER = ['ring_overflow'];
// Snapshots have settings from torch 2.2 on.
const CURRENT = [...EARLIER, 'ineffective_setting'];
const LATEST = [...CURRENT, 'unknown_action'];
const TWO_DEVICES = ['ring_overflow', 'inconsistent', 'ring_overflow', 'not_shown', 'ineffective_setting', 'ineffective_setting'];
const FINDINGS = {
  ...Object.fromEntries([0, 1, 2, 3, 4, 5].map((protocol) => [`protocol${protocol}.pickle`, CURRENT])),
  'cpp.pickle': CURRENT,
  'current.json': CURRENT,
  'current.json.gz': CURRENT,
  'current.pickle.gz': CURRENT,
  'current.pickle.zst': CURRENT,
  'torch_1_13.pickle': ['no_history'],
  'torch_2_0.pickle': EARLIER,
  'torch_2_15.pickle': LATEST,
  'torch_2_15.json': LATEST,
  'two_devices.pickle': TWO_DEVICES,
  'two_devices.json': TWO_DEVICES,
  'xpu.pickle': EARLIER,
  'ring.pickle': ['ring_overflow', 'inconsistent'],
  'no_history.pickle': ['no_history'],
  'state_only.pickle': ['state_only', 'ineffective_setting'],
  'empty.pickle': ['no_history'],
};

/** Drops a file on a page that shows another one, and waits for its first picture. */
async function add(page, name, file = fixture(name)) {
  await page.drop(file);
  await until(`${name} is the file`, () => page.tab.title(), (title) => title.startsWith(name));
  await page.reach('ready');
}

/** Returns the codes of the findings on their tab. */
async function findings(page) {
  await press(page, '5');
  await at(page, 'findings').waitFor();
  return at(page, 'findings').getByTestId('finding').evaluateAll((rows) => rows.map((row) => row.dataset.code));
}

/** Opens a menu of the header and clicks one of its rows. */
async function choose(page, menu, row, name) {
  await at(page, menu).click();
  await at(page, row).filter({ hasText: name }).click();
}

/** Records every value of `data-state` from now on. */
const watchStates = (page) =>
  page.tab.evaluate(() => {
    globalThis.states = [];
    new MutationObserver(() => globalThis.states.push(document.documentElement.dataset.state)).observe(document.documentElement, {
      attributeFilter: ['data-state'],
    });
  });
const statesSeen = (page) => page.tab.evaluate(() => globalThis.states);

test('files of every layout, protocol and compression open, each with its findings', async (t) => {
  const page = await openPage(t);
  for (const [name, codes] of Object.entries(FINDINGS)) {
    await add(page, name);
    const wanted = codes.toSorted().join();
    // The doctor's findings follow those of the file.
    await until(`the findings of ${name} are ${wanted}`, () => findings(page), (found) => found.toSorted().join() === wanted);
    const sentences = await at(page, 'findings').getByTestId('finding').locator('p').allInnerTexts();
    assert.ok(sentences.every((said) => /[A-Z].*\.$|\)$/s.test(said.trim())), `${name}: ${sentences}`);
  }
  // All of them stay open.
  await at(page, 'file-menu').click();
  assert.equal(await at(page, 'file-row').count(), Object.keys(FINDINGS).length);
  await page.screenshot('files-menu');
});

test('a truncated file is shown up to its end, and is reported as truncated', async (t) => {
  const page = await openPage(t);
  const whole = readFileSync(fixture('ring.pickle'));
  const buffer = whole.subarray(0, Math.floor(whole.length * 0.9));
  await add(page, 'cut.pickle', { name: 'cut.pickle', mimeType: 'application/octet-stream', buffer });
  assert.ok((await findings(page)).includes('truncated'));
  const sentence = await at(page, 'findings').locator('[data-code="truncated"] p').innerText();
  const kept = /([\d,]+) trace entries/.exec(sentence)?.[1];
  await until(`the ${kept} entries that were kept`, () => text(page, 'status'), (said) => said.includes(`of ${kept}`));
  await page.screenshot('files-cut');
});

test('two files at once are switched without loading again, each with its own view', async (t) => {
  const page = await openPage(t);
  await page.drop(fixture('protocol4.pickle'), fixture('ring.pickle'));
  await page.reach('ready');
  await says(page, 'file-menu', /protocol4\.pickle/);
  await at(page, 'file-menu').click();
  await until('both are there', () => at(page, 'file-row').allInnerTexts(), (rows) => rows.length === 2 && rows.every((row) => !row.includes('%')));
  await press(page, 'Escape');
  await movesFrom(page, -1);
  await press(page, '4', 'Home', '.');
  await until('event 1', () => text(page, 'status'), (said) => /event 1 of 12/.test(said));

  await choose(page, 'file-menu', 'file-row', 'ring.pickle');
  await until('the other file', () => text(page, 'status'), (said) => /of 1,000/.test(said));
  await page.reach('ready');
  assert.equal(await at(page, 'tab-timeline').getAttribute('aria-selected'), 'true');

  // Both views have been drawn; from now on there must be no placeholder.
  await watchStates(page);
  await choose(page, 'file-menu', 'file-row', 'protocol4.pickle');
  await until('the first file, where it was left', () => text(page, 'status'), (said) => /event 1 of 12/.test(said));
  assert.equal(await at(page, 'tab-events').getAttribute('aria-selected'), 'true');
  await press(page, 'k');
  await until('the next file', () => page.tab.title(), (title) => title.startsWith('ring.pickle'));
  await until('all of it', () => text(page, 'status'), (said) => /of 1,000/.test(said));
  assert.deepEqual((await statesSeen(page)).filter((state) => state !== 'ready'), [], 'nothing is loaded again');

  await at(page, 'file-menu').click();
  await page.tab.getByRole('button', { name: 'Close ring.pickle' }).click();
  await until('the one that is left', () => page.tab.title(), (title) => title.startsWith('protocol4.pickle'));
});

test('of several files, one that can not be opened is named beside the one that is shown', async (t) => {
  const page = await openPage(t);
  await page.drop(fixture('protocol4.pickle'), maker);
  await page.reach('ready');
  await says(page, 'notice', /^make_snapshot\.py can't be opened\. /);
  await says(page, 'file-menu', /protocol4\.pickle/);
});

test('the devices of a file are switched without loading again', async (t) => {
  const page = await openPage(t);
  await page.load(fixture('two_devices.pickle'));
  // The busier one is shown first.
  await says(page, 'device-menu', /Device 1/);
  await until('its events', () => text(page, 'status'), (said) => /of 12/.test(said));
  await watchStates(page);
  await choose(page, 'device-menu', 'device-row', 'Device 0');
  await says(page, 'device-menu', /Device 0/);
  await until('the events of the other', () => text(page, 'status'), (said) => /of 3\D/.test(said));
  await choose(page, 'device-menu', 'device-row', 'Device 1');
  await until('and back', () => text(page, 'status'), (said) => /of 12/.test(said));
  assert.deepEqual((await statesSeen(page)).filter((state) => state !== 'ready'), []);
});

test('Cancel ends a large file at once, and the page keeps working', async (t) => {
  const large = join(emptyFolder(t), 'large.pickle');
  try {
    execFileSync('python3', [maker, '100MB', large], { stdio: ['ignore', 'ignore', 'inherit'] });
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    t.skip('no python3 to make a large file with');
    return;
  }
  const page = await openPage(t);
  for (const stage of ['Reading', 'Indexing']) {
    const cancelled = page.tab.evaluate(async (stage) => {
      const told = (name) => document.querySelector(`[data-testid="${name}"]`);
      const when = (holds) =>
        new Promise((done) => {
          const observer = new MutationObserver(() => holds() && done(observer.disconnect()));
          observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
        });
      const state = () => document.documentElement.dataset.state;
      await when(() => state() === 'loading' && told('loading-stage')?.textContent === stage && told('loading-percent').textContent !== '0 %');
      const percent = told('loading-percent').textContent;
      const start = performance.now();
      told('cancel').click();
      await when(() => state() !== 'loading');
      return { ms: performance.now() - start, percent, state: state() };
    }, stage);
    await page.drop(large);
    const { ms, percent, state } = await cancelled;
    t.diagnostic(`cancelled at ${stage}, ${percent}: ${ms.toFixed(1)} ms`);
    assert.equal(state, 'empty');
    assert.ok(ms < 1000, `${ms} ms`);
  }
  await page.load(fixture('protocol4.pickle'));
  await until('the small file', () => text(page, 'status'), (said) => /of 12/.test(said));
});

test('of many files two are read at a time, and the others say that they wait', async (t) => {
  const page = await openPage(t);
  await holdWorkers(page);
  await hold(page);
  const names = ['protocol0.pickle', 'protocol1.pickle', 'protocol2.pickle', 'protocol3.pickle', 'ring.pickle'];
  await page.drop(...names.map(fixture));
  await at(page, 'file-menu').click();
  const waiting = async () => (await at(page, 'file-row').allInnerTexts()).filter((row) => row.includes('waiting')).length;
  await until('three wait', waiting, (count) => count === 3);
  // The one that is looked at says for which it waits.
  await at(page, 'file-row').filter({ hasText: 'ring.pickle' }).click();
  await says(page, 'loading-stage', /^Waiting for protocol0\.pickle \(\d+ %\) and protocol1\.pickle \(\d+ %\)$/);
  await page.screenshot('files-waiting');
  await said(page);
  await release(page);
  await page.reach('ready');
  await says(page, 'status', /of 1,000/);
  await at(page, 'file-menu').click();
  await until('all are read', async () => (await at(page, 'file-row').allInnerTexts()).join(), (rows) => !/waiting|%/.test(rows));
  assert.equal(await at(page, 'file-row').count(), names.length);
});

test('a file that is opened again is the one that is open', async (t) => {
  const page = await openPage(t);
  await add(page, 'ring.pickle');
  await press(page, '4');
  const sweep = fileURLToPath(new URL('../../shared/session/tests/fixtures/sweep_1.json', import.meta.url));
  await add(page, 'sweep_1.json', sweep);
  for (const [name, file] of [['ring.pickle', fixture('ring.pickle')], ['sweep_1.json', sweep]]) {
    await add(page, name, file);
    await at(page, 'file-menu').click();
    assert.equal(await at(page, 'file-row').count(), 2, name);
    await press(page, 'Escape');
  }
  await add(page, 'ring.pickle');
  assert.equal(await at(page, 'tab-events').getAttribute('aria-selected'), 'true', 'it is shown as it was left');
});

test('the code on the start page is whole: it records a history and writes it', async (t) => {
  const page = await openPage(t);
  const code = await page.tab.locator('.recipe code').first().innerText();
  const program = `
import sys, types
from unittest import mock
memory = mock.Mock()
sys.modules["torch"] = types.SimpleNamespace(cuda=types.SimpleNamespace(memory=memory))
exec(sys.stdin.read())
print([name for name, _, _ in memory.mock_calls])`;
  const said = execFileSync('python3', ['-c', program], { input: code, encoding: 'utf8' });
  assert.equal(said.trim(), "['_record_memory_history', '_dump_snapshot']");
});
