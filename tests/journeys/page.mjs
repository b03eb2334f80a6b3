// The page of a journey: opened in a profile of its own, and checked for errors in the console.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { isFirefox, openProfile } from './browser.mjs';
import { atEnd } from './ending.mjs';

/** The values of the root element's `data-state`. */
const STATES = ['empty', 'loading', 'ready', 'error'];

/** Long enough for a small file on a busy machine. */
const PATIENCE_MS = 60_000;

/** What Chromium and Firefox call it when they cancel the requests that are pending as a page is left. */
const CANCELLED = ['net::ERR_ABORTED', 'NS_BINDING_ABORTED'];

/** How Firefox names the style that playwright adds to its page for each picture, and that the page's own policy refuses. */
const PLAYWRIGHTS_STYLE = createHash('sha256').update('body {}').digest('base64');

/** The page's URL. */
export function pageUrl() {
  const url = process.env.VRAMSCOPE_URL;
  assert.ok(url, 'VRAMSCOPE_URL must say where the page is served; see run.mjs');
  return url;
}

/**
 * Opens the page for one test, in a profile of its own, and closes it with that test.
 *
 *   const page = await openPage(t, { width: 1024, height: 700, theme: 'dark', address: '#...' });
 *   await page.drop('a.pickle');
 *   await page.reach('ready');
 *
 * When the test ends, it fails if the page wrote an error to the console, broke its own policy, or asked another
 * server for anything; a journey that means to see errors empties `page.complaints` itself.
 */
export async function openPage(t, { width = 1440, height = 900, theme = 'light', address = '', offline = false, touch = false, forcedColors } = {}) {
  // First, so that a test without it fails at once and leaves no profile behind.
  pageUrl();
  const { context, close } = await openProfile({
    viewport: { width, height },
    colorScheme: theme,
    reducedMotion: 'reduce',
    acceptDownloads: true,
    hasTouch: touch,
    forcedColors,
    offline,
  });
  const page = new Page(await context.newPage());
  atEnd(t, async () => {
    await close();
    assert.deepEqual(page.complaints, [], 'the page complained');
  });
  await page.open(address);
  return page;
}

/** A page with the actions that journeys share; `page.tab` is playwright's page, for everything else. */
class Page {
  constructor(tab) {
    this.tab = tab;
    this.complaints = [];
    /** The URLs of all requests. */
    this.requests = [];
    const origin = new URL(pageUrl()).origin;
    tab.on('console', (message) => {
      if (message.type() === 'error') this.complaints.push(`console: ${message.text()}`);
    });
    tab.on('pageerror', (error) => {
      if (isFirefox && error.message.includes(`sha256-${PLAYWRIGHTS_STYLE}`)) return;
      this.complaints.push(`uncaught: ${error.message}`);
    });
    tab.on('requestfailed', (request) => {
      const { errorText } = request.failure() ?? {};
      if (!CANCELLED.includes(errorText)) this.complaints.push(`failed: ${request.url()} (${errorText})`);
    });
    tab.on('request', (request) => {
      this.requests.push(request.url());
      const url = new URL(request.url());
      if (['http:', 'https:', 'ws:', 'wss:'].includes(url.protocol) && url.origin !== origin) {
        this.complaints.push(`another server: ${request.url()}`);
      }
    });
  }

  /** Loads the page; `address` is appended to its URL, unless it is a whole URL itself. `answer` is the response. */
  async open(address = '') {
    const url = URL.canParse(address) ? address : pageUrl() + address;
    this.answer = await this.tab.goto(url, { waitUntil: 'load' });
    await this.tab.locator('input[type=file]').first().waitFor({ state: 'attached', timeout: PATIENCE_MS });
  }

  /** Returns the page's state: `empty`, `loading`, `ready` or `error`. */
  state() {
    return this.tab.evaluate(() => document.documentElement.dataset.state);
  }

  /** Waits until the page is in a state; fails at once if it ends in another one. */
  async reach(state, patience = PATIENCE_MS) {
    assert.ok(STATES.includes(state), `${state} is no state`);
    const ends = [state, ...['ready', 'error'].filter((end) => end !== state && state !== 'loading')];
    await this.tab.waitForFunction((ends) => ends.includes(document.documentElement.dataset.state), ends, {
      timeout: patience,
      polling: 'raf',
    });
    assert.equal(await this.state(), state, await this.alerts());
  }

  /** Gives the page files: paths, or `{ name, mimeType, buffer }`. */
  async drop(...files) {
    await this.tab.locator('input[type=file]').first().setInputFiles(files);
  }

  /** Drops files and waits for their first picture. */
  async load(...files) {
    await this.drop(...files);
    await this.reach('ready');
  }

  /** Opens the sample with its button. */
  async loadSample() {
    await this.tab.getByRole('button', { name: /sample/i }).or(this.tab.getByRole('link', { name: /sample/i })).first().click();
    await this.reach('ready');
  }

  /** Returns the texts of the page's alerts. */
  async alerts() {
    const texts = await this.tab.locator('[role=alert]').allInnerTexts();
    return texts.join('\n').trim();
  }

  /** Saves a screenshot, if a folder for them was given. */
  async screenshot(name) {
    const folder = process.env.VRAMSCOPE_SCREENSHOTS;
    if (!folder) return;
    mkdirSync(folder, { recursive: true });
    await this.tab.screenshot({ path: join(folder, `${name}.png`) });
  }
}
