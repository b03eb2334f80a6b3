// A person shares what they see: chooses what leaves, saves it, sends it to the server, and takes it back.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openPage } from './page.mjs';
import { emptyFolder, startJob, startServer } from './program.mjs';
import { at, goTo, number, press, says, text, until } from './workbench.mjs';

const fixture = (name) => fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url));
const file = (name, buffer) => ({ name, mimeType: 'application/octet-stream', buffer });

/** Returns a snapshot that says who made it: in paths, in names of users elsewhere, and in attached texts. */
function talkative() {
  // Python writes numbers that JSON doesn't have.
  const snapshot = JSON.parse(readFileSync(fixture('current.json'), 'utf8').replaceAll('NaN', '0'));
  const tell = (frames) => frames?.forEach((frame) => { frame.filename = `/home/alice/secret-project/${frame.filename}`; });
  for (const segment of snapshot.segments) {
    tell(segment.frames);
    segment.blocks.forEach((block) => tell(block.frames));
  }
  for (const event of snapshot.device_traces.flat()) {
    tell(event.frames);
    event.user_metadata = 'customer 4711';
  }
  return file('step of tuesday.json', Buffer.from(JSON.stringify(snapshot)));
}

/** Decompresses one LZ4 block. */
function unlz4(packed, length) {
  const out = Buffer.alloc(length);
  let [from, to] = [0, 0];
  const more = (nibble) => {
    let sum = nibble;
    for (let byte = 255; nibble === 15 && byte === 255; sum += byte) byte = packed[from++];
    return sum;
  };
  while (from < packed.length) {
    const token = packed[from++];
    const literals = more(token >> 4);
    packed.copy(out, to, from, from + literals);
    [from, to] = [from + literals, to + literals];
    if (from >= packed.length) break;
    const back = packed.readUInt16LE(from);
    from += 2;
    for (let left = more(token & 15) + 4; left > 0; left -= 1) {
      out[to] = out[to - back];
      to += 1;
    }
  }
  return out;
}

/** Returns the unpacked chunks of a recording, end to end. */
function unpacked(recording) {
  const mark = Buffer.from([0xc7, 0x56, 0x52, 0x43]);
  const payloads = [];
  let byte = recording.indexOf(mark);
  assert.ok(byte > 0, 'it is a recording');
  while (byte < recording.length) {
    assert.ok(recording.subarray(byte, byte + 4).equals(mark), `a chunk begins at ${byte}`);
    const [stored, plain] = [recording.readUInt32LE(byte + 8), recording.readUInt32LE(byte + 12)];
    const payload = recording.subarray(byte + 20, byte + 20 + stored);
    payloads.push(recording[byte + 5] === 1 ? unlz4(payload, plain) : payload);
    byte += 20 + stored;
  }
  return Buffer.concat(payloads).toString('latin1');
}

/** Opens the dialog with its key, and waits for the exact size. */
async function openShare(page) {
  await press(page, 'u');
  await says(page, 'share-size', /^Copy size: about [\d.]+ (B|[KMG]iB)( so far)?: /);
}

/** Returns what the copy says in a row of the dialog. */
const leaves = (page, row) => at(page, `share-row-${row}`).getByRole('cell').last().innerText();

/** Saves with a button of the dialog. Returns the file's name and bytes. */
async function saved(page, button) {
  const [download] = await Promise.all([page.tab.waitForEvent('download'), at(page, button).click()]);
  return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) };
}

/** Shares with the choices as they are. Returns the link. */
async function share(page) {
  await at(page, 'share-go').click();
  await at(page, 'share-link').waitFor();
  return at(page, 'share-link').inputValue();
}

