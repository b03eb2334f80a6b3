// Finds the browser, and starts it in the same way for every run.
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { chromium, firefox } from 'playwright-core';

/** Whether the journeys go through Firefox instead of Chromium: VRAMSCOPE_BROWSER=firefox. */
export const isFirefox = process.env.VRAMSCOPE_BROWSER === 'firefox';

// The headless shell is Chromium without its windows, menus and start page: a journey takes half of the processor time.
const NAMES = isFirefox
  ? ['firefox-esr', 'firefox']
  : ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];

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

// Compiled once and fast, and not a second time for speed: a test is over before that pays. What is measured is compiled as for people.
const COMPILED_ONCE = ['--js-flags=--liftoff-only'];

/** What Firefox can't be told for each profile. */
const PREFERENCES = { 'ui.prefersReducedMotion': 1 };

/** The browser's path: VRAMSCOPE_CHROMIUM or VRAMSCOPE_FIREFOX, or the first on the PATH. */
export function browserPath() {
  const named = isFirefox ? process.env.VRAMSCOPE_FIREFOX : process.env.VRAMSCOPE_CHROMIUM;
  if (named) return named;
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
  const [name, variable] = isFirefox ? ['firefox-esr', 'VRAMSCOPE_FIREFOX'] : ['chromium', 'VRAMSCOPE_CHROMIUM'];
  throw new Error(`No ${name} is on the PATH. Install it (Debian: apt-get install ${name}) or set ${variable}.`);
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
  shared ??= launch({ flags: COMPILED_ONCE });
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

/** Starts a separate browser with an empty profile. `flags` are Chromium's. */
export function launch({ flags = [] } = {}) {
  const options = { executablePath: browserPath(), headless: true };
  // The channel is that of Firefox as it is released, which is driven over WebDriver BiDi. package.json stays at
  // playwright-core 1.64.1: from 1.65 on it sends `emulation.setMediaFeaturesOverride`, which Firefox 153 ESR doesn't know.
  if (isFirefox) return firefox.launch({ ...options, channel: 'moz-firefox', firefoxUserPrefs: PREFERENCES });
  return chromium.launch({ ...options, args: [...FLAGS, ...flags] });
}
