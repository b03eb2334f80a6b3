// A person who uses only the keyboard, and a person who uses a screen reader.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { answered, at, goTo, movesFrom, openSample, press, says, standsAt, status, text, until } from './workbench.mjs';

/** Returns the test id of the focused element. */
const focused = (page) => page.tab.evaluate(() => document.activeElement?.dataset.testid ?? '');

/** Waits until a dialog is closed. */
const gone = (page, name) => until(`${name} is closed`, () => at(page, name).count(), (count) => count === 0);

test('? lists the keys, and Esc closes it', async (t) => {
  const page = await openPage(t);
  await press(page, '?');
  const short = await says(page, 'help', /Find a view, a command/);
  assert.doesNotMatch(short, /Next event/, 'only what works now');
  await press(page, 'Escape');
  await gone(page, 'help');

  await openSample(page);
  await press(page, '?');
  const help = await says(page, 'help', /Next event/);
  for (const title of ['Move and zoom', 'Cursor', 'Search', 'View', 'Page', 'Zoom in', 'Go to the peak', 'Show the flame graph']) {
    assert.ok(help.includes(title), `${title} in ${help}`);
  }
  await page.screenshot('keyboard-help');
  // Keys do not act behind the dialog.
  const before = await at(page, 'status').innerText();
  await press(page, 'p', '4');
  await press(page, 'Escape');
  await gone(page, 'help');
  assert.equal(await at(page, 'status').innerText(), before);
  assert.equal(await at(page, 'tab-timeline').getAttribute('aria-selected'), 'true');
});

test('Ctrl+K finds a command by a few letters and runs it', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  const theme = () => page.tab.evaluate(() => document.documentElement.dataset.theme);
  assert.equal(await theme(), 'light');
  const rows = at(page, 'palette-row');
  for (let times = 0; times < 2; times += 1) {
    await press(page, 'Control+k');
    const all = await until('all commands', () => rows.count(), (count) => count > 20);
    await page.tab.keyboard.type('theme');
    await until('fewer commands', () => rows.count(), (count) => count > 0 && count < all);
    assert.match(await rows.first().innerText(), /theme/i);
    await page.screenshot('keyboard-palette');
    await press(page, 'Enter');
    await gone(page, 'palette');
  }
  // From the system's theme to light, and on to dark.
  await until('the page is dark', theme, (name) => name === 'dark');
  await page.screenshot('keyboard-dark');

  await press(page, 'Control+k');
  await page.tab.keyboard.type('zzqqxx');
  await until('it says that there is none', () => text(page, 'palette'), (said) => said.includes('No matching view, command'));
  await press(page, 'Escape');
  await gone(page, 'palette');
});

test('number keys open tabs, arrow keys move between them, and the focus is visible', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  const tabs = page.tab.getByRole('tablist', { name: 'Views' }).getByRole('tab');
  const names = await tabs.evaluateAll((all) => all.map((tab) => tab.dataset.testid.replace('tab-', '')));
  assert.deepEqual(names.slice(0, 5), ['timeline', 'segments', 'flame', 'events', 'findings']);
  const selected = (name) => until(`${name} is the tab`, () => at(page, `tab-${name}`).getAttribute('aria-selected'), (is) => is === 'true');
  for (const [i, name] of [...names.entries()].reverse()) {
    await press(page, String(i + 1));
    await selected(name);
  }

  // Presses Tab until the tabs have the focus; the bound ends the loop if they never get it.
  for (let times = 0; times < 200 && (await focused(page)) !== 'tab-timeline'; times += 1) await press(page, 'Tab');
  assert.equal(await focused(page), 'tab-timeline');
  const outline = await page.tab.evaluate(() => {
    const style = getComputedStyle(document.activeElement);
    return { style: style.outlineStyle, width: parseFloat(style.outlineWidth) };
  });
  assert.ok(outline.style !== 'none' && outline.width >= 1, JSON.stringify(outline));
  await page.screenshot('keyboard-focus');
  await press(page, 'ArrowRight');
  await selected('segments');
  assert.equal(await focused(page), 'tab-segments');
  await press(page, 'ArrowLeft', 'ArrowLeft');
  await selected(names.at(-1));
  assert.equal(await focused(page), `tab-${names.at(-1)}`);
});

test('Enter selects what the event at the cursor is about', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  const selected = () => new URLSearchParams(new URL(page.tab.url()).hash.slice(1)).get('sel');
  await press(page, 'o');
  await says(page, 'detail-none', /Select largest call site/);
  await at(page, 'timeline-canvas').focus();
  // Nothing was allocated there: it is the call site that holds most.
  await press(page, 'Enter');
  await until('a call site is selected', selected, (sel) => /^l/.test(sel ?? ''));
  await at(page, 'frame').first().waitFor();
  // Elsewhere it is what was allocated, freed or reserved.
  await press(page, ',', 'Enter');
  await until('that is selected', selected, (sel) => /^[as]/.test(sel ?? ''));
});

