// People use the page with a screen reader, in colours of their own, or without a pointer.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { violations } from './axe.mjs';
import { openPage } from './page.mjs';
import { emptyFolder, programPath, startJob, startServer } from './program.mjs';
import { share, sharedRecording, startFront } from './sharing.mjs';
import { at, goTo, movesFrom, openSample, press, says, status, tabs, text, until } from './workbench.mjs';

const WIDE = { width: 1440, height: 900 };
const PHONE = { width: 390, height: 844, touch: true };

/** Checks that axe finds nothing wrong. */
async function isSound(page, what) {
  assert.deepEqual(await violations(page), [], what);
}

/** Waits until a dialog is closed. */
const gone = (page, name) => until(`${name} is closed`, () => at(page, name).count(), (count) => count === 0);

for (const [name, size] of [['a wide page', WIDE], ['a phone', PHONE]]) {
  for (const theme of ['light', 'dark']) {
    test(`axe finds nothing on ${name}, in ${theme}`, async (t) => {
      const page = await openPage(t, { ...size, theme });
      await isSound(page, 'the start page');
      await at(page, 'start-explain').click();
      await isSound(page, 'the dialog for errors');
      await press(page, 'Escape');
      await gone(page, 'explain');
      await page.drop({ name: 'notes.dat', mimeType: 'application/octet-stream', buffer: Buffer.from('only words\n'.repeat(50)) });
      await page.reach('error');
      await isSound(page, 'a file of another format');
      await at(page, 'close-failed').click();
      await openSample(page);
      await at(page, 'text-twin').waitFor({ state: 'attached' });
      for (const tab of await tabs(page)) {
        await goTo(page, tab);
        await until('the view has come', () => page.tab.getByRole('tabpanel').evaluate((view) => view.childElementCount));
        await isSound(page, tab);
        if (tab === 'Flame') {
          await page.tab.getByRole('button', { name: 'Table', exact: true }).click();
          await at(page, 'flame-row').first().waitFor();
          await isSound(page, 'the table of the flame graph');
        }
      }
      await goTo(page, 'Timeline');
      if (size === PHONE) await at(page, 'sheet-handle').click();
      await at(page, 'legend-row').first().click();
      await at(page, 'frame').first().waitFor();
      await isSound(page, 'a line in the details');
      for (const [key, dialog] of [['?', 'help'], ['Control+k', 'palette'], ['u', 'share']]) {
        await press(page, key);
        await at(page, dialog === 'share' ? 'share-size' : dialog).waitFor();
        await isSound(page, dialog);
        await press(page, 'Escape');
        await gone(page, dialog);
      }
      await at(page, 'file-menu').click();
      await isSound(page, 'the menu of files');
    });
  }
}

test('axe finds nothing on a sweep', async (t) => {
  const file = join(emptyFolder(t), 'sweep.json');
  execFileSync(programPath(), ['sweep', 'transformer', 'batch=1..3', '--steps', '2', '--out', file], { stdio: 'ignore' });
  for (const size of [WIDE, PHONE]) {
    const page = await openPage(t, { ...size, theme: 'dark' });
    await page.load(file);
    await at(page, 'sweep-plot').waitFor();
    await isSound(page, 'a sweep');
  }
});

test('the title names the file and the verdict, and both are announced', async (t) => {
  const page = await openPage(t);
  assert.equal(await page.tab.title(), 'Vramscope');
  await openSample(page);
  await until('the verdict is in the title', () => page.tab.title(), (title) => /^sample\S* · out of memory, [a-z ]+ · Vramscope$/.test(title));
  const said = await says(page, 'alarm', /^Out of memory at event [\d,]+\. [A-Z]/);
  assert.equal(await at(page, 'alarm').getAttribute('aria-live'), 'assertive');
  assert.ok(said.includes(await at(page, 'verdict-headline').getAttribute('title')), said);
  await page.drop({ name: 'notes.dat', mimeType: 'application/octet-stream', buffer: Buffer.from('only words\n'.repeat(50)) });
  await page.reach('error');
  assert.equal(await page.tab.title(), "notes.dat · can't be opened · Vramscope");
});

