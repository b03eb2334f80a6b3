// Opens the page that is measured.
import { install } from './watch.mjs';

/** Opens the page in a new tab of a browser, with the measurements installed before it. */
export async function openTab(browser, served) {
  const context = await browser.newContext({ viewport: { width: 1600, height: 1000 }, reducedMotion: 'reduce' });
  const tab = await context.newPage();
  await tab.addInitScript(install);
  await tab.goto(served.url);
  await served.page.open(tab);
  return tab;
}
