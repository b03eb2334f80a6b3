// A person whose job died looks for what held the memory, on a laptop's low window too, and goes from the overview to a moment.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { emptyFolder, programPath } from './program.mjs';
import { addressSays, answered, at, goTo, movesFrom, openSample, press, says, standsAt, status, text, until } from './workbench.mjs';

/** Returns the boxes of elements by test id, read at one moment; null for one that is not shown. */
const boxes = (page, ...names) =>
  page.tab.evaluate((names) => names.map((name) => {
    const { top, bottom, height, width } = document.querySelector(`[data-testid="${name}"]`)?.getBoundingClientRect() ?? {};
    return height ? { top, bottom, height, width } : null;
  }), names);

test('the call sites stand first in the details, at a failure and elsewhere', async (t) => {
  const page = await openPage(t);
  await page.loadSample();
  await at(page, 'verdict').waitFor();
  await until('call sites, then findings', () => page.tab.evaluate(() => {
    const rows = [...document.querySelectorAll('[data-testid="details"] [data-testid="legend-row"]')].slice(0, 3);
    const finding = document.querySelector('[data-testid="details"] [data-testid="finding"]');
    const pane = document.querySelector('[data-testid="details-pane"]')?.getBoundingClientRect();
    const inView = rows.map((row) => row.getBoundingClientRect()).filter((row) => row.top >= pane.top && row.bottom <= pane.bottom);
    return inView.length === 3 && (!finding || inView[2].bottom <= finding.getBoundingClientRect().top);
  }));
  await page.screenshot('shell-call-sites');
  await press(page, 'Home');
  await standsAt(page, 0);
  await until('the event comes after them', () => page.tab.evaluate(() => {
    const [event, legend] = ['detail-none', 'legend'].map((name) => document.querySelector(`[data-testid="details"] [data-testid="${name}"]`));
    return Boolean(event && legend && event.compareDocumentPosition(legend) & Node.DOCUMENT_POSITION_PRECEDING);
  }));
});

test('in a low window, a button shows all of what is said about a leak', async (t) => {
  const file = join(emptyFolder(t), 'leak.vramscope');
  execFileSync(programPath(), ['run', 'leak', '--steps', '60', '--capacity', '80GiB', '--out', file], { stdio: ['ignore', 'ignore', 'inherit'] });
  const page = await openPage(t, { width: 1024, height: 700, theme: 'dark' });
  await page.load(file);
  const isLine = () => at(page, 'verdict-growth').evaluate((card) => card.getBoundingClientRect().height < 40);
  await until('one line', isLine);
  assert.match(await text(page, 'verdict-headline'), /^Growing: [\d.]+ \S+ kept over \d+ steps, nothing failed yet$/);
  await at(page, 'verdict-fold').click();
  await at(page, 'verdict-line').waitFor();
  assert.match(await text(page, 'verdict-sentence'), /^Growing, but nothing failed yet: .*\.$/);
  await page.screenshot('shell-growth-low');
  await at(page, 'verdict-fold').click();
  await until('one line again', isLine);
});

test('each way to watch a job is copied by itself', async (t) => {
  const page = await openPage(t);
  const ways = at(page, 'way');
  await ways.first().waitFor();
  const codes = await ways.locator('pre').allTextContents();
  assert.deepEqual([codes.length, await ways.locator('button').count()], [3, 3]);
  for (const [i, wanted] of [/^vramscope watch \S*.*train\.py$/, /^import vramscope\nvramscope\.attach\(".*"\)$/, /^vramscope run transformer --to http/].entries()) {
    assert.match(codes[i], wanted);
  }
  assert.equal(await page.tab.locator('.is-primary').count(), 1);
  await page.screenshot('shell-ways');
});

test('in a low window, and beside a second view, the verdict is two lines, with what to try, and unfolds', async (t) => {
  const page = await openPage(t, { width: 1024, height: 700 });
  await openSample(page);
  const lines = async () => {
    const [card, line, fix] = await boxes(page, 'verdict', 'verdict-line', 'verdict-fix');
    return card && line && fix && card.height < 68 && fix.top < line.bottom;
  };
  await until('two lines', lines);
  assert.match(await text(page, 'verdict-headline'), /\w+ \w+ \w+/);
  await page.screenshot('shell-verdict-low');
  await at(page, 'verdict-fold').click();
  await until('it is unfolded', () => boxes(page, 'verdict', 'verdict-sentence'), ([card, sentence]) => card.height > 60 && sentence);
  assert.equal(await at(page, 'verdict-fold').getAttribute('aria-expanded'), 'true');
  await at(page, 'verdict-fold').click();
  await until('two lines again', lines);

  await press(page, '\\');
  await at(page, 'segments-canvas').waitFor();
  const rowsOf = () => page.tab.evaluate(() =>
    [...document.querySelectorAll('.is-half .toolbar')].map((bar) => bar.getBoundingClientRect().height));
  await until('each toolbar is one row', rowsOf, (heights) => heights.length === 2 && heights.every((height) => height < 50));
  const plots = await boxes(page, 'timeline-canvas', 'segments-canvas');
  assert.ok(plots.every((plot) => plot.height > 140), JSON.stringify(plots));
  await page.screenshot('shell-split-low');
  await at(page, 'view-second').getByTestId('half-view').selectOption('events');
  await until('the actions are one row', () => page.tab.evaluate(() => document.querySelector('.is-half .events .toolbar')?.getBoundingClientRect().height), (height) => height < 50);
  await page.screenshot('shell-split-events');

  await page.tab.setViewportSize({ width: 1440, height: 900 });
  await until('and beside a second view', lines);
});

