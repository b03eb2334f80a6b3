// Says where the UI thread's time goes after one turn of the wheel on the timeline, and what changes in the document.
//
//   node tests/measure/turn.mjs FILE
//
// It needs a built program: cargo build --release; or VRAMSCOPE_URL says where a page is served. Chromium draws in software. Each time
// is that of an event in Chromium's trace without those inside it, in a quarter of a second after the turn: the mean of all turns.
import { launch } from '../journeys/browser.mjs';
import * as ours from './ours.mjs';
import { openTab } from './tab.mjs';

const TURNS = 20;
/** Rows of each list. */
const ROWS = 16;

const [file] = process.argv.slice(2);
if (!file) {
  console.error('usage: node tests/measure/turn.mjs FILE');
  process.exit(2);
}

/** Runs in the page: counts what changes, by kind and by the nearest elements with a name. */
function countChanges() {
  globalThis.changes = {};
  const named = (node) => {
    const names = [];
    for (let at = node; at && names.length < 3; at = at.parentElement) {
      const name = at.dataset?.testid ?? at.getAttribute?.('class');
      if (name) names.push(name);
    }
    return names.join(' < ');
  };
  new MutationObserver((found) => {
    for (const { type, target, attributeName } of found) {
      const what = `${attributeName ?? type} of ${named(target)}`;
      changes[what] = (changes[what] ?? 0) + 1;
    }
  }).observe(document.documentElement, { subtree: true, childList: true, attributes: true, characterData: true });
}

/** Returns the milliseconds of the UI thread by event, without those of events inside. */
function selfTimes(events) {
  const main = events.find((event) => event.name === 'FunctionCall');
  const own = events.filter((event) => event.ph === 'X' && event.pid === main.pid && event.tid === main.tid);
  own.sort((a, b) => a.ts - b.ts || b.dur - a.dur);
  const [times, open] = [{ all: 0 }, []];
  for (const { name, ts, dur = 0 } of own) {
    while (open.length > 0 && open.at(-1).end <= ts) open.pop();
    times[open.at(-1)?.name ?? 'all'] += open.length > 0 ? -dur : dur;
    times[name] = (times[name] ?? 0) + dur;
    open.push({ name, end: ts + dur });
  }
  return times;
}

const served = await ours.serve();
const browser = await launch();
try {
  const tab = await openTab(browser, served);
  await served.page.load(tab, file);
  await tab.waitForTimeout(2000);
  const box = await tab.locator('[data-testid="timeline-canvas"]').boundingBox();
  const turn = async (i) => {
    await tab.mouse.move(box.x + box.width * (0.3 + 0.01 * i), box.y + box.height / 2);
    await tab.mouse.wheel(0, i % 2 ? 240 : -240);
    await tab.waitForTimeout(250);
  };
  for (let i = 0; i < 6; i++) await turn(i);
  await tab.evaluate(countChanges);
  await browser.startTracing(tab, { categories: ['toplevel', 'devtools.timeline', 'blink', 'cc'] });
  for (let i = 0; i < TURNS; i++) await turn(i);
  const times = selfTimes(JSON.parse((await browser.stopTracing()).toString()).traceEvents);
  const print = (rows, digits) =>
    Object.entries(rows).sort(([, a], [, b]) => b - a).slice(0, ROWS).forEach(([name, sum]) => console.log(`${(sum / TURNS).toFixed(digits).padStart(7)}  ${name}`));
  console.log('milliseconds a turn');
  print(Object.fromEntries(Object.entries(times).map(([name, us]) => [name, us / 1000])), 1);
  console.log('\nchanges of the document a turn');
  print(await tab.evaluate(() => changes), 1);
} finally {
  await browser.close();
  served.stop();
}
