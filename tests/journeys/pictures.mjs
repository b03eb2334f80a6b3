// Makes the pictures of README.md: the three uses, light and dark, at 1440x900. And that of the start page: the sample's timeline.
//
//   VRAMSCOPE_PROGRAM=target/release/vramscope node tests/journeys/pictures.mjs [FOLDER]
//
// FOLDER is .github/pictures if not given. The program must have its page: cargo build --release.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openPage } from './page.mjs';
import { startJob, startServer } from './program.mjs';
import { at, goTo, status, until } from './workbench.mjs';

const folder = process.argv[2] ?? fileURLToPath(new URL('../../.github/pictures', import.meta.url));
mkdirSync(folder, { recursive: true });

/** How many events the running job has when its picture is taken: some training steps. */
const LIVE_EVENTS = 20_000;

/** Takes one picture in a separate browser, after `prepare` has brought the page to the right view. */
async function picture(name, theme, prepare) {
  // Acts as a test: what was started ends with it, in reverse order.
  const endings = [];
  const t = { after: (end) => endings.push(end) };
  try {
    const server = await startServer(t);
    const page = await openPage(t, { theme });
    await prepare(page, t, server);
    await page.tab.waitForTimeout(500);
    const path = join(folder, `${name}-${theme}.png`);
    await page.tab.screenshot({ path });
    console.log(path);
  } finally {
    for (const end of endings.reverse()) await end();
  }
}

/** After a failure: the verdict and the timeline of the sample, which ends out of memory. */
async function postMortem(page) {
  await page.loadSample();
  await goTo(page, 'timeline');
}

/** While it runs: a transformer that trains on a simulated device, followed at its newest event. */
async function live(page, t, server) {
  startJob(t, server.url, 'transformer', '--rate', '3000', '--steps', '4000').ended.catch(() => {});
  await at(page, 'session').first().waitFor();
  await at(page, 'session-open').first().click();
  await page.reach('ready');
  await until('the job has events to show', async () => (await status(page)).events ?? 0, (count) => count > LIVE_EVENTS);
}

/** Fragmentation: the heatmap of the sample. */
async function fragmentation(page) {
  await page.loadSample();
  await goTo(page, 'heatmap');
}

/** What led to the failure of the sample: the shapes of its timeline alone. */
async function sample(theme) {
  const endings = [];
  const t = { after: (end) => endings.push(end) };
  try {
    await startServer(t);
    const page = await openPage(t, { theme, width: 1000, height: 720 });
    await page.loadSample();
    await at(page, 'details-toggle').click();
    await page.tab.waitForTimeout(500);
    const view = await page.tab.getByTestId('timeline-canvas').boundingBox();
    // Without the axes and the lanes of spans.
    const [left, top, width, height] = [view.x + 68, view.y + 56, view.width - 80, view.height - 80];
    const path = fileURLToPath(new URL(`../../web/static/sample-${theme}.png`, import.meta.url));
    await page.tab.screenshot({ path, clip: { x: left, y: top, width, height } });
    console.log(path);
  } finally {
    for (const end of endings.reverse()) await end();
  }
}

for (const theme of ['light', 'dark']) {
  await sample(theme);
  await picture('post-mortem', theme, postMortem);
  await picture('live', theme, live);
  await picture('fragmentation', theme, fragmentation);
}