test('the first stop of the keyboard skips to the view', async (t) => {
  const page = await openPage(t);
  const link = page.tab.getByRole('link', { name: 'Skip to the view' });
  await press(page, 'Tab');
  assert.ok(await link.evaluate((link) => link === document.activeElement), 'it comes first');
  const shown = await link.boundingBox();
  assert.ok(shown.x >= 0 && shown.y >= 0 && shown.height >= 24, `it is seen: ${JSON.stringify(shown)}`);
  await press(page, 'Enter');
  assert.equal(await page.tab.evaluate(() => document.activeElement.tagName), 'MAIN');
  await openSample(page);
  const hash = () => new URL(page.tab.url()).hash;
  const before = await until('the address names the file', hash, (now) => now.includes('hash='));
  await link.focus();
  await press(page, 'Enter');
  assert.equal(await page.tab.evaluate(() => document.activeElement.getAttribute('role')), 'tabpanel');
  assert.equal(hash(), before);
  await press(page, 'Tab');
  assert.ok(await page.tab.evaluate(() => document.activeElement.closest('[role=tabpanel]') !== null), 'the next stop is in the view');
});

test('the focus returns to what opened a dialog or a menu', async (t) => {
  for (const size of [WIDE, PHONE]) {
    const page = await openPage(t, size);
    await openSample(page);
    const focused = () => page.tab.evaluate(() => document.activeElement?.dataset.testid ?? '');
    const returns = (name) => until(`the focus is on ${name}`, focused, (now) => now === name);
    await at(page, 'share-button').focus();
    await press(page, 'Enter');
    await at(page, 'share-size').waitFor();
    await press(page, 'Escape');
    await returns('share-button');
    await at(page, 'file-menu').focus();
    await press(page, 'ArrowDown');
    await returns('file-row');
    await press(page, 'Escape');
    await returns('file-menu');
    if (size === PHONE) {
      await at(page, 'more-menu').focus();
      await press(page, 'Enter');
      await returns('more-palette');
      await press(page, 'Enter');
      await at(page, 'palette').waitFor();
      await press(page, 'Escape');
      await returns('more-menu');
    }
    // A dialog keeps the focus inside, in both directions.
    await press(page, 'u');
    await at(page, 'share-size').waitFor();
    for (const key of ['Shift+Tab', 'Tab', 'Tab', 'Shift+Tab', 'Shift+Tab', 'Shift+Tab']) {
      await press(page, key);
      assert.ok(await page.tab.evaluate(() => document.activeElement.closest('[role=dialog]') !== null), key);
    }
  }
});

test('each picture has a text with the same numbers, which follows the same keys', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  for (const [tab, picture, pattern] of [
    ['Timeline', 'timeline-canvas', /Showing .* Peak: [\d.]+ [KMG]iB requested at event/],
    ['Segments', 'segments-canvas', /Segment map: \d+ segments?, .* cached in \d+ gaps?, largest gap/],
    ['Heatmap', 'heatmap-canvas', /Heatmap: at the cursor [\d.]+ [KMG]iB allocated/],
  ]) {
    await goTo(page, tab);
    await says(page, 'text-twin', pattern);
    assert.equal(await at(page, picture).getAttribute('aria-describedby'), 'text-twin');
    assert.equal(await page.tab.locator('#text-twin').count(), 1);
    await at(page, picture).focus();
    const { position } = await status(page);
    await press(page, ',');
    const now = await movesFrom(page, position);
    await until('the text follows the key', () => text(page, 'text-twin'), (said) => said.includes(`Cursor at event ${now.position.toLocaleString('en')}:`));
  }
  // The numbers of the segment map are those of the status line.
  await goTo(page, 'Segments');
  const line = (await status(page)).text;
  const [, gap] = /largest gap ([\d.]+ [KMG]iB)/.exec(line);
  await says(page, 'text-twin', new RegExp(`largest gap ${gap}`));

  await goTo(page, 'Flame');
  const sum = /([\d.]+ [KMG]iB) in/.exec(await says(page, 'flame-sum', /in [\d,]+ alloc/))[1];
  await says(page, 'text-twin', new RegExp(`Flame graph: ${sum} in [\\d,]+ allocations`));
  const rows = await until('the largest frames', () => at(page, 'text-twin').getByRole('row').allInnerTexts(), (rows) => rows.length > 3);
  assert.ok(rows.slice(1).every((row) => /[KMG]?i?B\s+[\d,]+$/.test(row.trim())), rows.join('\n'));
});

