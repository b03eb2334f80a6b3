// A person moves about by hand: drags, wheels and keys do the same on every picture over time.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { address, addressSays, answered, at, goTo, movesFrom, openSample, pointUntil, press, says, standsAt, status, text, until } from './workbench.mjs';
import { trainingJob } from './training.mjs';

/** Returns two numbers of the address bar; null if it has none. */
async function pair(page, name) {
  const found = (await address(page)).get(name);
  return found && found.split(',').map(Number);
}
const shown = (page) => pair(page, 'w');
const differs = (before) => (now) => now && String(now) !== String(before);
const length = ([start, end]) => end - start;

/** Opens the sample and shows all of it. Returns the status line. */
async function openWhole(page) {
  const opened = await openSample(page);
  await press(page, 'Shift+f');
  await until('everything is shown', () => address(page), (now) => now.has('file') && !now.has('w') && !now.has('y'));
  return opened;
}

/** Moves the mouse to a place of a canvas, given in shares of its width and height. */
async function point(page, name, x, y = 0.5) {
  const box = await at(page, name).boundingBox();
  await page.tab.mouse.move(box.x + x * box.width, box.y + y * box.height);
}

async function drag(page, name, from, to) {
  await point(page, name, from);
  await page.tab.mouse.down();
  await point(page, name, (from + to) / 2);
  await point(page, name, to);
  await page.tab.mouse.up();
}

/** Sends one finger's or two fingers' pointer events to a canvas; places are shares of its width. */
function touch(page, name, steps) {
  return at(page, name).evaluate((host, steps) => {
    const box = host.getBoundingClientRect();
    // A pointer of a synthetic event can't be captured.
    host.setPointerCapture = () => {};
    for (const [type, id, x, y = 0.5] of steps) {
      host.dispatchEvent(new PointerEvent(type, {
        pointerId: id, pointerType: 'touch', isPrimary: id === 1, bubbles: true, cancelable: true,
        clientX: box.left + x * box.width, clientY: box.top + y * box.height,
      }));
    }
  }, steps);
}

test('a range has a button that zooms to it, on the overview and on every picture over time', async (t) => {
  const page = await openPage(t);
  await openWhole(page);
  for (const tab of ['Timeline', 'Heatmap']) {
    await goTo(page, tab);
    const canvas = `${tab.toLowerCase()}-canvas`;
    await drag(page, canvas, 0.4, 0.6);
    const range = await until('a range', () => pair(page, 'r'));
    assert.equal(await shown(page), null, 'a drag alone does not zoom');
    const button = at(page, canvas).locator('.range-button');
    await button.waitFor();
    await page.screenshot(`gestures-range-${tab}`);
    await button.click();
    await addressSays(page, 'w', `${range[0]},${range[1] + 1}`);
    assert.deepEqual(await pair(page, 'r'), range, 'the press on the button is no gesture of the picture');
    await until('the button is gone', () => button.count(), (count) => count === 0);
    await press(page, 'Escape');
    await addressSays(page, 'r', null);
    await press(page, 'Shift+f');
    await until('everything is shown', () => shown(page), (now) => now === null);
  }
  await goTo(page, 'Events');
  await drag(page, 'overview-canvas', 0.3, 0.5);
  const range = await until('a range', () => pair(page, 'r'));
  await at(page, 'overview-range-zoom').click();
  await addressSays(page, 'w', `${range[0]},${range[1] + 1}`);
});

