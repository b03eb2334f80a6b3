// A person opens recordings: whole ones, one that was cut off, one of a later version, and one with gaps.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openPage } from './page.mjs';
import { at, press, until } from './workbench.mjs';

const fixture = (name) => fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url));
const file = (name, buffer) => ({ name, mimeType: 'application/octet-stream', buffer });

/** Returns the codes and the texts of the findings. */
async function findings(page) {
  await press(page, '5');
  await at(page, 'findings').waitFor();
  const rows = at(page, 'findings').getByTestId('finding');
  return { codes: await rows.evaluateAll((rows) => rows.map((row) => row.dataset.code)), text: (await rows.allInnerTexts()).join('\n') };
}

for (const theme of ['light', 'dark']) {
  test(`a gap is shown wherever time is shown (${theme})`, async (t) => {
    const page = await openPage(t, { theme });
    await page.load(fixture('recording_gap.vramscope'));
    await page.screenshot(`gap-timeline-${theme}`);

    // The tooltip of a loss says what is missing. The finding's button moves to it.
    const { codes, text } = await findings(page);
    assert.ok(codes.includes('events_lost'), codes.join());
    const [, lost] = text.match(/([\d,]+) events were lost while recording/);
    const facts = await at(page, 'file-facts').innerText();
    assert.match(facts, /Host\s+node-7/);
    assert.match(facts, /Job\s+pretrain, rank 3/);
    assert.match(facts, /Started\s+\d{4}-\d\d-\d\d .* UTC/);
    assert.match(facts, /PyTorch 2\.11 rules/);
    assert.match(facts, new RegExp(`Lost\\s+${lost} events`));
    assert.match(await at(page, 'settings').innerText(), /PYTORCH_CUDA_ALLOC_CONF|expandable_segments/);
    await at(page, 'settings').scrollIntoViewIfNeeded();
    await page.screenshot(`gap-facts-${theme}`);

    await at(page, 'findings').locator('[data-code=events_lost]').getByTestId('finding-show').click();
    await press(page, '1');
    const canvas = await at(page, 'timeline-canvas').boundingBox();
    const tip = page.tab.locator('.timeline .canvas-tip');
    let said = '';
    for (let x = canvas.x + 70; x < canvas.x + canvas.width - 12 && !/lost/.test(said); x += 3) {
      await page.tab.mouse.move(x, canvas.y + canvas.height / 2);
      said = await tip.innerText();
    }
    assert.match(said, /[\d,]+ events lost: [\d,]+ alloc/);
    assert.match(said, /are not exact/);
    await page.screenshot(`gap-pointed-at-${theme}`);

    const strip = await at(page, 'overview-canvas').boundingBox();
    let title = '';
    for (let x = strip.x + 70; x < strip.x + strip.width - 12 && !/lost/.test(title); x += 2) {
      await page.tab.mouse.move(x, strip.y + 40);
      title = (await at(page, 'overview-canvas').getAttribute('title')) ?? '';
    }
    assert.match(title, /^[\d,]+ events lost/);

    // In the list the loss is a row in its place, and stepping skips it.
    await press(page, '4');
    await at(page, 'lost-row').first().waitFor();
    await page.screenshot(`gap-events-${theme}`);
    assert.match(await at(page, 'events-count').innerText(), new RegExp(`${lost} lost`));
    const grid = page.tab.locator('[role=grid]');
    await grid.focus();
    const cursor = () => page.tab.locator('.event-row.is-cursor').getAttribute('data-event');
    const before = Number(await until('a cursor row', cursor, Boolean));
    await page.tab.keyboard.press('ArrowDown');
    await until('the next event', cursor, (event) => Number(event) === before + 1);
    await page.tab.keyboard.press('ArrowUp');
    await until('the event before', cursor, (event) => Number(event) === before);
    await at(page, 'events-lost').click();
    const rows = page.tab.getByTestId('event-row');
    await until('only gaps', () => rows.count(), (count) => count > 0 && count < 10);
    assert.equal(await at(page, 'lost-row').count(), await rows.count());
  });
}

test('a truncated recording shows what was read, and is reported as truncated', async (t) => {
  const page = await openPage(t, { width: 1024, height: 700 });
  const whole = readFileSync(fixture('recording_gap.vramscope'));
  await page.load(file('killed.vramscope', whole.subarray(0, Math.round(whole.length * 0.6))));
  await page.screenshot('recording-cut');
  const { codes, text } = await findings(page);
  assert.ok(codes.includes('truncated'), codes.join());
  assert.match(text, /was not ended/);
  await page.screenshot('recording-cut-findings');
});

test('a recording of a later version is refused with a sentence', async (t) => {
  const page = await openPage(t);
  const later = Buffer.from(readFileSync(fixture('recording_1_0.vramscope')));
  later.writeUInt16LE(2, 8);
  await page.drop(file('later.vramscope', later));
  await page.reach('error');
  assert.match(await page.alerts(), /version/i);
  assert.match(await page.alerts(), /newer|later|update/i);
  await page.screenshot('recording-later');
});

test('a recording opens like any file', async (t) => {
  const page = await openPage(t);
  await page.load(fixture('recording_1_0.vramscope'));
  const { codes } = await findings(page);
  assert.deepEqual(codes.toSorted(), ['events_lost', 'inconsistent', 'unknown_action']);
});

test('nothing in a recording becomes HTML', async (t) => {
  const page = await openPage(t);
  await page.load(fixture('recording_markup.vramscope'));
  for (const key of ['1', '2', '3', '4', '5']) {
    await press(page, key);
    await page.tab.waitForTimeout(200);
    assert.equal(await page.tab.locator('img, b:text-is("bold")').count(), 0, `tab ${key}`);
  }
  assert.match(await at(page, 'file-facts').innerText(), /Host\s+<img src=x onerror=/);
  assert.match(await at(page, 'settings').innerText(), /<b>bold<\/b>/);
  assert.match(await page.tab.title(), /^recording_markup/);
  await page.screenshot('recording-markup');
});