test('one window has one number of allocations, on any screen and in the text', async (t) => {
  const seen = [];
  for (const size of [WIDE, { width: 1100, height: 700 }, PHONE]) {
    const page = await openPage(t, size);
    await openSample(page);
    // The window before the failure is the same everywhere.
    await at(page, 'verdict-show').click();
    const note = await says(page, 'timeline-note', /^\d{1,3} allocations in view/);
    const said = await says(page, 'text-twin', /Showing events [\d,]+ to [\d,]+, \d{1,3} allocations/);
    const count = /^[\d,]+/.exec(note)[0];
    assert.ok(said.includes(`, ${count} allocations. `), `${note}: ${said}`);
    seen.push(count);
    // None of its digits is cut off.
    const isWhole = await at(page, 'timeline-note').evaluate((note) => note.scrollWidth <= note.clientWidth + 1);
    assert.ok(isWhole, `${size.width}: ${note}`);
  }
  assert.equal(new Set(seen).size, 1, seen.join(', '));
});

test('the text tells of both of two views', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await at(page, 'split-toggle').click();
  await says(page, 'text-twin', /Showing .* Peak: .* Beside it: Segment map: \d+ segments?/);
});

test('in forced colours the focus, what is pressed and the key of the colours are seen', async (t) => {
  const page = await openPage(t, { ...WIDE, forcedColors: 'active' });
  await openSample(page);
  await page.screenshot('forced-timeline');
  await goTo(page, 'Segments');
  const colors = await page.tab.evaluate(() => {
    const of = (element) => getComputedStyle(element).backgroundColor;
    const pressed = document.querySelector('.choice[aria-pressed="true"]');
    return {
      pressed: of(pressed),
      other: of(document.querySelector('.choice[aria-pressed="false"]')),
      key: of(document.querySelector('.state-swatch.allocated')),
      page: of(document.body),
    };
  });
  assert.notEqual(colors.pressed, colors.other, 'what is pressed differs');
  assert.notEqual(colors.key, colors.page, 'the key keeps its colours');
  await page.screenshot('forced-segments');
  for (let times = 0; times < 12; times += 1) {
    await press(page, 'Tab');
    const outline = await page.tab.evaluate(() => {
      const element = document.activeElement;
      const style = getComputedStyle(element.closest('.search-box') ?? element);
      return { name: element.outerHTML.slice(0, 80), style: style.outlineStyle, width: parseFloat(style.outlineWidth) };
    });
    assert.ok(outline.style !== 'none' && outline.width >= 1, JSON.stringify(outline));
  }
});

test('nothing moves where less motion is wanted', async (t) => {
  const page = await openPage(t, PHONE);
  await openSample(page);
  await at(page, 'sheet-handle').click();
  const moving = await page.tab.evaluate(() =>
    [...document.querySelectorAll('*')].filter((element) => {
      const style = getComputedStyle(element);
      const times = `${style.transitionDuration},${style.animationDuration}`.split(',');
      return times.some((time) => parseFloat(time) > 0);
    }).map((element) => element.className));
  assert.deepEqual(moving, []);
  assert.equal(await page.tab.evaluate(() => document.getAnimations().length), 0);
});

// These come last: they start servers of their own, which later journeys of this file would use too.

test('axe finds nothing on a job that runs, and on its dialog', async (t) => {
  const server = await startServer(t);
  startJob(t, server.url, 'transformer', '--rate', '3000', '--steps', '4000');
  for (const size of [WIDE, PHONE]) {
    const page = await openPage(t, size);
    await at(page, 'session').first().waitFor();
    await isSound(page, 'the list of jobs');
    await at(page, 'session-open').first().click();
    await page.reach('ready');
    await isSound(page, 'a job');
    await says(page, 'announced', /: Live$/);
    await press(page, 'Space');
    await says(page, 'announced', /: Paused$/);
    await isSound(page, 'a paused job');
  }
});

test('axe finds nothing on a shared trace, while it is loading and after', async (t) => {
  const server = await startServer(t);
  const link = await share(server.url, await sharedRecording(t, server.url, 'sample'));
  const front = await startFront(t, server.url);
  const first = front.hold(({ path }) => /\/trace$/.test(path));
  const page = await openPage(t, { address: `s-${link.token}` });
  await page.reach('loading');
  await isSound(page, 'loading');
  const rest = front.hold(({ path, range }) => /\/trace$/.test(path) && range?.from > 0);
  first();
  await page.reach('ready');
  // The details come after the picture.
  await at(page, 'text-twin').waitFor({ state: 'attached' });
  await isSound(page, 'a preview');
  rest();
  await until('all of it is here', () => at(page, 'detail-bar').count(), (count) => count === 0);
  await isSound(page, 'all of it');
});
