// Measures the memory of the page while many files are opened one after another: the resident memory of
// the page's process after each of them, as the kernel counts it.
//
//   node tests/measure/putaway.mjs FILE [FILE...] [--times N]
//
// Without --times each file is opened once; with it, the list is opened N times, under new names. VRAMSCOPE_URL names
// the server to measure; without it the built program is started: cargo build --release.
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { launch } from '../journeys/browser.mjs';
import { pageProcess, residentBytes } from './memory.mjs';
import { serve } from './ours.mjs';
import { openTab } from './tab.mjs';

const { values, positionals: files } = parseArgs({ allowPositionals: true, options: { times: { type: 'string', default: '1' } } });
if (files.length === 0) {
  console.error('Name files: node tests/measure/putaway.mjs FILE [FILE...] [--times N]');
  process.exit(2);
}

/** Returns the memory of the page in MiB, once it no longer shrinks: workers that have ended free it gradually. */
async function settled() {
  let last = Infinity;
  for (;;) {
    const now = residentBytes(pageProcess());
    if (now > last * 0.995) return now / 2 ** 20;
    last = now;
    await pause(1500);
  }
}

const served = await serve();
const folder = mkdtempSync(join(tmpdir(), 'vramscope-putaway-'));
const browser = await launch();
try {
  const tab = await openTab(browser, served);
  console.log(`no file ${(await settled()).toFixed(0)} MiB`);
  for (let opened = 0; opened < files.length * Number(values.times); opened++) {
    const file = files[opened % files.length];
    const name = `${opened + 1} ${basename(file)}`;
    copyFileSync(file, join(folder, name));
    await tab.locator('input[type=file]').first().setInputFiles(join(folder, name));
    await tab.waitForFunction((name) => document.title.startsWith(name) && document.documentElement.dataset.state === 'ready', name);
    console.log(`${name}: ${(await settled()).toFixed(0)} MiB, ${tab.workers().length} workers`);
  }
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
  served.stop();
}