test('the focus goes on from a file that was opened', async (t) => {
  const page = await openPage(t);
  await page.loadSample();
  await says(page, 'announced', / is open\./);
  await until('the view has the focus', () => page.tab.evaluate(() => document.activeElement.getAttribute('role')), (role) => role === 'tabpanel');
  // The keys of the page work from there.
  await press(page, 'ArrowRight');
  assert.equal(await at(page, 'tab-timeline').getAttribute('aria-selected'), 'true');
  await press(page, 'Tab');
  assert.ok(await page.tab.evaluate(() => document.activeElement.closest('[role=tabpanel]') !== null), 'the next stop is in the view');
});

test('leaving views before they are drawn causes no errors', async (t) => {
  const page = await openPage(t);
  const { position } = await openSample(page);
  await press(page, ...'12'.repeat(6), ...'13'.repeat(6), ...'142351');
  // After two frames everything is drawn; errors in them appear in `page.complaints`.
  await page.tab.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await press(page, 'p');
  await movesFrom(page, position);
  assert.ok(await at(page, 'timeline-canvas').isVisible());
});

test('the focus is visible on every element', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  const seen = new Set();
  for (let times = 0; times < 40; times += 1) {
    await press(page, 'Tab');
    const now = await page.tab.evaluate(() => {
      const element = document.activeElement;
      const style = getComputedStyle(element);
      const around = getComputedStyle(element.closest('.search-box') ?? element);
      const isShown = (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0) || around.boxShadow !== 'none';
      const name = element.getAttribute('aria-label') || element.innerText || element.dataset.testid || element.tagName;
      return { name, isShown, isBody: element === document.body };
    });
    if (now.isBody) break;
    assert.ok(now.isShown, `the focus on ${now.name} is not seen`);
    seen.add(now.name);
  }
  assert.ok(seen.size > 10, [...seen].join(', '));
});

test('a text describes the picture: the peak, the largest lines, the cursor', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  // It still tells of the part that was shown before, until the picture of the whole trace has come.
  const told = (words) => /Peak: ([\d.]+ GiB) requested at event ([\d,]+)\. .*peak \1 requested/.exec(words);
  const words = await until('the text is of the whole trace', () => text(page, 'text-twin'), (words) => told(words.replace(/\s+/g, ' ')));
  const [, peak, event] = told(words.replace(/\s+/g, ' '));
  const lines = await until('the largest lines', () => at(page, 'text-twin').getByRole('row').allInnerTexts(), (rows) => rows.length > 5);
  assert.ok(lines.slice(1).every((line) => /\d [KMG]?i?B$/.test(line.trim())), lines.join('\n'));

  await press(page, 'p');
  const flat = ({ text }) => text.replace(/\s+/g, ' ');
  const isPeak = (now) => flat(now).includes(`event ${event} of`) && flat(now).includes(`requested ${peak}`);
  const there = await until('the cursor is at the peak', () => status(page), isPeak);
  await says(page, 'text-twin', new RegExp(`Cursor at event ${event}: ${peak} requested`));
  await press(page, '.');
  await standsAt(page, there.position + 1);
});

test('Tab stays in a dialog, wherever the focus was', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  const isInside = () => page.tab.evaluate(() => document.activeElement.closest('[role="dialog"]') !== null);
  for (const [key, name] of [['?', 'help'], ['Control+k', 'palette'], ['u', 'share']]) {
    await press(page, key);
    await at(page, name).waitFor();
    await answered(page);
    for (const way of ['Tab', 'Shift+Tab']) {
      // What had the focus may be gone.
      await page.tab.evaluate(() => document.activeElement.blur());
      for (let times = 0; times < 30; times += 1) {
        await page.tab.keyboard.press(way);
        assert.ok(await isInside(), `${name}: ${way} ${times}`);
      }
    }
    await press(page, 'Escape');
    await gone(page, name);
  }
});

test('keys that follow one another within a frame each count, in every list', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  const lists = [
    ['Allocations', 'grid', undefined],
    ['Flame', 'tree', 'Table'],
    // It moves the cursor, which the others follow.
    ['Events', 'grid', undefined],
  ];
  for (const [tab, role, button] of lists) {
    await goTo(page, tab);
    if (button) await page.tab.getByRole('button', { name: button, exact: true }).click();
    const list = page.tab.getByRole(role).first();
    await list.focus();
    const row = async () => Number(/\d+$/.exec((await list.getAttribute('aria-activedescendant')) ?? '')?.[0] ?? -1);
    await press(page, 'Home');
    await until(`${tab} begins with the first row`, row, (now) => now === 0);
    await answered(page);
    await list.evaluate((list) => {
      for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowUp']) {
        list.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
      }
    });
    await until(`${tab} is two rows further`, row, (now) => now === 2);
  }
});
