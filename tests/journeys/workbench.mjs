// What an open file's workbench shows: the status line, the panes, the address bar.
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';

/** Long enough for an answer of the worker on a busy machine. */
const PATIENCE_MS = 20_000;

/** Calls `read` until `holds` accepts its result, and returns that. After the timeout, fails with the last result. */
export async function until(what, read, holds = Boolean) {
  const end = performance.now() + PATIENCE_MS;
  for (;;) {
    const value = await read();
    if (holds(value)) return value;
    if (performance.now() > end) assert.fail(`never: ${what}; at last ${JSON.stringify(value)}`);
    await pause(25);
  }
}

/** Waits until the page has all answers that it asked for. What they bring may move what is below it, or change a list. */
export const answered = (page) =>
  until('all questions are answered', () => page.tab.evaluate(() => document.documentElement.dataset.pending ?? '0'), (count) => count === '0');

/** Returns the element with a test id. */
export const at = (page, name) => page.tab.getByTestId(name);

/** Returns the text of the element with a test id; empty if there is none. */
export async function text(page, name) {
  const found = at(page, name).first();
  return (await found.count()) > 0 ? (await found.textContent({ timeout: 1000 }).catch(() => '')).replaceAll('\u00a0', ' ').trim() : '';
}

/** Waits until the text of the element with a test id matches. */
export const says = (page, name, pattern) => until(`${name} says ${pattern}`, () => text(page, name), (said) => pattern.test(said));

/** Parses `69,577` as a number. */
export const number = (text) => Number(text.replaceAll(',', ''));

/** Returns the exact bytes of the sizes inside an element, in order. */
export const bytesIn = (locator) =>
  locator.locator('.bytes').evaluateAll((found) => found.map((element) => Number(element.dataset.bytes)));

/** Returns the exact bytes of the legend's rows at its moment. */
export const legendBytes = (page) =>
  at(page, 'legend').locator('.legend-row > .bytes').evaluateAll((found) => found.map((element) => Number(element.dataset.bytes)));

/** Returns what was copied, by pasting it in another tab: Firefox lets no script read it, and this asks for no right. */
export async function copied(page) {
  const tab = await page.tab.context().newPage();
  try {
    await tab.setContent('<textarea>');
    await tab.locator('textarea').press('ControlOrMeta+v');
    return await tab.locator('textarea').inputValue();
  } finally {
    await tab.close();
  }
}

/** Returns the status line: the cursor's position and the exact totals there, read at one moment. */
export function status(page) {
  return page.tab.evaluate(() => {
    const line = document.querySelector('[data-testid="status"]');
    if (!line) return { position: -1 };
    const bytes = (name) => Number(line.querySelector(`[data-testid="status-${name}"] .bytes`).dataset.bytes);
    const sums = ['requested', 'allocated', 'active', 'reserved', 'cached'].map((name) => [name, bytes(name)]);
    const events = Number(/ of ([\d,]+)/.exec(line.textContent)[1].replaceAll(',', ''));
    return { position: Number(line.dataset.position), events, ...Object.fromEntries(sums), text: line.innerText };
  });
}

/** Returns the number of events that the page shows. */
export const events = async (page) => (await status(page)).events ?? 0;

/** Returns whether the page follows the newest events of a job. */
export const follows = (page) => at(page, 'live-bar').getAttribute('data-following').then((is) => is === 'true');

/** Opens the first session of the list. */
export async function openSession(page) {
  await at(page, 'session').first().waitFor();
  await at(page, 'session-open').first().click();
  await page.reach('ready');
}

/** Returns the sample as a file, as downloaded from the server. */
export async function savedSample(page, name = 'sample.pickle') {
  // The connection may be one that the server has just closed because nothing was asked on it.
  const answer = await page.tab.request.get(new URL('sample.pickle', page.tab.url()).href, { maxRetries: 3 });
  return { name, mimeType: 'application/octet-stream', buffer: await answer.body() };
}

/** Opens the sample with its button. It is a leak, so all of it is shown. Returns the status line. */
export async function openSample(page) {
  await page.loadSample();
  const opened = await movesFrom(page, -1);
  await at(page, 'verdict').waitFor();
  await answered(page);
  await addressSays(page, 'w', null);
  return opened;
}

/** Waits until the status line shows a position. */
export function standsAt(page, position) {
  return until(`the cursor stands at ${position}`, () => status(page), (now) => now.position === position);
}

/** Waits until the status line shows a position other than this one. */
export function movesFrom(page, position) {
  return until(`the cursor leaves ${position}`, () => status(page), (now) => now.position !== position && now.position >= 0);
}

/** Returns the view in the address bar. */
export async function address(page) {
  return new URLSearchParams(new URL(page.tab.url()).hash.slice(1));
}

/** Waits until the address bar contains `name=value`; without a value, until it does not contain the name. */
export function addressSays(page, name, value) {
  return until(`${name}=${value} in the address bar`, async () => (await address(page)).get(name), (now) => now === value);
}

/** Returns the titles of all tabs, in the order of the page. */
export async function tabs(page) {
  const all = page.tab.locator('[role=tab][data-testid^="tab-"]');
  await all.first().waitFor();
  return all.evaluateAll((buttons) => buttons.map((button) => button.firstChild.textContent));
}

/** Goes to a tab by its button. */
export async function goTo(page, name) {
  const tab = page.tab.getByRole('tab', { name: new RegExp(name, 'i') });
  await tab.click();
  await until(`${name} is the tab`, () => tab.getAttribute('aria-selected'), (is) => is === 'true');
}

/** Shows what has no room in the view's toolbar. */
export async function unfoldToolbar(page) {
  const more = at(page, 'toolbar-more');
  if ((await more.count()) > 0 && (await more.getAttribute('aria-expanded')) === 'false') await more.click();
}

/** Presses keys one after the other, with nothing in between. */
export async function press(page, ...keys) {
  for (const key of keys) await page.tab.keyboard.press(key);
}

/** Returns the text of a canvas's tooltip; empty while it is hidden. */
export function tip(page) {
  return page.tab.evaluate(() => document.querySelector('.canvas-tip:not(.is-hidden)')?.innerText ?? '');
}

/** Points at one place of a canvas after the other, given in shares of its width and height, until the tooltip fits. */
export async function pointUntil(page, name, places, pattern) {
  const box = await at(page, name).boundingBox();
  const seen = [];
  for (const [x, y] of places) {
    await page.tab.mouse.move(box.x + x * box.width, box.y + y * box.height);
    // The tooltip appears at once; the name comes from the worker.
    for (let i = 0; i < 20; i += 1) {
      const told = await tip(page);
      if (pattern.test(told)) return told;
      await pause(10);
    }
    seen.push(await tip(page));
  }
  assert.fail(`nowhere in ${name}: ${pattern}; but ${JSON.stringify(seen)}`);
}

/** Returns the lines of a comparison: the change in MiB, how the line was found, and its function. */
export const changedLines = (page) =>
  at(page, 'compare-line-row').evaluateAll((all) =>
    all.map((row) => [
      Number(row.querySelector('.bytes').dataset.bytes) / 1048576,
      row.dataset.match,
      row.querySelector('.compare-line').textContent.trim().split(/\s/)[0],
    ]),
  );

/** Waits until a comparison has these lines. */
export const changedLinesAre = (page, wanted) =>
  until(`the lines are ${JSON.stringify(wanted)}`, () => changedLines(page), (now) => JSON.stringify(now) === JSON.stringify(wanted));
