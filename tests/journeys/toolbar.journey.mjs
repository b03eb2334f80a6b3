// What has no room in a toolbar is behind a button at its end.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { at, goTo, openSample, press, until } from './workbench.mjs';

/** Returns the heights of a toolbar, and what of its controls is cut off: the names of all, of some, or of none. */
const look = (page) =>
  page.tab.evaluate(() => {
    const bar = document.querySelector('.view-pane .toolbar');
    const { height, left, right } = bar.getBoundingClientRect();
    const row = bar.querySelector('.toolbar-row').getBoundingClientRect();
    const more = bar.querySelector('.toolbar-more')?.getBoundingClientRect();
    const controls = [...bar.querySelectorAll('.toolbar-row :is(button, select)')].map((control) => [control, control.getBoundingClientRect()]);
    const cut = controls.filter(([, box]) => box.top >= row.bottom - 1).map(([control]) => control.textContent);
    const outside = controls.filter(([, box]) => box.left < left || box.right > right + 1 || (box.top < row.bottom && box.bottom > row.bottom + 1)).map(([control]) => control.textContent);
    const under = controls.filter(([, box]) => more && box.top < more.bottom && box.right > more.left).map(([control]) => control.textContent);
    return { height, cut, wrong: [...outside, ...under], hasMore: Boolean(more), page: document.documentElement.scrollWidth - innerWidth };
  });

for (const theme of ['light', 'dark']) {
  for (const [width, height] of [[1440, 900], [1024, 700], [800, 600], [390, 800]]) {
    test(`each toolbar is one row, and a button shows the rest of it, at ${width}x${height}, in ${theme}`, async (t) => {
      const page = await openPage(t, { width, height, theme });
      await openSample(page);
      const [row, some] = [width < 800 ? 49 : 33, new Set()];
      for (const tab of ['Timeline', 'Segments', 'Heatmap', 'Flame', 'Events', 'Allocations']) {
        await goTo(page, tab);
        await page.tab.locator('.view-pane .toolbar').waitFor();
        const said = () => `${tab} at ${width}: ${JSON.stringify(now)}`;
        let now = await until('a toolbar', () => look(page), ({ cut, hasMore }) => hasMore || cut.length === 0);
        assert.equal(now.height, row, said());
        assert.deepEqual([now.wrong, now.page], [[], 0], said());
        await page.screenshot(`toolbar-${tab}-${width}-${theme}`.toLowerCase());
        if (!now.hasMore) continue;
        some.add(tab);
        await at(page, 'toolbar-more').click();
        now = await until('all of it', () => look(page), ({ cut }) => cut.length === 0);
        assert.equal(now.height, row, `the picture stays: ${said()}`);
        assert.deepEqual(now.wrong, [], said());
        await page.screenshot(`toolbar-${tab}-${width}-${theme}-open`.toLowerCase());
        await press(page, 'Escape');
        await until('one row again', () => at(page, 'toolbar-more').getAttribute('aria-expanded'), (is) => is === 'false');
      }
      if (width <= 1024) assert.ok(some.has('Timeline') && some.has('Segments'), [...some].join(', '));
    });
  }
}

test('the keyboard reaches what is cut off, and a press beside a toolbar closes it', async (t) => {
  const page = await openPage(t, { width: 1024, height: 700 });
  await openSample(page);
  await until('a button for the rest', () => at(page, 'toolbar-more').count(), (count) => count === 1);
  await page.tab.getByTestId('timeline-color').focus();
  const isSeen = () => page.tab.evaluate(() => {
    const { left, top, width, height } = document.activeElement.getBoundingClientRect();
    return document.elementFromPoint(left + width / 2, top + height / 2)?.closest('button, select') === document.activeElement;
  });
  for (let i = 0; i < 12 && (await page.tab.evaluate(() => document.activeElement.dataset.testid)) !== 'toolbar-more'; i += 1) {
    assert.ok(await isSeen(), await page.tab.evaluate(() => document.activeElement.outerHTML));
    await press(page, 'Tab');
  }
  await press(page, 'Enter');
  await until('it is open', () => at(page, 'toolbar-more').getAttribute('aria-expanded'), (is) => is === 'true');
  await at(page, 'curves-toggle').click();
  await at(page, 'curves').waitFor();
  const box = await at(page, 'timeline-canvas').boundingBox();
  await page.tab.mouse.click(box.x + box.width / 2, box.y + box.height - 60);
  await until('it is closed', () => at(page, 'toolbar-more').getAttribute('aria-expanded'), (is) => is === 'false');
});
