// Workers whose messages a test counts, and holds back to do something before they arrive.
import { until } from './workbench.mjs';

/** Loads the page again, with workers whose messages can be held. */
export async function holdWorkers(page) {
  await page.tab.addInitScript(() => {
    const held = [];
    let isHeld = false;
    globalThis.workers = { messages: 0, hold: () => (isHeld = true), held: () => held.length };
    globalThis.workers.release = () => {
      isHeld = false;
      for (const deliver of held.splice(0)) deliver();
    };
    globalThis.Worker = class extends Worker {
      set onmessage(call) {
        super.onmessage = call && ((event) => {
          globalThis.workers.messages += 1;
          if (isHeld) held.push(() => call(event));
          else call(event);
        });
      }
    };
  });
  await page.tab.reload();
}

/** Holds what workers say from now on. */
export const hold = (page) => page.tab.evaluate(() => globalThis.workers.hold());

/** Waits until workers have said something since it is held. */
export const said = (page) => until('workers say something', () => page.tab.evaluate(() => globalThis.workers.held()));

/** Delivers what workers have said, and no longer holds it. */
export const release = (page) => page.tab.evaluate(() => globalThis.workers.release());

/** Returns the number of messages of workers so far. */
export const messages = (page) => page.tab.evaluate(() => globalThis.workers.messages);