for (const [theme, width, height] of [['light', 1440, 900], ['dark', 1024, 700], ['light', 390, 844]]) {
  test(`the dialog says what leaves, and each box changes it (${theme}, ${width} × ${height})`, async (t) => {
    const page = await openPage(t, { theme, width, height });
    await page.load(talkative());
    const sent = [];
    page.tab.on('request', (request) => { if (request.method() !== 'GET' && request.method() !== 'HEAD') sent.push(request.url()); });
    await openShare(page);
    assert.equal(await at(page, 'share-name').inputValue(), 'step of tuesday');
    assert.match(await at(page, 'share-row-users').innerText(), /1: alice/);
    assert.equal(await leaves(page, 'users'), 'left out');
    // What changes is shown in pairs.
    assert.match(await at(page, 'share-row-folders').innerText(), /\/home\/alice\/secret-project[^]*→ ~\/secret-project/);
    assert.match(await at(page, 'share-row-attached-texts').innerText(), /customer 4711/);
    assert.equal(await leaves(page, 'attached-texts'), 'left out');
    await page.screenshot(`share-${theme}-${width}`);

    await at(page, 'share-paths').selectOption({ label: 'File names only' });
    await until('no folder leaves', () => leaves(page, 'folders'), (said) => said === 'left out');
    await at(page, 'share-paths').selectOption({ label: 'Whole' });
    await until('the user leaves', () => leaves(page, 'users'), (said) => /alice/.test(said));
    await at(page, 'share-metadata').check();
    await until('the texts leave', () => leaves(page, 'attached-texts'), (said) => /customer 4711/.test(said));
    const dialog = await at(page, 'share').boundingBox();
    assert.ok(dialog.x >= 0 && dialog.x + dialog.width <= width && dialog.y + dialog.height <= height, JSON.stringify(dialog));
    // A dialog that is closed by mistake keeps what was entered.
    await at(page, 'share-name').fill('half a na');
    await press(page, 'Escape');
    await at(page, 'share').waitFor({ state: 'detached' });
    await openShare(page);
    assert.equal(await at(page, 'share-name').inputValue(), 'half a na');
    assert.equal(await at(page, 'share-metadata').isChecked(), true);
    await press(page, 'Escape');
    assert.deepEqual(sent, [], 'nothing was sent');
  });
}

test('names of host and job stay out unless they are wanted', async (t) => {
  const page = await openPage(t);
  await page.load(fixture('recording_gap.vramscope'));
  await openShare(page);
  assert.match(await at(page, 'share-row-host-and-job').innerText(), /node-7/);
  assert.equal(await leaves(page, 'host-and-job'), 'left out');
  await at(page, 'share-places').check();
  await until('they leave', () => leaves(page, 'host-and-job'), (said) => /node-7/.test(said) && /pretrain/.test(said));
});

test('a saved copy opens, and nothing in it says who made it', async (t) => {
  const page = await openPage(t);
  await page.load(talkative());
  await openShare(page);
  await at(page, 'share-name').fill('for a bug report');
  // What changes elsewhere in the dialog meanwhile leaves the field as it is.
  for (const checked of [true, false]) {
    await at(page, 'share-metadata').evaluate((box) => box.click());
    await until('the texts leave, or stay', () => leaves(page, 'attached-texts'), (said) => /left out/.test(said) !== checked);
    assert.equal(await at(page, 'share-name').inputValue(), 'for a bug report');
  }
  const { name, bytes } = await saved(page, 'save-file');
  assert.equal(name, 'for a bug report.vramscope');
  const plain = unpacked(bytes);
  assert.match(plain, /secret-project\/train\.py/, 'what was to stay is there');
  for (const gone of ['alice', '/home', 'customer 4711', 'tuesday']) assert.ok(!plain.includes(gone), gone);

  await at(page, 'share-paths').selectOption({ label: 'File names only' });
  await until('no folder leaves', () => leaves(page, 'folders'), (said) => said === 'left out');
  const names = unpacked((await saved(page, 'save-file')).bytes);
  assert.ok(names.includes('train.py') && !names.includes('secret-project'));

  const other = await openPage(t);
  await other.load(file(name, bytes));
  const facts = async (of) => [await text(of, 'status'), await at(of, 'status').getAttribute('data-position')];
  await press(page, 'Escape');
  assert.deepEqual(await facts(other), await facts(page));
});