test('wheel, pinch and Ctrl+wheel zoom the x axis, on the overview too', async (t) => {
  const page = await openPage(t);
  await openWhole(page);
  for (const canvas of ['timeline-canvas', 'overview-canvas']) {
    await point(page, canvas, 0.5);
    await page.tab.mouse.wheel(0, -240);
    const zoomed = await until(`${canvas}: the wheel zooms`, () => shown(page));
    await page.tab.keyboard.down('Control');
    await page.tab.mouse.wheel(0, -30);
    await page.tab.keyboard.up('Control');
    const pinched = await until(`${canvas}: a trackpad's pinch zooms`, () => shown(page), differs(zoomed));
    assert.ok(length(pinched) < length(zoomed), `${zoomed} to ${pinched}`);
    assert.equal((await address(page)).get('y'), null, 'and not the height');
    await page.tab.keyboard.down('Shift');
    await page.tab.mouse.wheel(0, 60);
    await page.tab.keyboard.up('Shift');
    const panned = await until(`${canvas}: Shift moves`, () => shown(page), differs(pinched));
    assert.ok(panned[0] > pinched[0] && Math.abs(length(panned) - length(pinched)) < 1, `${pinched} to ${panned}`);
    await press(page, 'Shift+f');
    await until('everything is shown', () => shown(page), (now) => now === null);
  }
  // Two fingers on the timeline keep the points under them; on the overview they move the ends of the window.
  const spread = (name, ids) => touch(page, name, [
    ['pointerdown', ids[0], 0.45], ['pointerdown', ids[1], 0.55], ['pointermove', ids[0], 0.3], ['pointermove', ids[1], 0.7],
    ['pointerup', ids[0], 0.3], ['pointerup', ids[1], 0.7],
  ]);
  await spread('timeline-canvas', [1, 2]);
  const first = await until('two fingers zoom', () => shown(page));
  await spread('overview-canvas', [1, 2]);
  const second = await until('two fingers on the overview', () => shown(page), differs(first));
  const { events } = await status(page);
  assert.ok(length(first) < 0.5 * events, `${first} of ${events}`);
  assert.ok(Math.abs(length(second) / events - 0.4) < 0.05, `${second} of ${events}`);
});

test('a double-click zooms to what is under it, and elsewhere shows everything', async (t) => {
  const page = await openPage(t);
  await openWhole(page);
  const { events } = await status(page);
  await point(page, 'timeline-canvas', 0.6);
  await page.tab.mouse.wheel(0, -1200);
  const before = await until('a part', () => shown(page));
  // The lifetime of a block fills the view; if it does already, it fills a quarter.
  const box = await at(page, 'timeline-canvas').boundingBox();
  await pointUntil(page, 'timeline-canvas', [0.95, 0.9, 0.85, 0.8, 0.75, 0.7].map((y) => [0.6, y]), /b[0-9a-f]+_\d+/);
  for (const clickCount of [1, 2]) {
    await page.tab.mouse.down({ clickCount });
    await page.tab.mouse.up({ clickCount });
  }
  await at(page, 'detail-allocation').waitFor();
  const zoomed = await until('the lifetime', () => shown(page), differs(before));
  const steps = await at(page, 'detail-allocation').locator('.steps button').allInnerTexts();
  const positions = steps.map((said) => Number(said.split(' ')[0].replaceAll(',', '')));
  const has = zoomed[0] <= positions[0] && (positions.length < 3 || zoomed[1] >= Math.min(positions.at(-1), events));
  const isQuarter = Math.abs(length(zoomed) / length(before) - 0.25) < 0.01;
  assert.ok(has || isQuarter, `${positions} in ${zoomed}, after ${before}`);

  await page.tab.mouse.dblclick(box.x + box.width * 0.6, box.y + 30);
  await until('everything, or another part', () => shown(page), (now) => String(now) !== String(zoomed));

  // The heatmap shows only the segment, and then all segments again.
  await press(page, 'Shift+f');
  await goTo(page, 'Heatmap');
  await until('the heatmap is drawn', () => text(page, 'heatmap-note'), (said) => / a row/.test(said));
  const map = await at(page, 'heatmap-canvas').boundingBox();
  const place = [map.x + map.width * 0.6, map.y + map.height * 0.5];
  await page.tab.mouse.dblclick(...place);
  await until('one segment', async () => (await address(page)).get('part'));
  assert.equal(await at(page, 'tab-heatmap').getAttribute('aria-selected'), 'true', 'the first click of two does not leave');
  await page.tab.mouse.dblclick(...place);
  await addressSays(page, 'part', null);
});

