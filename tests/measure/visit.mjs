// Measures a first visit: the time from the address to a start page that takes a file, and the share of the modules.
//
//   node tests/measure/visit.mjs [--runs N]
//
// It needs a built program: cargo build --release; or VRAMSCOPE_URL says where a page is served. Each run has a browser of its
// own, with an empty cache. The numbers are medians in milliseconds from the beginning of the navigation.
//
// usable        the start page is drawn and takes a file
// page module   the module of the page: bytes as they are sent, when it had arrived, and the time from then to `usable`, in
//               which it is compiled and started and the page drawn
// engine        when the engine had arrived, which opens files; it is loaded beside the start page
import { parseArgs } from 'node:util';
import { launch } from '../journeys/browser.mjs';
import { percentile } from './frames.mjs';
import * as ours from './ours.mjs';

const { values: options } = parseArgs({ options: { runs: { type: 'string', default: '7' } } });

/** The links that are measured, in megabits a second; `null` for the machine itself. */
const LINKS = [null, 10];

async function visit(url, megabits) {
  const browser = await launch();
  try {
    const tab = await (await browser.newContext({ viewport: { width: 1440, height: 900 } })).newPage();
    const session = await tab.context().newCDPSession(tab);
    await session.send('Network.enable');
    if (megabits) {
      const downloadThroughput = (megabits * 1e6) / 8;
      await session.send('Network.emulateNetworkConditions', { offline: false, latency: 20, downloadThroughput, uploadThroughput: downloadThroughput });
    }
    await tab.addInitScript(() => {
      const seen = new MutationObserver(() => {
        if (!document.querySelector('input[type=file]')) return;
        seen.disconnect();
        requestAnimationFrame(() => requestAnimationFrame(() => { globalThis.usable = performance.now(); }));
      });
      seen.observe(document, { subtree: true, childList: true });
    });
    await tab.goto(url);
    const isLoaded = () => {
      const engine = performance.getEntriesByType('resource').find(({ name }) => /engine_bg/.test(name));
      return globalThis.usable && engine?.responseEnd > 0;
    };
    await tab.waitForFunction(isLoaded, null, { timeout: 60_000 });
    return await tab.evaluate(() => {
      const module = (name) => performance.getEntriesByType('resource').find((entry) => entry.name.includes(`${name}_bg`));
      const page = module('page');
      return { usable: globalThis.usable, bytes: page.encodedBodySize, arrived: page.responseEnd, after: globalThis.usable - page.responseEnd, engine: module('engine').responseEnd };
    });
  } finally {
    await browser.close();
  }
}

const { url, stop } = await ours.serve();
try {
  console.log('| link | usable | page module | arrived | from then to usable | engine |\n| --- | ---: | ---: | ---: | ---: | ---: |');
  for (const link of LINKS) {
    const visits = [];
    for (let run = 0; run < Number(options.runs); run += 1) visits.push(await visit(url, link));
    const middle = (name) => percentile(visits.map((each) => each[name]).sort((a, b) => a - b), 0.5).toFixed(0);
    console.log(`| ${link ? `${link} Mbit/s` : 'none'} | ${middle('usable')} | ${(middle('bytes') / 1024).toFixed(0)} KiB | ${middle('arrived')} | ${middle('after')} | ${middle('engine')} |`);
  }
} finally {
  stop();
}
