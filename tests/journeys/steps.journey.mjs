// A person compares two steps of a run and sees what grew.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { addressSays, at, press, changedLinesAre, says, text, tip, until } from './workbench.mjs';
import { trainingJob } from './training.mjs';

test('two steps are compared line by line, at their peaks and at their ends', async (t) => {
  const page = await openPage(t);
  await page.load(trainingJob());
  await press(page, 'c');
  await says(page, 'compare-moments', /A\s*the peak of step 2.*B\s*the peak of step 6/s);
  assert.match(await text(page, 'compare'), /of 6 steps, from optimizer\.step/);
  // From step 2 to 6: four more of what each step keeps, what the third began to keep, and what it dropped.
  const peaks = [[8, 'exact', 'forward'], [-7, 'gone', 'early'], [4, 'exact', 'log'], [3, 'new', 'late']];
  await changedLinesAre(page, peaks);
  await page.screenshot('steps');
  await at(page, 'moment-end').click();
  await says(page, 'compare-moments', /A\s*the end of step 2.*B\s*the end of step 6/s);
  await changedLinesAre(page, peaks.slice(1));

  // Other steps, by their numbers; one that is not there is refused.
  await at(page, 'compare-earlier').fill('4');
  await press(page, 'Enter');
  await changedLinesAre(page, [[2, 'exact', 'log']]);
  await addressSays(page, 'steps', '3,5');
  await at(page, 'compare-later').fill('99');
  await press(page, 'Tab');
  await says(page, 'notice', /No such step. Steps run from 1 to 6/);

  // A step with itself, and the other way round, are answers too.
  await at(page, 'compare-later').fill('4');
  await press(page, 'Enter');
  await says(page, 'compare-sentence', /^No difference/);
  await at(page, 'compare-later').focus();
  await press(page, 'ArrowDown');
  await says(page, 'compare-moments', /A\s*the end of step 4.*B\s*the end of step 3/s);
  await at(page, 'compare-later').fill('6');
  await press(page, 'Enter');
  await changedLinesAre(page, [[2, 'exact', 'log']]);

  // A click selects the line.
  await at(page, 'compare-line-row').first().click();
  await at(page, 'detail-line').waitFor();
  const link = page.tab.url();

  // The link restores it, in a browser that does not know the file yet; and so does one of before, which named no run.
  const other = await openPage(t, { address: new URL(link).hash });
  await other.load(trainingJob());
  await changedLinesAre(other, [[2, 'exact', 'log']]);
  const old = await openPage(t, { address: '#v=1&dev=0&tab=timeline&x=event&steps=3,5&peaks=1' });
  await old.load(trainingJob());
  await says(old, 'compare-moments', /A\s*the peak of step 4.*B\s*the peak of step 6/s);

  // Back leads to what was compared first, and then to where it began.
  await page.tab.goBack();
  await page.tab.goBack();
  await says(page, 'compare-moments', /A\s*the peak of step 2/);
  await page.tab.goBack();
  await at(page, 'timeline-canvas').waitFor();
});

test('without steps, a run is compared from the start to the cursor, and says so', async (t) => {
  const page = await openPage(t);
  await page.load(trainingJob(1));
  await press(page, 'c');
  await says(page, 'compare', /No two steps were found: from the start to the cursor\./);
  assert.equal(await at(page, 'moment-cursor').getAttribute('aria-pressed'), 'true');
  assert.equal(await at(page, 'moment-end').count(), 0);
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
  await says(page, 'compare-moments', /A\s*the peak of step 2.*B\s*the peak of step 5/s);
  await changedLinesAre(page, [[-7, 'gone', 'early'], [6, 'exact', 'forward'], [3, 'exact', 'log'], [3, 'new', 'late']]);
});
