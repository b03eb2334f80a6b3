// A person looks for what held the memory: zooms into the timeline, clicks an allocation and reads its stack.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { address, addressSays, answered, at, bytesIn, copied, legendBytes, movesFrom, number, openSample, pointUntil, press, text, tip, until } from './workbench.mjs';

/** The name of an allocation: its address, and how often the address had been used. */
const NAME = /b[0-9a-f]+_\d+/;

/** Returns the window in the address bar; null while the whole trace is shown. */
async function shown(page) {
  const window = (await address(page)).get('w');
  return window && window.split(',').map(Number);
}

/** Waits until the window differs from `before`. */
const shownAfter = (page, before) =>
  until('the window changes', () => shown(page), (now) => String(now) !== String(before));

const length = ([start, end]) => end - start;

/** Returns the middle of the timeline, or another point given as shares of its width and height. */
async function point(page, x = 0.5, y = 0.5) {
  const box = await at(page, 'timeline-canvas').boundingBox();
  await page.tab.mouse.move(box.x + x * box.width, box.y + y * box.height);
}

test('the wheel zooms where it points, keys zoom and move', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  const inView = async () => number((await text(page, 'timeline-note')).split(' ')[0]);
  const all = await until('allocations in view', inView, (count) => count > 10_000);

  await point(page, 0.3);
  await page.tab.mouse.wheel(0, -480);
  const first = await shownAfter(page, null);
  await page.tab.mouse.wheel(0, -240);
  const second = await shownAfter(page, first);
  assert.ok(length(second) < 0.6 * length(first), `${first} to ${second}`);
  // The point under the pointer is where both windows agree.
  const fixed = (second[0] - first[0]) / (length(first) - length(second));
  assert.ok(Math.abs(fixed - 0.3) < 0.06, `zoomed about ${fixed} of the width`);
  await until('fewer allocations in view', inView, (count) => count > 0 && count < all);

  await press(page, 'w');
  const third = await shownAfter(page, second);
  assert.ok(length(third) < length(second), `W: ${second} to ${third}`);
  await press(page, 'd');
  const moved = await shownAfter(page, third);
  assert.ok(moved[0] > third[0] && Math.abs(length(moved) - length(third)) < 1e-6 * length(third), `D: ${third} to ${moved}`);
  await press(page, 's', 'a');
  await until('S and A go back', () => shown(page), (now) => now && length(now) > length(moved) && now[0] < moved[0]);

  await at(page, 'timeline-fit').click();
  await addressSays(page, 'w', null);
  await until('all allocations in view', inView, (count) => count === all);
});

test('a tooltip leaves when keys move the picture below it, and comes back with the pointer', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await point(page, 0.5, 0.8);
  await until('the tooltip', () => tip(page), Boolean);
  const before = await shown(page);
  await press(page, 'w');
  const after = await shownAfter(page, before);
  await until('the tooltip leaves', () => tip(page), (said) => said === '');
  await page.screenshot('timeline-moved');
  // The next movement tells what is there now.
  await point(page, 0.52, 0.8);
  await until('the tooltip again', () => tip(page), Boolean);
  // So it is with the overview, which is out of reach of the timeline's own events.
  const box = await at(page, 'overview-canvas').boundingBox();
  await at(page, 'overview-canvas').dispatchEvent('wheel', {
    deltaY: -240, clientX: box.x + box.width / 2, clientY: box.y + box.height / 2, bubbles: true, cancelable: true,
  });
  await shownAfter(page, after);
  await until('the tooltip leaves again', () => tip(page), (said) => said === '');
});

