// A person looks at a file on a phone, in a window beside an editor, or on a laptop at 200 %.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { fingersOf, tooSmall, unreachable } from './touch.mjs';
import { address, addressSays, at, goTo, openSample, press, status, tabs, text, tip, until } from './workbench.mjs';

const PHONE = { width: 390, height: 844, touch: true };

/** Returns what sticks out of the page at its right side, as `class (right edge)`. */
const outside = (page) =>
  page.tab.evaluate(() => {
    // What is inside something that clips or scrolls may be wider than it.
    const isClipped = (element) => {
      for (let parent = element.parentElement; parent; parent = parent.parentElement) {
        if (getComputedStyle(parent).overflowX !== 'visible' && parent !== document.body && parent !== document.documentElement) return true;
      }
      return false;
    };
    return [...document.body.querySelectorAll('*')]
      .map((element) => [element, element.getBoundingClientRect().right])
      .filter(([element, right]) => right > innerWidth + 1 && !isClipped(element))
      .map(([element, right]) => `${element.className || element.tagName} (${Math.round(right)})`);
  });

/** Checks that two parts of the page don't overlap, and that the first is above the second. */
async function isAbove(page, first, second) {
  const [above, below] = [await first.boundingBox(), await second.boundingBox()];
  assert.ok(above.y + above.height <= below.y + 1, `${JSON.stringify(above)} is above ${JSON.stringify(below)}`);
}

/** Returns the height of the sheet: `closed`, `peek` or `open`. */
const height = (page) =>
  at(page, 'details-pane').evaluate((sheet) => /is-(closed|peek|open)/.exec(sheet.className)[1]);

/** Waits until the sheet has a height. */
const isNow = (page, name) => until(`the sheet is ${name}`, () => height(page), (now) => now === name);

/** Returns the middle of an element. */
async function middle(locator) {
  const box = await locator.boundingBox();
  return [box.x + box.width / 2, box.y + box.height / 2];
}

for (const theme of ['light', 'dark']) {
  test(`a phone shows every view in full width, in ${theme}`, async (t) => {
    const page = await openPage(t, { ...PHONE, theme });
    assert.deepEqual(await outside(page), [], 'the start page');
    await page.screenshot(`narrow-start-${theme}`);
    await openSample(page);
    for (const tab of await tabs(page)) {
      await goTo(page, tab);
      assert.deepEqual(await outside(page), [], tab);
      await isAbove(page, page.tab.getByRole('tabpanel'), at(page, 'sheet-handle'));
      const button = await page.tab.getByRole('tab', { name: tab }).boundingBox();
      assert.ok(button.x >= 0 && button.x + button.width <= PHONE.width, `the tab ${tab} is in view: ${JSON.stringify(button)}`);
      await page.screenshot(`narrow-${tab.toLowerCase()}-${theme}`);
    }
    await isAbove(page, at(page, 'more-menu'), page.tab.getByRole('search'));
    await goTo(page, 'Timeline');
    const { height } = await at(page, 'timeline-canvas').boundingBox();
    assert.ok(height >= 340, `the picture has ${height} px`);
  });
}

test('on a phone, a button unfolds the verdict and what to try', async (t) => {
  const page = await openPage(t, PHONE);
  await openSample(page);
  const advice = at(page, 'verdict').getByRole('list', { name: 'What to try' });
  const fold = at(page, 'verdict-fold');
  await fold.waitFor();
  const { x, width } = await fold.boundingBox();
  assert.ok(x >= 0 && x + width <= 390, `it is seen without scrolling, at ${x}`);
  assert.equal(await advice.isVisible(), false);
  await fold.click();
  await advice.waitFor();
  const sentence = at(page, 'verdict').getByTestId('verdict-sentence');
  assert.ok(await sentence.evaluate((said) => said.scrollHeight <= said.clientHeight + 1), 'all of the sentence is shown');
  await page.screenshot('narrow-verdict-more');
  await fold.click();
  await until('it is folded', () => advice.isVisible(), (is) => !is);
});

