// Finds Chromium, and starts it in the same way for every run.
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { chromium } from 'playwright-core';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];

// Chromium has no sandbox when it runs as root; it only opens our own pages. Nothing else may use the network, and
// shared memory may be small in a container. At the limit of one, it starts no spare process for a page to come.
export const FLAGS = [
  '--no-sandbox',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-dev-shm-usage',
  '--renderer-process-limit=1',
];

/** The browser's path: VRAMSCOPE_CHROMIUM, or the first on the PATH. */
export function browserPath() {
  if (process.env.VRAMSCOPE_CHROMIUM) return process.env.VRAMSCOPE_CHROMIUM;
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    for (const name of NAMES) {
      const path = join(folder, name);
      try {
        accessSync(path, constants.X_OK);
        return path;
      } catch {
        // Try the next one.
      }
    }
  }
  throw new Error('No Chromium is on the PATH. Install one (Debian: apt-get install chromium) or set VRAMSCOPE_CHROMIUM.');
}

/** How long a browser without a profile waits for the next one. Its process ends with it. */
const IDLE_MS = 500;

/** The browser of this process, for all that need no other flags, and how many profiles are open in it. */
let [shared, profiles, idle] = [undefined, 0, undefined];

/** Ends the browser of this process. */
async function end() {
  const ended = shared;
  shared = undefined;
  await (await ended)?.close();
}

/**
 * Opens an empty profile, with nothing of any other, in the browser of this process. Starting a browser takes longer than
 * many a test. Returns playwright's context, and what closes it.
 */
export async function openProfile(options) {
  clearTimeout(idle);
  profiles += 1;
  // It may have crashed.
  if (shared && !(await shared).isConnected()) shared = undefined;
  shared ??= launch();
  const context = await (await shared).newContext(options);
  const close = async () => {
    try {
      await context.close();
    } finally {
      profiles -= 1;
      if (profiles === 0) idle = setTimeout(end, IDLE_MS);
    }
  };
  return { context, close };
}

/** Starts a separate browser with an empty profile. */
export function launch({ flags = [] } = {}) {
  return chromium.launch({ executablePath: browserPath(), headless: true, args: [...FLAGS, ...flags] });
}
