// A person right-clicks a thing: copies what it is, filters to it, hides it, and goes on from there.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { fingersOf } from './touch.mjs';
import { address, addressSays, at, bytesIn, goTo, movesFrom, openSample, pointUntil, press, says, status, text, until } from './workbench.mjs';

/** The name of an allocation. */
const NAME = /b[0-9a-f]+_\d+/;

const items = (page) => at(page, 'popup-menu').getByRole('menuitem').evaluateAll((all) => all.map((item) => item.dataset.testid.replace('menu-', '')));
const open = (page) => until('the menu is open', () => items(page), (all) => all.length > 0);
const closed = (page) => until('the menu is closed', () => at(page, 'popup-menu').count(), (count) => count === 0);
const clipboard = (page) => page.tab.evaluate(() => navigator.clipboard.readText());
const focused = (page) => page.tab.evaluate(() => document.activeElement?.dataset.testid ?? '');

/** Chooses an item, and returns what it copied. */
async function copies(page, item) {
  await page.tab.evaluate(() => navigator.clipboard.writeText(''));
  await at(page, `menu-${item}`).click();
  await closed(page);
  return until('something is copied', () => clipboard(page));
}

test('a block has a menu: its stack, line and exact size are copied', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await page.tab.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  const box = await at(page, 'timeline-canvas').boundingBox();
  const point = [box.x + 0.6 * box.width, box.y + 0.8 * box.height];
  await page.tab.mouse.move(...point);
  await page.tab.mouse.wheel(0, -1200);
  await until('a part is shown', async () => (await address(page)).get('w'));
  const heights = [0.95, 0.9, 0.85, 0.8, 0.75, 0.7].map((y) => [0.6, y]);
  const [name] = NAME.exec(await pointUntil(page, 'timeline-canvas', heights, NAME));
  await page.tab.mouse.down();
  await page.tab.mouse.up();
  const pane = at(page, 'detail-allocation');
  await pane.waitFor();
  assert.equal(await pane.locator('h2').innerText(), name);
  const [requested] = await bytesIn(pane.locator('.fact', { has: page.tab.locator('dt:text-is("Requested")') }).first());

  const byKey = async () => {
    await press(page, 'Shift+F10');
    return open(page);
  };
  const again = () => page.tab.mouse.down({ button: 'right' }).then(() => page.tab.mouse.up({ button: 'right' }));
  await again();
  assert.deepEqual(await open(page), ['copy-stack', 'copy-line', 'copy-size', 'filter', 'hide', 'select-line', 'open-segment', 'pin']);
  await page.screenshot('menu-block');
  assert.equal(await copies(page, 'copy-size'), String(requested), 'all of its digits');
  await byKey();
  const stack = await copies(page, 'copy-stack');
  await byKey();
  const line = await copies(page, 'copy-line');
  assert.ok(stack.split('\n').includes(line), `${line} in ${stack}`);
  assert.match(line, /\.py:\d+:/);

  // Filtering to it and hiding it divide all allocations between them.
  const { requested: all } = await status(page);
  await byKey();
  await at(page, 'menu-filter').click();
  const term = await until('the filter', async () => (await address(page)).get('f'));
  await says(page, 'details', NAME);
  assert.ok(!(await byKey()).includes('filter'), 'it is filtered to that already');
  await press(page, 'Escape');
  await closed(page);
  await page.tab.getByRole('button', { name: /^Remove filter/ }).first().click();
  await addressSays(page, 'f', null);
  await byKey();
  await at(page, 'menu-hide').click();
  await addressSays(page, 'f', `-${term}`);
  assert.equal((await status(page)).requested, all, 'totals stay those of everything');
  await page.screenshot('menu-hidden');
});

test('the menu is worked by keys, and the focus returns', async (t) => {
  const page = await openPage(t);
  const opened = await openSample(page);
  await at(page, 'legend-row').first().click();
  const line = await until('a line', async () => (await address(page)).get('sel'), (sel) => /^l\d+$/.test(sel ?? ''));
  await at(page, 'tab-timeline').focus();
  await press(page, 'Shift+F10');
  const all = await open(page);
  assert.ok(!all.includes('select-line') && all.includes('copy-stack'), `${line} is selected: ${all}`);
  assert.equal(await focused(page), `menu-${all[0]}`);
  await press(page, 'ArrowDown');
  assert.equal(await focused(page), `menu-${all[1]}`);
  await press(page, 'End');
  assert.equal(await focused(page), `menu-${all.at(-1)}`);
  await press(page, 'ArrowDown');
  assert.equal(await focused(page), `menu-${all[0]}`, 'and round');
  await press(page, 'h');
  assert.equal(await focused(page), 'menu-hide', 'the first letter');
  // Keys have no effect on the page behind it.
  await press(page, '4', 'p');
  assert.equal((await status(page)).position, opened.position);
  assert.equal(await at(page, 'tab-timeline').getAttribute('aria-selected'), 'true');
  await press(page, 'Escape');
  await closed(page);
  assert.equal(await focused(page), 'tab-timeline');
  assert.equal((await address(page)).get('sel'), line, 'Esc closes the menu alone');

  // The menu key opens that of an event in the list.
  await goTo(page, 'Events');
  await press(page, 'p');
  await movesFrom(page, opened.position);
  const grid = page.tab.getByRole('grid', { name: 'Events' });
  await grid.focus();
  await press(page, 'ContextMenu');
  const role = await at(page, 'popup-menu').getAttribute('role').catch(() => null);
  assert.equal(role, 'menu');
  await open(page);
  await press(page, 'Tab');
  await closed(page);
});