test('a leak has its line on the timeline, and the first finding is whole', async (t) => {
  const page = await openPage(t);
  const file = join(emptyFolder(t), 'leak.vramscope');
  execFileSync(programPath(), ['run', 'leak', '--capacity', '80GiB', '--steps', '40', '--out', file], { stdio: 'ignore' });
  await page.load(file);
  await at(page, 'verdict-growth').waitFor();
  const line = await text(page, 'verdict-line');
  assert.match(line, /\.py:\d+/);
  await page.screenshot('shell-leak');
  const clipped = await page.tab.evaluate(() =>
    [...document.querySelectorAll('[data-testid="details"] [data-testid="finding"] p')].filter((p) => p.scrollHeight > p.clientHeight + 1).length);
  assert.equal(clipped, 0, 'nothing is cut off');
  await at(page, 'verdict-line').click();
  await at(page, 'detail-line').waitFor();
  await at(page, 'verdict-close').click();
  await until('it is closed', () => at(page, 'verdict-growth').count(), (count) => count === 0);
});

test('the overview has a menu of what is there', async (t) => {
  const page = await openPage(t);
  const { events, position } = await openSample(page);
  const canvas = at(page, 'overview-canvas');
  const box = await canvas.boundingBox();
  await press(page, 'p');
  const peak = await movesFrom(page, position);
  await press(page, 'Home');
  await standsAt(page, 0);
  // The plot's margins; a few pixels beside the peak, which is meant all the same.
  const [left, right] = [68, 12];
  const x = left + (peak.position / events) * (box.width - left - right);
  await page.tab.mouse.click(box.x + x + 4, box.y + 40, { button: 'right' });
  await until('the menu is open', () => at(page, 'popup-menu').getByRole('menuitem').count(), (count) => count === 3);
  assert.match(await at(page, 'popup-menu').innerText(), /^(Peak|Out of memory)/);
  await page.screenshot('shell-overview-menu');
  await at(page, 'menu-go').click();
  await until('the cursor went there', () => status(page), (now) => Math.abs(now.position - peak.position) <= events / 50 && now.position > 0);
  await page.tab.mouse.click(box.x + left + 0.3 * (box.width - left - right), box.y + 40, { button: 'right' });
  await at(page, 'menu-pin').click();
  await until('it is pinned', () => page.tab.evaluate(() => new URLSearchParams(location.hash.slice(1)).get('pin')), Boolean);
});

test('keys in the help stand beside what they do', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await goTo(page, 'Flame');
  await press(page, '?');
  await at(page, 'help').waitFor();
  const over = await page.tab.evaluate(() => [...document.querySelectorAll('.help-row')].filter((row) => {
    const edge = row.querySelector('dd').getBoundingClientRect().left;
    return [...row.querySelectorAll('kbd, .gesture')].some((key) => key.getBoundingClientRect().right > edge);
  }).map((row) => row.innerText));
  assert.deepEqual(over, []);
  await page.screenshot('shell-help');
});

test('with a range, the status line is not cut off', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  const box = await at(page, 'overview-canvas').boundingBox();
  await page.tab.mouse.move(box.x + 0.3 * box.width, box.y + 40);
  await page.tab.mouse.down();
  await page.tab.mouse.move(box.x + 0.7 * box.width, box.y + 40, { steps: 4 });
  await page.tab.mouse.up();
  await says(page, 'range-live', /\d/);
  const cut = await page.tab.evaluate(() => [...document.querySelectorAll('[data-testid="status"] > span')].filter((span) => span.scrollWidth > span.clientWidth + 1).map((span) => span.innerText));
  assert.deepEqual(cut, []);
  await page.screenshot('shell-status-range');
});

test('a view that is shown again asks nothing', async (t) => {
  const page = await openPage(t);
  await page.tab.addInitScript(() => {
    globalThis.asked = [];
    const { postMessage } = Worker.prototype;
    Worker.prototype.postMessage = function (...given) {
      const [message] = given;
      // A question: its kind, its number, and what it asks.
      if (message instanceof ArrayBuffer && new Uint8Array(message)[0] === 0) globalThis.asked.push([...new Uint8Array(message)].slice(2).join());
      return postMessage.apply(this, given);
    };
  });
  await page.open();
  await openSample(page);
  for (const tab of ['Segments', 'Flame', 'Events', 'Allocations', 'Timeline', 'Segments', 'Flame', 'Events', 'Allocations', 'Timeline']) {
    await goTo(page, tab);
    await answered(page);
  }
  const asked = await page.tab.evaluate(() => globalThis.asked);
  assert.ok(asked.length > 10, `${asked.length} questions`);
  assert.ok(asked.length < 128, 'so their numbers are a byte');
  assert.deepEqual(asked.filter((question, i) => asked.indexOf(question) < i), []);
});