/** Returns the height of the picture in the view, and whether its canvas has as many pixels as it has on the screen. */
const picture = (page) =>
  page.tab.evaluate(() => {
    const canvas = document.querySelector('.view-pane canvas');
    // The tab has just been opened.
    if (!canvas) return { height: 0, isDrawn: false };
    const { width, height } = canvas.getBoundingClientRect();
    const ratio = Math.min(Math.max(devicePixelRatio, 1), 2);
    const isDrawn = Math.abs(canvas.width - width * ratio) <= 1 && Math.abs(canvas.height - height * ratio) <= 1;
    return { height, isDrawn };
  });

for (const theme of ['light', 'dark']) {
  for (const [width, height] of [[390, 844], [844, 390], [720, 450], [512, 350], [1024, 520]]) {
    test(`the picture keeps its room at ${width}x${height}, in ${theme}`, async (t) => {
      const page = await openPage(t, { width, height, touch: height === 844 || height === 390, theme });
      await openSample(page);
      for (const tab of ['Timeline', 'Segments', 'Flame', 'Heatmap']) {
        await goTo(page, tab);
        await until(`a picture of ${tab}`, () => picture(page), (now) => now.height >= 200 && now.isDrawn);
        await page.screenshot(`low-${width}x${height}-${tab.toLowerCase()}-${theme}`);
      }
      // All of it can be scrolled to, and the card is one line.
      await goTo(page, 'Timeline');
      if (height < 560) {
        assert.ok((await at(page, 'verdict').boundingBox()).height <= 48);
        await at(page, 'verdict-fold').click();
        await at(page, 'verdict-sentence').first().waitFor();
        await at(page, 'verdict-fold').click();
      }
      // What is selected takes no more than what the picture can spare.
      await press(page, 'Enter');
      await until('something is selected', async () => (await address(page)).get('sel'), Boolean);
      await until('the picture stays', () => picture(page), (now) => now.height >= 200 && now.isDrawn);
      await page.screenshot(`low-${width}x${height}-selected-${theme}`);
    });
  }
}

test('on a phone on its side, the picture comes first, and a finger scrolls', async (t) => {
  const page = await openPage(t, { width: 844, height: 390, touch: true });
  await page.loadSample();
  const scrolled = () => page.tab.evaluate(() => document.querySelector('.workbench').scrollTop);
  await until('the overview is scrolled away', scrolled, (top) => top > 30);
  const top = async (name) => (await at(page, name).boundingBox()).y;
  const sheet = await top('sheet-handle');
  assert.ok(sheet - await top('timeline-canvas') > 150, 'most of the picture is in view');
  assert.ok(await top('timeline-canvas') < await page.tab.getByRole('toolbar', { name: 'Timeline' }).evaluate((bar) => bar.getBoundingClientRect().y));
  assert.equal(await at(page, 'timeline-canvas').evaluate((canvas) => getComputedStyle(canvas).touchAction), 'pan-y');
});

test('a window that is turned draws its picture anew', async (t) => {
  const page = await openPage(t, { width: 720, height: 450 });
  await openSample(page);
  await page.tab.setViewportSize({ width: 844, height: 390 });
  for (const tab of ['Segments', 'Heatmap', 'Timeline']) {
    await goTo(page, tab);
    await until('it is drawn', () => picture(page), (now) => now.height >= 200 && now.isDrawn);
  }
  await page.tab.setViewportSize({ width: 390, height: 844 });
  await until('it is drawn upright', () => picture(page), (now) => now.height >= 200 && now.isDrawn);
});

test('the tooltip of a finger stands at its side, below the names of steps', async (t) => {
  const page = await openPage(t, PHONE);
  await openSample(page);
  const fingers = await fingersOf(page);
  const box = await at(page, 'timeline-canvas').boundingBox();
  for (const share of [0.3, 0.5, 0.8]) {
    const [x, y] = [box.x + share * box.width, box.y + 0.8 * box.height];
    await fingers.down([x, y]);
    await until('the tooltip', () => tip(page), Boolean);
    const told = await page.tab.locator('.canvas-tip').boundingBox();
    await page.screenshot(`narrow-tooltip-${share}`);
    await fingers.up();
    assert.ok(told.x >= x + 20 || told.x + told.width <= x - 20, `${JSON.stringify(told)} at ${x}`);
    assert.ok(told.x >= 0 && told.x + told.width <= PHONE.width, JSON.stringify(told));
    assert.ok(told.y >= box.y + 60, `below the strips: ${JSON.stringify(told)} in ${JSON.stringify(box)}`);
  }
});

