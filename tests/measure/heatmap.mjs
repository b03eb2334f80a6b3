// Measures the heatmap beside the timeline, in one browser: the first picture after a click on its tab, and the work of the
// UI thread for a turn of the wheel.
//
//   node tests/measure/heatmap.mjs FILE [RUNS]
//
// The program must have been built: cargo build --release; VRAMSCOPE_URL names another server. Milliseconds, medians of RUNS
// (5 if not given); of the wheel, the 95th percentile of 30 turns in each run.
import { launch } from '../journeys/browser.mjs';
import { percentile95, workOfSteps } from './frames.mjs';
import { serve } from './ours.mjs';
import { openTab } from './tab.mjs';

const [, , file, runs = '5'] = process.argv;
if (!file) {
  console.error('Name a file: node tests/measure/heatmap.mjs FILE [RUNS]');
  process.exit(2);
}

/** Returns the work of a turn of the wheel over a canvas. */
async function wheel(browser, tab, canvas) {
  const box = await tab.getByTestId(canvas).boundingBox();
  await tab.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  const work = await workOfSteps(browser, tab, (i) => tab.mouse.wheel(0, i < 15 ? -120 : 120));
  return percentile95(work);
}

async function measure(served) {
  const browser = await launch();
  try {
    const tab = await openTab(browser, served);
    await served.page.load(tab, file);
    // The findings come after the first picture, and are not measured here.
    await tab.waitForFunction(() => performance.getEntriesByName('findings received').length > 0);
    const timeline = await wheel(browser, tab, 'timeline-canvas');
    const first = await tab.getByRole('tab', { name: /heatmap/i }).evaluate((button) => {
      watch.begin();
      button.click();
      return watch.until(() => document.querySelector('[data-testid="heatmap-note"]')?.textContent.trim());
    });
    const addresses = await wheel(browser, tab, 'heatmap-canvas');
    await tab.getByRole('button', { name: 'Request sizes' }).click();
    await tab.waitForTimeout(1000);
    const sizes = await wheel(browser, tab, 'heatmap-canvas');
    return { 'first picture': first, 'wheel, timeline': timeline, 'wheel, addresses': addresses, 'wheel, sizes': sizes };
  } finally {
    await browser.close();
  }
}

const served = await serve();
try {
  const found = [];
  for (let run = 0; run < Number(runs); run++) found.push(await measure(served));
  for (const what of Object.keys(found[0])) {
    const values = found.map((run) => run[what]).sort((a, b) => a - b);
    console.log(`${what.padEnd(18)} ${values[values.length >> 1].toFixed(1).padStart(8)}  (${values.map((ms) => ms.toFixed(0)).join(' ')})`);
  }
} finally {
  served.stop();
}