test('lines, events, flame boxes and segments have one, with what applies', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await at(page, 'legend-row').first().click({ button: 'right' });
  assert.deepEqual(await open(page), ['copy-stack', 'copy-line', 'copy-size', 'filter', 'hide', 'select-line']);
  await at(page, 'menu-select-line').click();
  await until('the line is selected', async () => (await address(page)).get('sel'), (sel) => /^l\d+$/.test(sel ?? ''));

  await goTo(page, 'Events');
  await at(page, 'event-row').first().click({ button: 'right' });
  const event = await open(page);
  assert.ok(event.includes('copy-size') && event.includes('pin'), `${event}`);
  await press(page, 'Escape');
  await closed(page);

  await goTo(page, 'Flame');
  const flame = await at(page, 'flame-canvas').boundingBox();
  await page.tab.mouse.click(flame.x + flame.width * 0.3, flame.y + 18 * 2.5, { button: 'right' });
  const frame = await open(page);
  assert.ok(frame.includes('copy-size') && frame.includes('filter') && !frame.includes('open-segment'), `${frame}`);
  await page.screenshot('menu-flame');
  await page.tab.mouse.click(flame.x + 4, flame.y - 30);
  await closed(page);

  // The transforms are in it: one that is chosen is listed, and in the link; all bytes stay.
  const sum = () => at(page, 'flame-sum').getAttribute('data-total');
  const all = await sum();
  await page.tab.mouse.click(flame.x + flame.width * 0.3, flame.y + 18 * 2.5, { button: 'right' });
  assert.ok((await open(page)).includes('flame-drop'));
  await at(page, 'menu-flame-merge').click();
  await closed(page);
  await says(page, 'flame-chip', /^Merged: \S+/);
  await until('the link has it', async () => (await address(page)).get('flameops'), (said) => /^m\d+$/.test(said ?? ''));
  assert.equal(await sum(), all);
  await at(page, 'flame-chip').getByRole('button').click();
  await until('it is removed', () => at(page, 'flame-chip').count(), (count) => count === 0);

  await goTo(page, 'Segments');
  const map = await at(page, 'segments-canvas').boundingBox();
  await page.tab.mouse.click(map.x + map.width * 0.3, map.y + map.height * 0.4, { button: 'right' });
  const segment = await open(page);
  assert.ok(segment.includes('copy-size') && segment.includes('open-segment'), `${segment}`);
  await at(page, 'menu-open-segment').click();
  await at(page, 'details').getByRole('heading', { name: 'Segment', exact: true }).waitFor();
});

test('a finger that rests opens the menu of a picture and of a row, and its press ends there', async (t) => {
  const page = await openPage(t, { width: 390, height: 844, touch: true });
  const opened = await openSample(page);
  const fingers = await fingersOf(page);
  const box = await at(page, 'timeline-canvas').boundingBox();
  const place = [box.x + 0.5 * box.width, box.y + 0.85 * box.height];
  await fingers.down(place);
  await open(page);
  await fingers.up();
  assert.equal((await status(page)).position, opened.position, 'no click');
  await press(page, 'Escape');
  await closed(page);
  // A tap is still a tap.
  await fingers.tap(place);
  await movesFrom(page, opened.position);
  assert.equal(await at(page, 'popup-menu').count(), 0);

  await goTo(page, 'Events');
  const row = page.tab.locator('.event-row[data-menu]').nth(2);
  const { x, y } = await row.boundingBox();
  await fingers.down([x + 40, y + 12]);
  await open(page);
  await fingers.up();
  await until('it stays', () => items(page), (all) => all.length > 0);
});

test('a number that is copied is exact', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await page.tab.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await goTo(page, 'Findings');
  const number = at(page, 'lines').locator('.bytes').first();
  await number.waitFor();
  assert.match(await number.getAttribute('title'), /^[\d,]+ bytes?.*copies this exact count/);
  await number.evaluate((element) => getSelection().selectAllChildren(element));
  await press(page, 'Control+c');
  const exact = await number.getAttribute('data-bytes');
  await until('the exact count', () => clipboard(page), (copied) => copied === exact);
  assert.notEqual(await text(page, 'lines'), '');
});

test('it says "copied" only of what was copied', async (t) => {
  const page = await openPage(t);
  const answers = (clipboard, field) =>
    page.tab.evaluate(([clipboard, field]) => {
      navigator.clipboard.writeText = () => (clipboard ? Promise.resolve() : Promise.reject(new DOMException('no', 'NotAllowedError')));
      document.execCommand = () => field;
    }, [clipboard, field]);
  const CASES = [[true, false, true], [false, true, true], [false, false, false]];
  const button = at(page, 'copy').first();
  // It is said for a moment only, which may be over before this test asks.
  await button.evaluate((button) => {
    globalThis.said = [];
    new MutationObserver(() => globalThis.said.push(button.textContent)).observe(button, { childList: true, subtree: true, characterData: true });
  });
  for (const [index, [clipboard, field, isCopied]] of CASES.entries()) {
    await answers(clipboard, field);
    await button.click();
    const said = await until('the button says what became of it, and again what it does', () => page.tab.evaluate(() => globalThis.said), (said) => said.length === 2 * (index + 1));
    assert.deepEqual(said.slice(-2), [isCopied ? 'Copied' : 'Not copied', 'Copy']);
  }
  await openSample(page);
  for (const [clipboard, field, isCopied] of CASES) {
    await answers(clipboard, field);
    await at(page, 'legend-row').first().click({ button: 'right' });
    await open(page);
    await at(page, 'menu-copy-line').click();
    await says(page, 'notice', isCopied ? /^Copied\./ : /blocked copying/);
    await press(page, 'Escape', 'l');
    await says(page, 'notice', isCopied ? /^Link copied/ : /blocked copying.*address bar/);
    await press(page, 'Escape');
  }
});
