// Drives this project's page for measurements.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('../../target/release/vramscope', import.meta.url));

/** Serves the page of the release build, or uses the one at VRAMSCOPE_URL. */
export async function serve() {
  if (process.env.VRAMSCOPE_URL) return { name: 'Vramscope', url: process.env.VRAMSCOPE_URL, page, stop() {} };
  const server = spawn(PROGRAM, ['serve', '--listen', '127.0.0.1:0'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const url = await new Promise((found, failed) => {
    server.on('error', failed);
    server.on('exit', () => failed(new Error('the server ended; build it with: cargo build --release')));
    createInterface({ input: server.stdout }).on('line', (line) => found(/http:\S+/.exec(line)[0]));
  });
  return { name: 'Vramscope', url, page, stop: () => server.kill() };
}

const page = {
  /** Waits until the page accepts a file. */
  async open(tab) {
    await tab.locator('input[type=file]').first().waitFor({ state: 'attached' });
    await tab.evaluate(() => addEventListener('change', () => watch.begin(), { capture: true, once: true }));
  },

  /** Drops the file; returns the milliseconds until its first whole picture is on the screen. */
  async load(tab, file) {
    await tab.locator('input[type=file]').first().setInputFiles(file);
    const first = await tab.evaluate(async () => {
      const state = () => document.documentElement.dataset.state;
      const ms = await watch.until(() => state() === 'ready' || state() === 'error', 0);
      return { ms, state: state() };
    });
    if (first.state !== 'ready') throw new Error(`the page says: ${await tab.locator('[role=alert]').first().innerText()}`);
    return first.ms;
  },

  /** Opens the segment map. */
  state: (tab) => open(tab, 'segments', '[data-testid="segments-note"]'),

  /** Opens the event list. */
  events: (tab) => open(tab, 'events', '[data-testid="event-row"]'),

  /** Steps one event back; the segment map follows. */
  step: (tab) =>
    tab.evaluate(() => {
      const status = () => document.querySelector('[data-testid="status"]')?.dataset.position;
      const before = status();
      watch.begin();
      const key = { key: ',', code: 'Comma', bubbles: true, cancelable: true };
      document.body.dispatchEvent(new KeyboardEvent('keydown', key));
      return watch.until(() => status() !== before, 1);
    }),

  /** Returns the timeline's place on the screen. */
  async timeline(tab) {
    await tab.getByRole('tab', { name: /timeline/i }).click();
    return tab.locator('[data-testid="timeline-canvas"]').boundingBox();
  },
};

/** Returns the milliseconds from a click on a view's tab until an element in it has text. */
async function open(tab, name, selector) {
  const button = tab.getByRole('tab', { name: new RegExp(name, 'i') });
  return button.evaluate((button, selector) => {
    watch.begin();
    button.click();
    return watch.until(() => document.querySelector(selector)?.textContent.trim());
  }, selector);
}