test('the overview names the line under the pointer, as the timeline does', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  const [box, canvas] = [await at(page, 'overview-canvas').boundingBox(), at(page, 'overview-canvas')];
  const named = new Set();
  // Up through the stack near its end, and then over what is only reserved there.
  for (let y = box.height - 19; y > 12; y -= 2) {
    await page.tab.mouse.move(box.x + 0.9 * box.width, box.y + y);
    named.add(await canvas.getAttribute('title'));
  }
  const lines = [...named].filter((title) => /\S+\.py:\d+$/.test(title ?? ''));
  assert.ok(lines.length >= 2, [...named].join(', '));
  const legend = (await at(page, 'legend-row').allTextContents()).join(' ').replaceAll('\u00a0', ' ');
  const place = (line) => line.split(/\s+/).at(-1).split('/').at(-1);
  assert.ok(lines.some((line) => legend.includes(place(line))), `${lines}: ${legend}`);
  await page.tab.mouse.move(box.x + 0.9 * box.width, box.y + box.height - 4);
  await until('no line below the axis', () => canvas.getAttribute('title'), (title) => !title);
});

test('a drag with Ctrl zooms into a stretch, and with Shift it moves the window', async (t) => {
  const page = await openPage(t);
  const { events } = await openSample(page);
  await point(page, 0.25);
  await page.tab.keyboard.down('Control');
  await page.tab.mouse.down();
  await point(page, 0.5);
  await page.tab.mouse.up();
  await page.tab.keyboard.up('Control');
  const stretch = await shownAfter(page, null);
  assert.ok(length(stretch) > 0.2 * events && length(stretch) < 0.3 * events, `a quarter of ${events}: ${stretch}`);

  await page.tab.keyboard.down('Shift');
  await page.tab.mouse.down();
  await point(page, 0.4);
  await page.tab.mouse.up();
  await page.tab.keyboard.up('Shift');
  const dragged = await shownAfter(page, stretch);
  assert.ok(dragged[0] > stretch[0] && Math.abs(length(dragged) - length(stretch)) < 1, `${stretch} to ${dragged}`);
  await page.tab.mouse.down({ button: 'middle' });
  await point(page, 0.5);
  await page.tab.mouse.up({ button: 'middle' });
  const back = await shownAfter(page, dragged);
  assert.ok(back[0] < dragged[0] && Math.abs(length(back) - length(stretch)) < 1, `${dragged} to ${back}`);
});

test('a click on an allocation shows its name, its size and its stack', async (t) => {
  const page = await openPage(t);
  const opened = await openSample(page);
  await point(page, 0.6);
  await page.tab.mouse.wheel(0, -1200);
  await shownAfter(page, null);

  const heights = [0.95, 0.9, 0.85, 0.8, 0.75, 0.7].map((y) => [0.6, y]);
  const [hovered] = NAME.exec(await pointUntil(page, 'timeline-canvas', heights, NAME));
  await page.tab.mouse.down();
  await page.tab.mouse.up();
  const clicked = await movesFrom(page, opened.position);
  const pane = at(page, 'detail-allocation');
  await pane.waitFor();
  assert.equal(await pane.locator('h2').innerText(), hovered);
  await addressSays(page, 'sel', `a${await pane.getAttribute('data-id')}`);
  await page.screenshot('timeline-allocation');

  const fact = (name) => pane.locator('.fact', { has: page.tab.locator(`dt:text-is("${name}")`) }).first();
  const [requested] = await bytesIn(fact('Requested'));
  const [block] = await bytesIn(fact('Block'));
  const [loss] = await bytesIn(fact('Rounding loss'));
  assert.ok(requested > 0 && block >= requested && block % 512 === 0, `${requested} in ${block}`);
  assert.equal(loss, block - requested);
  assert.match(await fact('Address').innerText(), /0x[0-9a-f]{8,}/);

  // The user's own frames are shown at once; those of libraries are folded and can be unfolded.
  const stack = pane.locator('.stack').first();
  assert.match(await stack.innerText(), /(train|model|evaluate)\.py:\d+/);
  const frames = () => stack.locator('li.frame').count();
  const fold = stack.getByTestId('stack-fold').first();
  const hidden = Number(/(\d+) frames? of \S/.exec(await fold.innerText())[1]);
  const before = await frames();
  await fold.click();
  await until(`${hidden} more frames`, frames, (now) => now === before + hidden);
  await fold.click();
  await until('folded again', frames, (now) => now === before);

  await pane.locator('.detail-head').getByTestId('copy').click();
  await until('it says that it copied', () => pane.locator('.detail-head').innerText(), (said) => said.includes('Copied'));
  const said = await copied(page);
  const exact = `${requested.toLocaleString('en-US')} bytes`;
  assert.ok(said.startsWith(`${hovered}\nrequested: `) && said.includes(exact), said);
  assert.match(said, /allocated by:\n.*(train|model|evaluate)\.py:\d+:/s);

  // The button goes to the allocation's alloc event; Esc then clears the selection.
  await at(page, 'detail-go-alloc').click();
  const here = await movesFrom(page, clicked.position);
  const [then] = await bytesIn(pane.locator('dl.facts').last());
  assert.equal(here.requested, then, 'the sums right after it was made');
  await at(page, 'details-clear').click();
  await at(page, 'detail-none').waitFor();
  await addressSays(page, 'sel', null);
});

