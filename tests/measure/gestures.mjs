// Measures how soon the page answers each gesture, with a large file open.
//
//   node tests/measure/gestures.mjs [--times N] [--only NAME] FILE
//
// It needs a built program: cargo build --release; or VRAMSCOPE_URL says where a page is served. Chromium draws in software.
//
// next paint      from the input event to the end of the next frame that was drawn after it, 50th and 95th percentile. An
//                 event waits for the next frame even if nothing is to be done: 17 ms at most, 8 on average
// heaviest frame  the UI thread's work between two frames, 95th percentile of the heaviest of each gesture
import { parseArgs } from 'node:util';
import { basename } from 'node:path';
import { launch } from '../journeys/browser.mjs';
import { framesOf, heaviest, percentile } from './frames.mjs';
import * as ours from './ours.mjs';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { times: { type: 'string', default: '40' }, only: { type: 'string' } },
});
const [file] = positionals;
if (!file) {
  console.error('usage: node tests/measure/gestures.mjs [--times N] [--only NAME] FILE');
  process.exit(2);
}
const times = Number(options.times);

/** Runs in the page: for each input event, the milliseconds until the frame after it was drawn. */
function listen() {
  const paints = [];
  const types = ['keydown', 'pointerdown', 'pointerup', 'pointermove', 'wheel', 'click', 'dblclick', 'contextmenu'];
  for (const type of types) {
    addEventListener(
      type,
      (event) => {
        const from = event.timeStamp;
        requestAnimationFrame(() => {
          // A message is handled after the frame is drawn.
          const { port1, port2 } = new MessageChannel();
          port1.onmessage = () => paints.push(performance.now() - from);
          port2.postMessage(null);
        });
      },
      { capture: true, passive: true },
    );
  }
  globalThis.takePaints = () => paints.splice(0);
}