test('F fits the selection and then everything; brackets step along the line of the selection', async (t) => {
  const page = await openPage(t);
  await page.load(trainingJob());
  await until('the status line', () => status(page), (now) => now.position >= 0);
  await at(page, 'legend-row').filter({ hasText: 'forward' }).click();
  const line = await until('a line', async () => (await address(page)).get('sel'), (sel) => /^l\d+$/.test(sel ?? ''));
  await press(page, 'Home');
  await standsAt(page, 0);
  const seen = [];
  for (let times = 0; times < 3; times += 1) {
    const { position } = await status(page);
    const sel = (await address(page)).get('sel');
    await press(page, ']');
    seen.push(await until('the next allocation', async () => (await address(page)).get('sel'), (now) => /^a\d+$/.test(now ?? '') && now !== sel));
    await movesFrom(page, position);
    assert.match(await says(page, 'details', /forward/), /forward/, `${line}: the same line`);
  }
  assert.deepEqual([...seen].sort((a, b) => Number(a.slice(1)) - Number(b.slice(1))), seen, 'in the order of time');
  await press(page, '[');
  await addressSays(page, 'sel', seen[1]);

  await press(page, 'f');
  const life = await until('its lifetime', () => shown(page));
  await press(page, 'f');
  await until('everything', () => shown(page), (now) => now === null);
  // M makes the selection the range; F zooms to the range.
  await press(page, 'm');
  const range = await until('the range', () => pair(page, 'r'));
  assert.ok(range[0] >= life[0] && range[1] <= life[1], `${range} in ${life}`);
  await press(page, 'f');
  await until('the range is shown', () => shown(page), (now) => now && now[0] === range[0] && now[1] === range[1] + 1);
  await press(page, 'f');
  await until('everything again', () => shown(page), (now) => now === null);
});

test('the help lists mouse and touch of the view, and there is one question mark', async (t) => {
  const page = await openPage(t);
  assert.ok(await at(page, 'share-button').isDisabled());
  assert.match(await at(page, 'share-button').getAttribute('title'), /Open a trace/);
  await openWhole(page);
  assert.ok(await at(page, 'share-button').isEnabled());
  const marks = await page.tab.evaluate(() => [...document.querySelectorAll('button')].filter((button) => button.textContent.trim() === '?').length);
  assert.equal(marks, 1);
  await press(page, '?');
  let help = await says(page, 'help', /Mouse and touch: timeline/);
  for (const said of ['Drag', 'Double-click', 'Pinch', 'Long press', 'Click a step']) assert.ok(help.includes(said), `${said} in ${help}`);
  await page.screenshot('gestures-help');
  await press(page, 'Escape');
  await goTo(page, 'Segments');
  await press(page, '?');
  help = await says(page, 'help', /Mouse and touch: segments/);
  assert.ok(!help.includes('Mouse and touch: timeline'), help);
  await press(page, 'Escape');
});

test('what is typed survives what is rendered around it', async (t) => {
  const page = await openPage(t);
  await page.load(trainingJob());
  await press(page, 'c');
  const field = at(page, 'compare-earlier');
  await field.waitFor();
  await field.fill('');
  await page.tab.keyboard.type('1');
  // Another part of the page changes meanwhile.
  await at(page, 'overview-canvas').evaluate((host) => host.dispatchEvent(new WheelEvent('wheel', { deltaY: -240, clientX: host.getBoundingClientRect().left + 400, bubbles: true, cancelable: true })));
  await until('the window changes', () => shown(page));
  assert.equal(await field.inputValue(), '1');
  assert.equal(await field.evaluate((field) => document.activeElement === field), true);
  await press(page, 'Enter');
  await says(page, 'compare-moments', /A\s*the peak of step 1/);
});

test('a press that opens the menu is no click', async (t) => {
  const page = await openPage(t);
  const { position } = await openWhole(page);
  await pointUntil(page, 'timeline-canvas', [0.95, 0.9, 0.85, 0.8, 0.75, 0.7].map((y) => [0.6, y]), /[KMG]iB/);
  // As a Mac does with Ctrl: the press is of the main button.
  await page.tab.keyboard.down('Control');
  await page.tab.mouse.down();
  await at(page, 'timeline-canvas').evaluate((host) => {
    const { left, top, width, height } = host.getBoundingClientRect();
    const at = { clientX: left + 0.6 * width, clientY: top + 0.9 * height };
    host.firstElementChild.dispatchEvent(new PointerEvent('contextmenu', { ...at, pointerId: 1, ctrlKey: true, bubbles: true, cancelable: true }));
  });
  await page.tab.mouse.up();
  await page.tab.keyboard.up('Control');
  await at(page, 'popup-menu').waitFor();
  await answered(page);
  assert.equal((await status(page)).position, position);
  assert.equal((await address(page)).get('sel'), null);
});