test('a finger that rests longer opens the menu of what is below it', async (t) => {
  const page = await openPage(t, PHONE);
  await openSample(page);
  const fingers = await fingersOf(page);
  const box = await at(page, 'timeline-canvas').boundingBox();
  await fingers.down([box.x + 0.6 * box.width, box.y + 0.85 * box.height]);
  const menu = page.tab.getByRole('menu');
  await menu.waitFor();
  const items = await menu.getByRole('menuitem').allInnerTexts();
  await fingers.up();
  for (const name of [/^Copy stack/, /^Filter to this/]) assert.ok(items.some((item) => name.test(item)), items.join(', '));
  assert.deepEqual(await tooSmall(page), []);
  await page.screenshot('narrow-menu');
});

test('the details are a sheet with three heights, which loses nothing', async (t) => {
  const page = await openPage(t, PHONE);
  await openSample(page);
  await until('the address names the file', async () => (await address(page)).get('hash'));
  const before = { line: await status(page), link: (await address(page)).toString() };
  assert.equal(await height(page), 'closed');
  assert.equal(await at(page, 'details').count(), 0);
  const handle = at(page, 'sheet-handle');
  assert.match(await handle.innerText(), /Details\s+event [\d,]+/);

  // By a press.
  for (const name of ['peek', 'open', 'closed']) {
    await handle.click();
    await isNow(page, name);
    assert.equal(await handle.getAttribute('aria-expanded'), String(name !== 'closed'));
    await page.screenshot(`narrow-sheet-${name}`);
  }
  // By keys.
  await handle.focus();
  for (const [key, name] of [['ArrowUp', 'peek'], ['ArrowUp', 'open'], ['ArrowDown', 'peek'], ['End', 'closed'], ['Home', 'open'], ['End', 'closed']]) {
    await press(page, key);
    await isNow(page, name);
  }
  await press(page, 'i');
  await isNow(page, 'peek');
  await press(page, 'i');
  await isNow(page, 'closed');
  // By a finger: with a long drag, and with a flick.
  const fingers = await fingersOf(page);
  const drag = async (to) => {
    const [x, y] = await middle(handle);
    await fingers.drag([x, y], [x, to(y)]);
  };
  await drag(() => 520);
  await isNow(page, 'peek');
  await drag((y) => y - 90);
  await isNow(page, 'open');
  await drag(() => 820);
  await isNow(page, 'closed');
  assert.deepEqual({ line: await status(page), link: (await address(page)).toString() }, before);

  // The sheet shows what is selected, and the view stays in sight.
  await goTo(page, 'Events');
  await page.tab.locator('[data-testid="event-row"]').nth(3).click();
  await isNow(page, 'peek');
  await at(page, 'details').waitFor();
  await isAbove(page, page.tab.getByRole('tabpanel'), handle);
  const selected = await until('the selection is in the address', async () => (await address(page)).get('sel'));
  await handle.click();
  await handle.click();
  await isNow(page, 'closed');
  assert.equal((await address(page)).get('sel'), selected);

  // A wider page shows the same beside the view.
  await page.tab.setViewportSize({ width: 1024, height: 700 });
  await until('the sheet is gone', () => handle.count(), (count) => count === 0);
  assert.equal((await address(page)).get('sel'), selected);
});