test('every colouring adds up to the peak', async (t) => {
  const page = await openPage(t);
  const { position } = await openSample(page);
  await press(page, 'p');
  const peak = await movesFrom(page, position);
  const legend = at(page, 'legend');
  const labels = () => legend.locator('.legend-label').allInnerTexts();
  let before = [];
  for (const [color, title] of [['call site', 'Call sites'], ['size', 'Sizes'], ['stream', 'Streams'], ['pool', 'Pools'], ['lifetime', 'Lifetimes']]) {
    await at(page, 'timeline-color').selectOption({ label: color });
    await until(`the legend is of ${title}`, () => legend.innerText(), (said) => said.includes(title));
    const sum = async () => (await legendBytes(page)).reduce((sum, bytes) => sum + bytes, 0);
    const now = await until(`other classes: ${title}`, labels, (now) => now.length > 0 && String(now) !== String(before));
    await until(`${title} add up to the peak ${peak.requested}`, sum, (sum) => sum === peak.requested);
    await page.screenshot(`timeline-${color.replace(' ', '-')}`);
    before = now;
  }
  await addressSays(page, 'color', 'lifetime');
});

test('curves are chosen from a menu, and read at the cursor', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await at(page, 'curves-toggle').click();
  const strips = at(page, 'curve-strip');
  await until('the first curves are shown', () => strips.count(), (count) => count === 3);
  await at(page, 'curve-menu').click();
  await at(page, 'curve-gaps').click();
  await until('another curve is shown', () => strips.count(), (count) => count === 4);
  assert.equal(await at(page, 'curve-gaps').getAttribute('aria-pressed'), 'true', 'the menu stays open');
  await page.screenshot('timeline-curves');
  await press(page, 'Escape');
  await until('the menu is closed', () => at(page, 'curve-menu-list').isHidden());
  const value = await until('its value', () => strips.filter({ hasText: 'Gaps' }).getByTestId('curve-value').textContent(), (now) => /^[\d,]+$/.test(now));
  await until('the values in words', () => text(page, 'text-twin'), (said) => said.includes('Curves at the cursor: ') && said.includes(`Gaps ${value}`));
});

test('the x axis counts events or time, and shows the same stretch', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  const pressed = (name) => at(page, name).getAttribute('aria-pressed');
  await at(page, 'axis-event').click();
  await addressSays(page, 'x', 'event');
  await point(page);
  await page.tab.mouse.wheel(0, -600);
  const events = await shownAfter(page, null);

  await at(page, 'axis-time').click();
  await addressSays(page, 'x', 'time');
  assert.deepEqual([await pressed('axis-time'), await pressed('axis-event')], ['true', 'false']);
  await until('the words speak of time', () => text(page, 'text-twin'), (said) => /Showing [\d.]+ m?s to [\d.]+ s/.test(said));
  await page.screenshot('timeline-time');

  await press(page, 'x');
  await addressSays(page, 'x', 'event');
  const again = await shown(page);
  assert.ok(Math.abs(again[0] - events[0]) < 3 && Math.abs(again[1] - events[1]) < 3, `${events} became ${again}`);
});