const { url, page, stop } = await ours.serve();
const browser = await launch();
try {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const tab = await context.newPage();
  await tab.addInitScript(listen);
  await tab.addInitScript(() => { globalThis.watch = { begin() {} }; });
  await tab.goto(url);
  await page.open(tab);
  await tab.locator('input[type=file]').first().setInputFiles(file);
  await tab.waitForFunction(() => document.documentElement.dataset.state === 'ready', null, { timeout: 120_000 });
  await tab.waitForTimeout(1500);

  const { mouse, keyboard } = tab;
  const boxOf = (name) => tab.locator(`[data-testid="${name}"]`).first().boundingBox();
  const point = (box, x, y = 0.5) => [box.x + box.width * x, box.y + box.height * y];
  const show = async (name) => {
    await tab.getByRole('tab', { name: new RegExp(name, 'i') }).first().click();
    await tab.waitForTimeout(600);
  };
  const drag = async (from, to, button = 'left') => {
    await mouse.move(...from);
    await mouse.down({ button });
    await mouse.move(...to, { steps: 6 });
    await mouse.up({ button });
  };
  const blur = () => tab.evaluate(() => document.activeElement?.blur());

  /** Each gesture: its name, what brings the page to it, and the gesture itself. */
  const canvas = await boxOf('timeline-canvas');
  const overview = await boxOf('overview-canvas').catch(() => null);
  const gestures = [
    ['zoom with the wheel', null, (i) => mouse.move(...point(canvas, 0.3 + 0.01 * (i % 30))).then(() => mouse.wheel(0, i % 2 ? 240 : -240))],
    ['zoom with keys', null, (i) => keyboard.press(i % 20 < 10 ? 'w' : 's')],
    ['pan with keys', () => keyboard.press('w'), (i) => keyboard.press(i % 20 < 10 ? 'd' : 'a')],
    ['pan with the wheel', null, (i) => mouse.move(...point(canvas, 0.5)).then(() => mouse.wheel(i % 20 < 10 ? 80 : -80, 0))],
    ['pan with Shift and a drag', null, async (i) => {
      await keyboard.down('Shift');
      await drag(point(canvas, 0.5), point(canvas, i % 2 ? 0.6 : 0.4));
      await keyboard.up('Shift');
    }],
    ['point', null, (i) => mouse.move(...point(canvas, 0.1 + 0.02 * (i % 40), 0.3 + 0.01 * (i % 40)))],
    ['select', null, (i) => mouse.click(...point(canvas, 0.1 + 0.02 * (i % 40), 0.8))],
    ['undo', null, (i) => keyboard.press(i % 2 ? 'Control+z' : 'w')],
    ['drag a range', null, (i) => drag(point(canvas, 0.2), point(canvas, 0.3 + 0.01 * (i % 30)))],
    ['drag a range on the overview', null, (i) => (overview ? drag(point(overview, 0.2), point(overview, 0.3 + 0.01 * (i % 30))) : undefined)],
    ['clear', null, () => keyboard.press('Escape')],
    ['step events', null, (i) => keyboard.press(i % 20 < 10 ? '.' : ',')],
    ['step allocations of the line', async () => { await mouse.click(...point(canvas, 0.5, 0.8)); }, (i) => keyboard.press(i % 20 < 10 ? ']' : '[')],
    ['menu', null, async (i) => { await mouse.click(...point(canvas, 0.1 + 0.02 * (i % 40), 0.8), { button: 'right' }); await keyboard.press('Escape'); }],
    ['change the tab', null, (i) => keyboard.press(String(1 + (i % 6)))],
    ['segments: zoom', () => show('segments'), (i) => mouse.move(...point(canvas, 0.5)).then(() => mouse.wheel(0, i % 2 ? 240 : -240))],
    ['segments: point', null, (i) => mouse.move(...point(canvas, 0.1 + 0.02 * (i % 40), 0.3 + 0.01 * (i % 40)))],
    ['heatmap: zoom', () => show('heatmap'), (i) => mouse.move(...point(canvas, 0.5)).then(() => mouse.wheel(0, i % 2 ? 240 : -240))],
    ['heatmap: point', null, (i) => mouse.move(...point(canvas, 0.1 + 0.02 * (i % 40), 0.3 + 0.01 * (i % 40)))],
    ['flame: select', () => show('flame'), (i) => mouse.click(...point(canvas, 0.1 + 0.02 * (i % 40), 0.3))],
    ['flame: flip', null, () => keyboard.press('b')],
    ['events: scroll', () => show('events'), (i) => mouse.move(...point(canvas, 0.5)).then(() => mouse.wheel(0, i % 20 < 10 ? 300 : -300))],
    ['events: step', blur, (i) => keyboard.press(i % 20 < 10 ? '.' : ',')],
    ['type a search', async () => { await show('timeline'); await blur(); await keyboard.press('/'); }, (i) => keyboard.press('sampling'[i % 8])],
    ['palette', async () => { await keyboard.press('Escape'); await keyboard.press('Escape'); await blur(); }, (i) => keyboard.press(i % 2 ? 'Escape' : 'Control+k')],
    ['theme', null, () => keyboard.press('t')],
  ].filter(([name]) => !options.only || name.includes(options.only));

  console.log(`${basename(file)}: ${times} times each, milliseconds\n`);
  console.log('| gesture | next paint, median | 95 % | heaviest frame, 95 % |\n| --- | ---: | ---: | ---: |');
  for (const [name, prepare, act] of gestures) {
    await prepare?.();
    await tab.waitForTimeout(300);
    await tab.evaluate(() => takePaints());
    const paints = [];
    const frames = await framesOf(browser, tab, times, async (i) => {
      await act(i);
      await tab.waitForTimeout(60);
      paints.push(Math.max(0, ...(await tab.evaluate(() => takePaints()))));
    });
    const sorted = paints.sort((a, b) => a - b);
    const cells = [percentile(sorted, 0.5), percentile(sorted, 0.95), percentile(frames.map(heaviest).sort((a, b) => a - b), 0.95)];
    console.log(`| ${name} | ${cells.map((ms) => ms.toFixed(0)).join(' | ')} |`);
  }
} finally {
  await browser.close();
  stop();
}