test('a finger hits everything', async (t) => {
  const page = await openPage(t, PHONE);
  assert.deepEqual(await tooSmall(page), [], 'the start page');
  await openSample(page);
  for (const tab of await tabs(page)) {
    await goTo(page, tab);
    assert.deepEqual(await tooSmall(page), [], tab);
  }
  await goTo(page, 'Timeline');
  await at(page, 'sheet-handle').click();
  await at(page, 'details').waitFor();
  assert.deepEqual(await tooSmall(page), [], 'the details');
  await at(page, 'sheet-handle').click();
  await at(page, 'legend-row').first().click();
  await at(page, 'frame').first().waitFor();
  assert.deepEqual(await tooSmall(page), [], 'a line');
  await press(page, 'End');
  for (const [name, row] of [['palette', 'more-palette'], ['help', 'more-help']]) {
    await at(page, 'more-menu').click();
    assert.deepEqual(await tooSmall(page), [], 'the menu');
    await at(page, row).click();
    await at(page, name).waitFor();
    assert.deepEqual(await tooSmall(page), [], name);
    await page.screenshot(`narrow-${name}`);
    await press(page, 'Escape');
  }
  await at(page, 'share-button').click();
  await at(page, 'share-size').waitFor();
  assert.deepEqual(await tooSmall(page), [], 'sharing');
  await page.screenshot('narrow-share');
});

test('fingers pan, pinch and tap, and one that rests shows the tooltip', async (t) => {
  const page = await openPage(t, PHONE);
  await openSample(page);
  const fingers = await fingersOf(page);
  const canvas = at(page, 'timeline-canvas');
  const box = await canvas.boundingBox();
  const place = (x, y) => [box.x + x * box.width, box.y + y * box.height];
  const shown = async () => (await address(page)).get('w');

  await fingers.down(place(0.5, 0.5), place(0.6, 0.5));
  await fingers.move(place(0.4, 0.5), place(0.7, 0.5));
  await fingers.move(place(0.3, 0.5), place(0.8, 0.5));
  await fingers.up();
  const zoomed = await until('two fingers zoomed', shown, Boolean);
  await fingers.drag(place(0.4, 0.5), place(0.6, 0.5));
  await until('one finger moved it', shown, (now) => now && now !== zoomed);

  // A finger that rests shows the tooltip of what is below it, and selects nothing.
  const { position } = await status(page);
  let told = '';
  for (const y of [0.85, 0.75, 0.65, 0.95]) {
    await fingers.down(place(0.6, y));
    await until('the finger rested', () => canvas.evaluate((host) => host.matches('[data-testid]')));
    told = await until('the tooltip', () => tip(page), Boolean).catch(() => '');
    if (told) {
      const before = told;
      await fingers.move(place(0.62, y));
      await page.screenshot('narrow-tooltip');
      await fingers.up();
      assert.ok((await tip(page)) || before, 'it stays once the finger is lifted');
      break;
    }
    await fingers.up();
  }
  assert.match(told, /[KMG]iB/);
  assert.equal((await address(page)).get('sel'), null);
  assert.equal((await status(page)).position, position);
  assert.equal(await height(page), 'closed');

  // A tap selects.
  for (const y of [0.9, 0.8, 0.7]) {
    await fingers.tap(place(0.6, y));
    if (await until('something is selected', async () => (await address(page)).get('sel'), Boolean).catch(() => '')) break;
  }
  await isNow(page, 'peek');
});

for (const [width, height] of [[720, 450], [512, 350], [844, 390]]) {
  test(`at 200 %, ${width}x${height}, everything is reached`, async (t) => {
    const page = await openPage(t, { width, height });
    assert.deepEqual(await unreachable(page), [], 'the start page');
    assert.deepEqual(await outside(page), [], 'the start page');
    await openSample(page);
    for (const tab of await tabs(page)) {
      await goTo(page, tab);
      assert.deepEqual(await outside(page), [], tab);
      assert.deepEqual(await unreachable(page), [], tab);
      await page.screenshot(`narrow-${width}-${tab.toLowerCase()}`);
    }
    await at(page, 'sheet-handle').click();
    await at(page, 'sheet-handle').click();
    await at(page, 'details').waitFor();
    await page.screenshot(`narrow-${width}-details`);
    await press(page, 'End');
    for (const [key, name] of [['?', 'help'], ['Control+k', 'palette'], ['u', 'share']]) {
      await press(page, key);
      await at(page, name).waitFor();
      assert.deepEqual(await unreachable(page), [], name);
      await page.screenshot(`narrow-${width}-${name}`);
      await press(page, 'Escape');
      await until(`${name} is closed`, () => at(page, name).count(), (count) => count === 0);
    }
  });
}