test('ordered quantities are listed in their order, and all that is drawn has a key', async (t) => {
  const page = await openPage(t);
  const { position } = await openSample(page);
  // At the peak there is memory that is freed later.
  await press(page, 'p');
  await movesFrom(page, position);
  const UNITS = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, 'µs': 1, ms: 1e3, s: 1e6 };
  const order = (label) => {
    if (/^below/.test(label)) return 0;
    if (/^still live/.test(label)) return Infinity;
    const found = /^([\d.,]+) (\S+)/.exec(label);
    return found && number(found[1]) * UNITS[found[2]];
  };
  const legend = at(page, 'legend');
  for (const [color, title] of [['size', 'Sizes'], ['lifetime', 'Lifetimes']]) {
    await at(page, 'timeline-color').selectOption({ label: color });
    await until(title, () => legend.locator('b').innerText(), (now) => now === title);
    // The title changes before the classes do.
    const areOrdered = (now) => now.length > 1 && now.every((label) => order(label) !== null);
    // At one moment: a locator finds the rows first and reads them later, some of which are gone by then.
    const read = () => legend.evaluate((legend) => Array.from(legend.querySelectorAll('.legend-label'), (label) => label.innerText));
    const labels = await until('classes', read, areOrdered);
    const places = labels.map(order);
    assert.deepEqual(places, [...places].sort((a, b) => a - b), labels.join('; '));
    await page.screenshot(`timeline-by-${color}`);
  }
  const key = await text(page, 'key');
  for (const word of ['reserved', 'cached', 'rounding', 'cursor', 'peak', 'out of memory', 'request that failed']) {
    assert.ok(key.includes(word), `${word}: ${key}`);
  }
});

test('the picture shows what the pointer is over in the legend, and what has no row there is one click away', async (t) => {
  /** Waits until the picture of a page rests, and differs from another. */
  const rests = async (page, other = Buffer.alloc(0)) => {
    const { x, y, width, height } = await at(page, 'timeline-canvas').boundingBox();
    const picture = () => page.tab.screenshot({ clip: { x: x + 60, y: y + height / 2, width: width - 60, height: height / 2 - 20 } });
    let last = await picture();
    return until('the picture rests', async () => {
      const [before, now] = [last, await picture()];
      last = now;
      return now.equals(before) && !now.equals(other) && now;
    });
  };
  const page = await openPage(t);
  await openSample(page);
  const plain = await rests(page);
  const rows = at(page, 'legend-row');
  assert.equal(await rows.count(), 12);
  await rows.nth(2).hover();
  const shown = await rests(page, plain);
  await at(page, 'legend-moment').hover();
  assert.ok((await rests(page, shown)).equals(plain));
  const row = await rows.nth(2).boundingBox();

  // A row that comes under a pointer which rests is not pointed at.
  const other = await openPage(t);
  await other.tab.mouse.move(row.x + 20, row.y + row.height / 2);
  await at(other, 'open-sample').press('Enter');
  await other.reach('ready');
  await at(other, 'legend-rest').waitFor();
  await addressSays(other, 'w', null);
  await answered(other);
  assert.ok((await rests(other)).equals(plain));

  // With Shift, a click filters to a line.
  const label = await rows.nth(2).locator('.legend-label').innerText();
  await rows.nth(2).click({ modifiers: ['Shift'] });
  const chip = await until('a filter', () => at(page, 'filter-chip').allInnerTexts(), (chips) => chips.length === 1);
  assert.ok(label.replace(/\s/g, '').includes(/\S+:\d+/.exec(chip[0])[0].split('/').at(-1)), `${label}: ${chip}`);
  await press(page, 'Control+z');
  await until('no filter', () => at(page, 'filter-chip').count(), (count) => count === 0);

  // The others share a row, which leads to all of them.
  await at(page, 'legend-rest').click();
  await addressSays(page, 'tab', 'allocations');
});