test('only the selected range is shared if it is wanted', async (t) => {
  const page = await openPage(t);
  await page.loadSample();
  await press(page, 'Home', 'm');
  for (let step = 0; step < 20; step += 1) await press(page, '>');
  await openShare(page);
  const all = number(await leaves(page, 'events'));
  await at(page, 'share-part').check();
  await until('20 events leave', () => leaves(page, 'events'), (said) => number(said) === 20);
  assert.ok(all > 20);
  await says(page, 'share-size', /^Copy size: about [\d.]+ (B|[KMG]iB): 20 events of 1 device/);
  // The sample ran out of memory much later.
  await says(page, 'share-lost', /^The out-of-memory is outside this range\. The copy doesn't have it\.$/);
  await page.screenshot('share-lost');
});

test('a copy of a damaged trace is called incomplete', async (t) => {
  const page = await openPage(t);
  await page.load(fixture('recording_gap.vramscope'));
  await openShare(page);
  await says(page, 'share-damage', /This trace is incomplete, and so is a copy of it\. .*events were lost while recording/);
  await page.screenshot('share-damage');
});

test('a trace is shared, opened by somebody else, and taken back', async (t) => {
  await startServer(t);
  const page = await openPage(t);
  await page.load(talkative());
  await goTo(page, 'Events');
  await at(page, 'event-row').nth(2).click();
  await at(page, 'detail-allocation').waitFor();
  const id = await at(page, 'detail-allocation').getAttribute('data-id');
  await openShare(page);
  await at(page, 'share-paths').selectOption({ label: 'File names only' });
  await at(page, 'share-password').fill('   ');
  await at(page, 'share-go').click();
  await says(page, 'share-failure', /A password can't consist of spaces only/);
  assert.equal(await at(page, 'share-link').count(), 0);
  await at(page, 'share-password').fill('');
  // The two sentences agree.
  await says(page, 'share-who', /only opens on this machine/);
  await says(page, 'share-reach', /^For others, run the server where they can reach it/);
  const link = await share(page);
  // The first thing to do with a link is to copy it.
  assert.equal(await page.tab.evaluate(() => document.activeElement.dataset.testid), 'copy');
  assert.match(link, /\/s-[a-z2-7]{39}#v=\d/);
  assert.ok(new URLSearchParams(new URL(link).hash.slice(1)).get('sel') === `a${id}`, link);
  assert.match(await text(page, 'share-terms'), /It expires on \d{4}-/);
  await page.screenshot('share-done');

  const other = await openPage(t);
  await other.tab.goto(link);
  await other.reach('ready');
  assert.equal(await at(other, 'tab-events').getAttribute('aria-selected'), 'true');
  await until('the same allocation', () => at(other, 'detail-allocation').getAttribute('data-id'), (now) => now === id);

  // Firefox gives keys to the page in front only.
  await page.tab.bringToFront();
  await at(page, 'share-uploads').click();
  await until('the server has it', () => text(page, 'upload-standing'), (said) => /It expires on/.test(said));
  assert.equal(await at(page, 'upload-open').getAttribute('href'), link, 'it is the link that was given out');
  await page.screenshot('share-uploads');
  await at(page, 'upload-extend').selectOption({ label: 'Never' });
  await says(page, 'upload-standing', /never expires/);
  // The question is answered with no by Enter, and by Esc, which leaves the dialog open.
  await at(page, 'upload-delete').click();
  await press(page, 'Enter');
  await at(page, 'upload-delete').click();
  await press(page, 'Escape');
  await at(page, 'upload-delete').click();
  await page.screenshot('share-delete');
  await at(page, 'upload-delete-yes').click();
  await says(page, 'upload-standing', /You deleted this link\. It no longer opens for anyone\./);
  await page.screenshot('share-deleted');

  await other.tab.reload();
  await until('it is gone', () => other.alerts(), (said) => /deleted/i.test(said));
  // The browser reports the answer "gone" as an error.
  other.complaints.length = 0;
  await at(page, 'upload-forget').click();
  await at(page, 'uploads-none').waitFor();
});

test('an upload continues after the network was cut, and can be cancelled', async (t) => {
  await startServer(t);
  const page = await openPage(t);
  await page.loadSample();
  await openShare(page);
  let [puts, isCut] = [0, true];
  await page.tab.route('**/traces/uploads/*', (route) => {
    if (route.request().method() !== 'PUT') return isCut && puts > 0 ? route.abort() : route.continue();
    puts += 1;
    return isCut ? route.abort() : route.continue();
  });
  await at(page, 'share-go').click();
  await says(page, 'share-waiting', /Trying again in \d+ s/);
  await page.screenshot('share-waiting');
  // Esc doesn't close the dialog now: it offers to cancel.
  await press(page, 'Escape');
  assert.equal(await page.tab.evaluate(() => document.activeElement.textContent), 'Cancel');
  isCut = false;
  await at(page, 'share-link').waitFor();
  assert.ok(puts > 1);
  await press(page, 'Escape');

  isCut = true;
  await openShare(page);
  await at(page, 'share-go').click();
  await at(page, 'share-waiting').waitFor();
  isCut = false;
  const [deleted] = await Promise.all([
    page.tab.waitForResponse((answer) => answer.request().method() === 'DELETE'),
    at(page, 'share-cancel').click(),
  ]);
  assert.equal(deleted.status(), 204);
  await at(page, 'share-go').waitFor();
  // The browser reports each request that the cut ended.
  page.complaints.length = 0;
});

test('everything in the dialog is reached by keys alone', async (t) => {
  await startServer(t);
  const page = await openPage(t);
  await page.loadSample();
  await openShare(page);
  await at(page, 'share-go').waitFor();
  await until('a control has the focus', () => page.tab.evaluate(() => document.activeElement.tagName), (tag) => tag !== 'DIV');
  const seen = new Set();
  for (let step = 0; step < 30; step += 1) {
    await press(page, 'Tab');
    const [inside, name] = await page.tab.evaluate(() => [document.activeElement.closest('[role=dialog]') !== null, document.activeElement.dataset.testid]);
    assert.ok(inside, 'the focus stays in the dialog');
    seen.add(name);
  }
  for (const name of ['share-paths', 'share-annotations', 'share-name', 'share-expiry', 'share-password', 'share-go', 'save-file', 'dialog-close']) {
    assert.ok(seen.has(name), name);
  }
  await at(page, 'share-name').fill('by keys');
  await press(page, 'Enter');
  await says(page, 'share-made', /^The link opens “by keys”/);
  assert.equal(await page.tab.evaluate(() => document.activeElement.closest('[role=dialog]') !== null), true);
  await at(page, 'share-done').click();
  await at(page, 'share').waitFor({ state: 'detached' });
});

test('a running job is shared as it is at this moment, or as it goes on', async (t) => {
  const server = await startServer(t, emptyFolder(t));
  startJob(t, server.url, 'transformer', '--rate', '2000', '--steps', '4000');
  const page = await openPage(t);
  await at(page, 'session').first().waitFor();
  await at(page, 'session-open').first().click();
  await page.reach('ready');
  await openShare(page);
  assert.ok(number(await leaves(page, 'events')) > 0);
  assert.equal(await at(page, 'share-damage').count(), 0, 'its end is not missing');
  await page.screenshot('share-live');
  await at(page, 'share-follow').check();
  assert.match(await at(page, 'share-link').inputValue(), /#v=\d+&session=[a-z2-7]{26}&.*tab=timeline/);
  await says(page, 'share-terms', /^The link only opens on this machine\. It works as long as the server keeps/);
  await page.screenshot('share-follow');
  await at(page, 'share-moment').check();
  const described = number(await leaves(page, 'events'));
  const link = await share(page);
  assert.match(link, /\/s-[a-z2-7]{39}#v=/);
  // The copy is of the moment when it was shared, not of the one when the dialog was opened.
  const shared = await (await fetch(new URL(`api/v1/traces/${/s-([a-z2-7]{39})/.exec(link)[1]}`, server.url))).json();
  assert.ok(shared.events > described, `${shared.events} events, and ${described} before`);
  const other = await openPage(t);
  await other.tab.goto(link);
  await other.reach('ready');
  await goTo(other, 'Findings');
  await at(other, 'file-facts').waitFor();
  assert.doesNotMatch(await other.tab.locator('#app').innerText(), /damaged|truncated/);
});

test('a page without such a server says why there is no link', async (t) => {
  await startServer(t);
  const page = await openPage(t);
  await page.tab.route('**/api/v1/traces/sharing', (route) => route.fulfill({ status: 404, body: 'no' }));
  await page.loadSample();
  await openShare(page);
  await says(page, 'share-no-server', /A link needs a server/);
  assert.equal(await at(page, 'share-go').count(), 0);
  const { name } = await saved(page, 'save-file');
  assert.match(name, /\.vramscope$/);
  await says(page, 'share-said', new RegExp(`saves the copy as ${name}`));
  // The browser reports the answer "not found" as an error.
  page.complaints.length = 0;
});
