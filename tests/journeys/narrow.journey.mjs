// A person looks at a file on a phone, or in a window beside an editor.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { at, goTo, openSample } from './workbench.mjs';

/** Returns what sticks out of the page at its right side, as `class (right edge)`. */
const outside = (page) =>
  page.tab.evaluate(() => {
    // What is inside something that clips or scrolls may be wider than it.
    const isClipped = (element) => {
      for (let parent = element.parentElement; parent; parent = parent.parentElement) {
        if (getComputedStyle(parent).overflowX !== 'visible' && parent !== document.body && parent !== document.documentElement) return true;
      }
      return false;
    };
    return [...document.body.querySelectorAll('*')]
      .map((element) => [element, element.getBoundingClientRect().right])
      .filter(([element, right]) => right > innerWidth + 1 && !isClipped(element))
      .map(([element, right]) => `${element.className || element.tagName} (${Math.round(right)})`);
  });

/** Checks that two parts of the page don't overlap, and that the first is above the second. */
async function isAbove(page, first, second) {
  const [above, below] = [await first.boundingBox(), await second.boundingBox()];
  assert.ok(above.y + above.height <= below.y + 1, `${JSON.stringify(above)} is above ${JSON.stringify(below)}`);
}

test('a narrow page stacks what stands side by side elsewhere', async (t) => {
  const page = await openPage(t, { width: 390, height: 844 });
  assert.deepEqual(await outside(page), [], 'the start page');
  await openSample(page);
  for (const tab of ['Timeline', 'Segments', 'Flame', 'Events', 'Findings', 'What-if']) {
    await goTo(page, tab);
    assert.deepEqual(await outside(page), [], tab);
    await isAbove(page, page.tab.getByRole('tabpanel'), at(page, 'details-pane'));
    await page.screenshot(`narrow-${tab.toLowerCase()}`);
  }
  await isAbove(page, at(page, 'help-button'), page.tab.getByRole('search'));
});
