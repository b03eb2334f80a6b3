// A person looks at two views at once: the timeline over the segments, the flame graph beside the heatmap.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { address, addressSays, at, goTo, movesFrom, openSample, press, standsAt, until } from './workbench.mjs';

/** Returns what the two views show and where they are, which of them keys act on, and the ids that occur twice. */
function views(page) {
  return page.tab.evaluate(() => {
    const of = (name) => {
      const view = document.querySelector(`[data-testid="view-${name}"]`);
      const { x, y, width, height } = view?.getBoundingClientRect() ?? {};
      return view && { shows: view.dataset.view, hasKeys: view.classList.contains('has-keys'), x, y, width, height };
    };
    const ids = [...document.querySelectorAll('[id]')].map((element) => element.id);
    return { first: of('first'), second: of('second'), twice: ids.filter((id, i) => ids.indexOf(id) !== i) };
  });
}

/** Waits until two views are shown. */
const showing = (page, first, second) =>
  until(`${first} and ${second}`, () => views(page), (now) => now.first?.shows === first && now.second?.shows === second);

test('two views share the cursor and the selection, and keys are for the one that was focused last', async (t) => {
  const page = await openPage(t);
  const { position } = await openSample(page);
  await at(page, 'split-toggle').click();
  const beside = await showing(page, 'timeline', 'segments');
  assert.ok(beside.first.x + beside.first.width <= beside.second.x + 1 && beside.first.y === beside.second.y, JSON.stringify(beside));
  assert.deepEqual(beside.twice, []);
  assert.ok(beside.first.hasKeys && !beside.second.hasKeys);
  await addressSays(page, 'split', 'segments,right,50');
  await page.screenshot('split-beside');

  await press(page, 'p');
  const peak = await movesFrom(page, position);
  // Both views follow the cursor; a block that is clicked in one is selected in both.
  const canvas = await at(page, 'segments-canvas').boundingBox();
  await until('a block is selected', async () => {
    await page.tab.mouse.click(canvas.x + canvas.width * 0.6, canvas.y + 30);
    return (await address(page)).get('sel');
  });
  const focused = await until('keys are for the segments', () => views(page), (now) => now.second.hasKeys);
  assert.ok(!focused.first.hasKeys && focused.first.shows === 'timeline', 'the views stay where they are');
  await addressSays(page, 'tab', 'segments');
  await addressSays(page, 'split', 'timeline,left,50');
  await standsAt(page, peak.position);

  await press(page, 'F6');
  await until('keys are for the timeline', () => views(page), (now) => now.first.hasKeys);
  // A number key changes the focused view. If the other view shows that tab, the key moves the focus there.
  await press(page, '3');
  await showing(page, 'flame', 'segments');
  await press(page, '2');
  await until('the segments have the keys', () => views(page), (now) => now.second.hasKeys && now.first.shows === 'flame');
  await press(page, '\\');
  await until('one view', () => views(page), (now) => now.first === null || now.first === undefined);
  await addressSays(page, 'split', null);
  await addressSays(page, 'tab', 'segments');
  // The same key brings it back as it was, also on the next visit.
  await press(page, '\\');
  await showing(page, 'flame', 'segments');
  await press(page, '\\');
  await addressSays(page, 'split', null);
  await page.open();
  await page.loadSample();
  await until('one view', () => page.tab.evaluate(() => document.querySelector('[data-testid="view-first"]') === null));
  await press(page, '\\');
  await addressSays(page, 'split', 'flame,left,50');
});

test('the splitter is dragged and moved by keys, and a link and a reload bring it back', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await at(page, 'split-toggle').click();
  await showing(page, 'timeline', 'segments');
  await at(page, 'split-turn').click();
  const over = await until('one over the other', () => views(page), (now) => now.first.y + now.first.height <= now.second.y + 1);
  assert.equal(over.first.x, over.second.x);
  const splitter = at(page, 'split-splitter');
  const line = await splitter.boundingBox();
  await page.tab.mouse.move(line.x + line.width / 2, line.y);
  await page.tab.mouse.down();
  await page.tab.mouse.move(line.x + line.width / 2, line.y - over.first.height * 0.4, { steps: 5 });
  await page.tab.mouse.up();
  await until('it is dragged', async () => (await address(page)).get('split'), (split) => /^segments,below,(2[5-9]|3[0-5])$/.test(split));
  const smaller = await until('the first is smaller', () => views(page), (now) => now.first.height < over.first.height * 0.75);
  assert.ok(smaller.second.height > over.second.height);
  await splitter.focus();
  await press(page, 'End');
  await addressSays(page, 'split', 'segments,below,85');
  await press(page, 'Shift+ArrowUp', 'ArrowUp');
  await addressSays(page, 'split', 'segments,below,73');
  assert.equal(await splitter.getAttribute('aria-valuenow'), '73');
  await splitter.dblclick();
  await addressSays(page, 'split', 'segments,below,50');
  await page.screenshot('split-over');

  const hash = new URL(page.tab.url()).hash.replace(/tab=\w+/, 'tab=flame').replace(/split=[^&]+/, 'split=heatmap,left,40');
  await page.tab.evaluate((hash) => { location.hash = hash; }, hash);
  await showing(page, 'heatmap', 'flame');
  await until('as wide as the link says', () => views(page), (now) => now.second.hasKeys && now.first.width < now.second.width);
  await page.screenshot('split-flame-heatmap');

  // Each view has its own choice of tabs, without the tab of the other one.
  const choice = at(page, 'view-first').getByTestId('half-view');
  assert.ok(await choice.locator('option[value="flame"]').evaluate((option) => option.disabled));
  await choice.selectOption('events');
  await showing(page, 'events', 'flame');
  await at(page, 'view-second').getByTestId('half-close').click();
  await addressSays(page, 'tab', 'events');
  await addressSays(page, 'split', null);
});

test('in a small window the views are over one another', async (t) => {
  const page = await openPage(t, { width: 700, height: 900 });
  await openSample(page);
  // There is no room for its button.
  await press(page, '\\');
  const small = await showing(page, 'timeline', 'segments');
  assert.ok(small.first.y + small.first.height <= small.second.y + 1, JSON.stringify(small));
  await goTo(page, 'Flame');
  await showing(page, 'flame', 'segments');
  await page.screenshot('split-small');
});
