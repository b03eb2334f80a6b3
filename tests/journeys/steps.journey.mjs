// A person lays one step over another and sees what grew.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { addressSays, at, press, says, text, tip, until } from './workbench.mjs';
import { trainingJob } from './training.mjs';

/** Returns the lines of the comparison: name, mark and growth in MiB. */
const lines = (page) =>
  at(page, 'compare-line').evaluateAll((rows) =>
    rows.map((row) => [
      row.querySelector('.legend-label').textContent.split(' ')[0],
      row.querySelector('.compare-mark')?.textContent ?? '',
      Number(row.querySelector('.bytes').dataset.bytes) / 1048576,
    ]),
  );

const linesAre = (page, wanted) => until(`the lines are ${JSON.stringify(wanted)}`, () => lines(page), (now) => JSON.stringify(now) === JSON.stringify(wanted));

test('two steps are compared line by line', async (t) => {
  const page = await openPage(t);
  await page.load(trainingJob());
  await press(page, 'c');
  await at(page, 'detail-steps').waitFor();
  assert.match(await text(page, 'detail-steps'), /Step 6 over step 2.*of 6 steps, found from optimizer\.step/);
  // From step 2 to 6: four more of what each step keeps, what the third began to keep, and what it dropped.
  const ends = [['log', '', 4], ['late', 'new', 3], ['early', 'gone', -7]];
  await linesAre(page, ends);
  await says(page, 'text-twin', /Step 6 over step 2: [\d.]+ MiB to [\d.]+ MiB at the end; log .* grew by 4\.00 MiB/);
  await page.screenshot('steps');

  await at(page, 'compare-peaks').click();
  await linesAre(page, [['forward', '', 8], ['log', '', 4], ['late', 'new', 3], ['early', 'gone', -7]]);
  await at(page, 'compare-ends').click();
  await linesAre(page, ends);

  // Other steps, by their numbers; one that is not there is refused.
  await at(page, 'compare-earlier').fill('4');
  await press(page, 'Enter');
  await linesAre(page, [['log', '', 2]]);
  await addressSays(page, 'steps', '3,5');
  await at(page, 'compare-later').fill('99');
  await press(page, 'Tab');
  await says(page, 'notice', /No such step. Steps run from 1 to 6/);

  // A click selects the line, and Esc leads back to the comparison.
  await at(page, 'compare-line').first().click();
  await at(page, 'detail-line').waitFor();
  await press(page, 'Escape');
  await press(page, 'Escape');
  await at(page, 'detail-steps').waitFor();
  await addressSays(page, 'sel', null);
  const link = page.tab.url();
  await at(page, 'compare-clear').click();
  await addressSays(page, 'steps', null);

  // The link restores it, in a browser that does not know the file yet.
  const other = await openPage(t, { address: new URL(link).hash });
  await other.load(trainingJob());
  await linesAre(other, [['log', '', 2]]);
});

test('Shift-click on another step compares it with the selected one', async (t) => {
  const page = await openPage(t);
  await page.load(trainingJob());
  const canvas = at(page, 'timeline-canvas');
  const box = await canvas.boundingBox();
  // The strip of steps lies between the cursor's strip and the shapes; the steps fill the width evenly.
  const step = (number) => ({ x: 68 + ((box.width - 80) * (number - 0.4)) / 6, y: 28 });
  await canvas.click({ position: step(2) });
  await at(page, 'detail-range').waitFor();
  await canvas.hover({ position: step(5) });
  await until('the tooltip says how steps were found', () => tip(page), (said) => /step 5\. Found from optimizer\.step/.test(said));
  await canvas.click({ position: step(5), modifiers: ['Shift'] });
  await says(page, 'detail-steps', /Step 5 over step 2/);
  await linesAre(page, [['log', '', 3], ['late', 'new', 3], ['early', 'gone', -7]]);
});
