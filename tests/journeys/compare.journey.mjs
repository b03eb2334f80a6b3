// A person compares two runs: what changed, from which line, and when.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { emptyFolder, startJob, startJobIn, startServer } from './program.mjs';
import { MIB, trainingJob } from './training.mjs';
import { addressSays, answered, at, goTo, press, changedLines, changedLinesAre, says, standsAt, status, text, until } from './workbench.mjs';

const BEFORE = trainingJob(6, { name: 'before.json' });
const AFTER = trainingJob(6, { each: 5, moved: 3, name: 'after.json' });

/** Returns the bytes of a row of the sums: A, B and the change. */
const sums = (page, name) =>
  at(page, 'compare-accounting').locator('tr', { has: page.tab.getByRole('rowheader', { name, exact: true }) }).locator('.bytes')
    .evaluateAll((cells) => cells.map((cell) => Number(cell.dataset.bytes)));

/** Opens two runs, and compares the second with the first. */
async function compared(t, options) {
  const page = await openPage(t, options);
  await page.load(BEFORE);
  await page.drop(AFTER);
  await until('the second file is shown', () => text(page, 'file-menu'), (said) => said.includes('after.json'));
  await page.reach('ready');
  await press(page, '9');
  await at(page, 'compare-sentence').waitFor();
  return page;
}

test('two dropped files are compared line by line, and their sums add up', async (t) => {
  const page = await compared(t);
  // In step 6, the activation has 30 MiB for 12.
  await says(page, 'compare-sentence', /^B's peak is 18\.0 MiB higher \([\d.]+ MiB → [\d.]+ MiB\); nearly all of it is gpt\/model\.py:10 \(forward\)/);
  await changedLinesAre(page, [[18, 'moved', 'forward']]);
  assert.match(await text(page, 'compare-line-row'), /was forward.*model\.py:7/);
  const parts = await Promise.all(['in tensors', '+ rounding', '+ waiting', '+ free gaps', '= reserved'].map((name) => sums(page, name)));
  for (const [i, what] of ['A', 'B', 'the change'].entries()) {
    assert.equal(parts.slice(0, 4).reduce((sum, part) => sum + part[i], 0), parts[4][i], `the sums of ${what}`);
  }
  assert.equal(parts[0][2], 18 * MIB);
  await page.screenshot('compare');

  // What holds the same is listed when asked for; the search looks among them.
  await at(page, 'compare-unchanged').click();
  await until('all lines are listed', () => changedLines(page), (now) => now.length > 3 && now.some(([grown, , name]) => grown === 0 && name === 'log'));
  await at(page, 'compare-sort-line').click();
  await until('they are sorted by their text', () => changedLines(page), (now) => now.map((row) => row[2]).join() === 'forward,late,log,main,no');
  await page.tab.getByRole('combobox', { name: /search/i }).fill('late');
  await until('the search narrows them down', () => changedLines(page), (now) => now.length === 1 && now[0][2] === 'late');
  await press(page, 'Escape');
  await press(page, 'Escape');

  // A click selects the line in both.
  await at(page, 'compare-line-row').first().click();
  await at(page, 'detail-line').waitFor();
  await at(page, 'compare-swap').click();
  await at(page, 'detail-line').waitFor();
});

test('the two change places, and other moments are compared', async (t) => {
  const page = await compared(t);
  await at(page, 'compare-swap').click();
  await says(page, 'compare-sentence', /^B's peak is 18\.0 MiB lower/);
  assert.match(await text(page, 'file-menu'), /before\.json/);
  await press(page, 'b');
  await says(page, 'compare-sentence', /^B's peak is 18\.0 MiB higher/);
  await at(page, 'moment-end').click();
  await says(page, 'compare-sentence', /^No difference: both hold/);
  await changedLinesAre(page, []);
  assert.equal(await text(page, 'compare-none'), 'Every line holds the same in both.');

  // A click on the chart moves both cursors, here to the activation of the first step.
  const box = await at(page, 'compare-chart').boundingBox();
  await page.tab.mouse.move(box.x + box.width / 2, box.y + box.height / 3);
  await says(page, 'compare-readout', /^Step \d: A up to [\d.]+ MiB, B up to [\d.]+ MiB/);
  await page.tab.mouse.click(box.x + 72, box.y + box.height / 3);
  await addressSays(page, 'at', 'cursor');
  await says(page, 'compare-moments', /A\s*event 2/);
  await answered(page);
  await at(page, 'compare-event-axis').click();
  await addressSays(page, 'along', 'events');
});

test('both are compared at a pin that they have, and where one of them peaks', async (t) => {
  const page = await openPage(t);
  for (const file of [BEFORE, AFTER]) {
    await page.drop(file);
    await until('it is shown', () => text(page, 'file-menu'), (said) => said.includes(file.name));
    await page.reach('ready');
    await answered(page);
    await press(page, 'End');
    await press(page, 'Shift+M');
  }
  await press(page, '9');
  await at(page, 'compare-moment').click();
  await page.tab.getByRole('button', { name: /^Pin / }).click();
  await says(page, 'compare-moments', /A\s*event 66.*B\s*event 66/s);
  await at(page, 'compare-moment').click();
  await page.tab.getByRole('button', { name: /^A's peak/ }).click();
  await says(page, 'compare-moments', /A\s*event 58.*B\s*event 58/s);
  await addressSays(page, 'at', 'cursor');

  // Elsewhere both cursors are where they were.
  await at(page, 'compare-chart').click({ position: { x: 200, y: 60 } });
  const moments = await until('both cursors are there', () => text(page, 'compare-moments'), (said) => !said.includes('58'));
  await addressSays(page, 'basecur', moments.match(/event (\d+)/)[1]);
  const other = await openPage(t, { address: new URL(page.tab.url()).hash });
  await other.load(AFTER);
  await other.drop(BEFORE);
  await until('the same moments', () => at(other, 'compare-moments').innerText().catch(() => ''), (said) => said.replace(/\s/g, '') === moments.replace(/\s/g, ''));
});

test('the chart is read by key, and Back goes to the moment before', async (t) => {
  const page = await compared(t);
  await at(page, 'compare-event-axis').click();
  const chart = at(page, 'compare-chart');
  await answered(page);
  await chart.focus();
  const value = () => chart.evaluate((slider) => [Number(slider.ariaValueNow), slider.ariaValueText]);
  await press(page, 'Home');
  await press(page, 'ArrowRight');
  const [first] = await until('a key reads it', value, ([now]) => now > 0);
  await press(page, 'Shift+ArrowRight');
  const [, said] = await until('with Shift it goes further', value, ([now]) => now > 5 * first);
  assert.match(said, /^Event [1-9]: A up to [\d.]+ MiB, B up to [\d.]+ MiB/);
  await press(page, 'Enter');
  await addressSays(page, 'at', 'cursor');
  await says(page, 'compare-moments', /A\s*event [1-9]/);
  await page.tab.goBack();
  await says(page, 'compare-moments', /A\s*the peak of step 6/);
  await page.tab.goForward();
  await says(page, 'compare-moments', /A\s*event [1-9]/);
});

test('both runs are shown side by side, and settings are those of both', async (t) => {
  const page = await compared(t);
  for (const view of ['timeline', 'segments', 'heatmap']) {
    await at(page, `compare-view-${view}`).click();
    for (const pane of ['compare-pane-a', 'compare-pane-b']) await at(page, pane).getByTestId(`${view}-canvas`).first().waitFor();
    await answered(page);
    await page.screenshot(`compare-${view}`);
  }
  // A click in a pane moves the cursor of its run, and a button takes both to the compared moments.
  await at(page, 'compare-to-moments').click();
  await standsAt(page, 58);
  for (const pane of ['compare-pane-a', 'compare-pane-b']) {
    const canvas = at(page, pane).getByTestId('heatmap-canvas');
    const box = await canvas.boundingBox();
    await canvas.click({ position: { x: box.width / 2, y: box.height / 2 } });
  }
  await until('the cursor of B has moved', () => status(page), (now) => now.position !== 58);
  const sizes = page.tab.locator('.compare-pane').getByTestId('heatmap-sizes');
  await sizes.first().click();
  await until('both show sizes', () => sizes.evaluateAll((all) => all.map((one) => one.ariaPressed)), (now) => now.join() === 'true,true');
});

test('the stacks of both are one graph, coloured by change', async (t) => {
  const page = await compared(t);
  await at(page, 'compare-view-flame').click();
  const flame = at(page, 'flame-difference');
  const sum = () => at(page, 'flame-sum').evaluate(({ dataset }) => [dataset.grew, dataset.shrank].map((bytes) => Number(bytes) / 1048576));
  await until('all of the growth is in it', sum, (now) => now.join() === '18,0');
  await flame.getByTestId('flame-canvas').waitFor();
  await answered(page);
  await page.screenshot('compare-flame');

  // The line that moved is one box; a click zooms into it and selects it, and the graph of B's own tab is not zoomed.
  await flame.getByTestId('flame-bottom-up').click();
  await answered(page);
  await flame.getByTestId('flame-as-table').click();
  const line = flame.getByRole('treeitem').filter({ hasText: 'forward' });
  await until('it is one row', () => line.count(), (count) => count === 1);
  assert.match(await line.innerText(), /\+18\.0 MiB/);
  await flame.getByTestId('flame-as-graph').click();
  const box = await flame.getByTestId('flame-canvas').boundingBox();
  await page.tab.mouse.click(box.x + 30, box.y + 30);
  await until('it is zoomed into', () => flame.locator('.crumb').allInnerTexts(), (now) => now.length === 2);
  assert.ok(!page.tab.url().includes('zoom='), page.tab.url());
  await flame.getByTestId('flame-zoom-out').click();
  await until('all is shown', () => flame.locator('.crumb').count(), (count) => count === 1);

  // Swapped, it shrank.
  await at(page, 'compare-swap').click();
  await until('it shrank', sum, (now) => now.join() === '0,18');
});

test('a link to a comparison finds both files elsewhere', async (t) => {
  const first = await compared(t);
  await at(first, 'moment-peak').click();
  await addressSays(first, 'at', 'peak');
  await until('the address names A by its content', () => first.tab.url(), (url) => /base=0,[0-9a-f]{32},before\.json/.test(url) && /hash=/.test(url));
  const address = new URL(first.tab.url()).hash;

  // In either order.
  const page = await openPage(t, { address });
  await page.load(AFTER);
  await says(page, 'compare-empty', /This link compares with before\.json, which is not open/);
  await page.drop(BEFORE);
  await says(page, 'compare-sentence', /^B's peak is 18\.0 MiB higher/);
  assert.match(page.tab.url(), /at=peak/);
  await until('the address has both contents', () => page.tab.url(), (url) => new URL(url).hash === address);
  const other = await openPage(t, { address });
  await other.load(BEFORE);
  await says(other, 'notice', /This is run A of the link's comparison\. Open “after\.json”, too/);
  await other.drop(AFTER);
  await says(other, 'compare-sentence', /^B's peak is 18\.0 MiB higher/);
});

test('a single file asks for another, and a file that is no trace is refused', async (t) => {
  const page = await openPage(t);
  await page.load(AFTER);
  await goTo(page, 'Compare');
  await says(page, 'compare-empty', /Drop a second file on this page/);
  // A file that can't be read shows its error; the next one is compared.
  await page.drop({ name: 'notes.bin', mimeType: 'application/octet-stream', buffer: Buffer.from([0, 1, 2, 3]) });
  await page.reach('error');
  await at(page, 'file-menu').click();
  await page.tab.getByTestId('file-row').first().click();
  await page.reach('ready');
  await page.drop(BEFORE);
  await says(page, 'compare-sentence', /^B's peak is 18\.0 MiB lower/);
});

test('a run is compared with its what-if', async (t) => {
  const page = await openPage(t);
  await page.loadSample();
  await goTo(page, 'What-if');
  await at(page, 'whatif-runs').waitFor();
  await at(page, 'whatif-conf').fill('expandable_segments:True');
  await at(page, 'whatif-add').click();
  await at(page, 'whatif-open').first().click();
  await until('the run is shown', () => text(page, 'file-menu'), (said) => said.includes('expandable_segments'));
  await page.reach('ready');
  await press(page, '9');
  await says(page, 'compare-conditions', /settings .*expandable_segments:True/);
  assert.equal((await sums(page, 'in tensors'))[2], 0, 'the same requests');
  assert.notEqual((await sums(page, '= reserved'))[2], 0);
});

test('two jobs of a server are compared while they run', async (t) => {
  const server = await startServer(t, emptyFolder(t));
  const jobs = ['batch=2', 'batch=3'].map((batch) => startJob(t, server.url, 'transformer', 'layers=2', batch, '--steps', '4'));
  await Promise.all(jobs.map((job) => job.ended));
  const page = await openPage(t);
  const row = page.tab.getByTestId('session-open');
  await until('both are listed', () => row.count(), (count) => count === 2);
  await row.first().click();
  await page.reach('ready');
  await press(page, '9');
  await at(page, 'compare-empty').waitFor();
  await page.tab.goBack();
  await page.tab.goBack();
  await row.nth(1).click();
  await page.reach('ready');
  await press(page, '9');
  await says(page, 'compare-sentence', /^B's peak is [\d.]+ GiB (higher|lower)/);
});

test('two processes of a job are compared', async (t) => {
  const server = await startServer(t, emptyFolder(t));
  const env = { ...process.env, VRAMSCOPE_JOB: 'train.py-two' };
  const jobs = [['rank 0', 'batch=2'], ['rank 1', 'batch=3']].map(([name, batch]) =>
    startJobIn(t, env, server.url, 'transformer', 'layers=2', batch, '--steps', '4', '--rate', '0', '--name', name));
  await Promise.all(jobs.map((job) => job.ended));
  const page = await openPage(t, { address: `${server.url}#job=train.py-two` });
  await page.reach('ready');
  const rows = async () => (await at(page, 'file-row').allInnerTexts()).join(' ');
  await at(page, 'file-menu').click();
  await until('both are open', rows, (said) => said.includes('rank 0') && said.includes('rank 1'));
  await press(page, 'Escape');
  await press(page, '9');
  await says(page, 'compare-sentence', /^B's peak is [\d.]+ GiB (higher|lower)/);
  const names = await Promise.all(['compare-base', 'compare-b'].map((id) => text(page, id)));
  assert.deepEqual(names.map((name) => name.match(/rank \d|\d$/)?.[0].at(-1)).sort(), ['0', '1'], names.join());
});

test('a run is compared with itself at another moment', async (t) => {
  const page = await openPage(t);
  await page.load(AFTER);
  await press(page, '9');
  await at(page, 'compare-itself').click();
  // From step 2 to step 6, the activation has 20 MiB more, each step keeps 1 MiB, `late` 3 MiB, and `early` has freed 7 MiB.
  await says(page, 'compare-sentence', /^B's peak is 20\.0 MiB higher \([\d.]+ MiB → [\d.]+ MiB\); nearly all of it is gpt\/model\.py:10 \(forward\)/);
  await says(page, 'compare-moments', /A\s*the peak of step 2.*B\s*the peak of step 6/s);
  await changedLinesAre(page, [[20, 'exact', 'forward'], [-7, 'gone', 'early'], [4, 'exact', 'log'], [3, 'new', 'late']]);
  assert.equal(await at(page, 'compare-view-timeline').count() + await at(page, 'compare-chart').count(), 0, 'one run has one picture');
  await at(page, 'compare-view-flame').click();
  await until('what grew and what shrank', () => at(page, 'flame-sum').getAttribute('data-shrank'), (bytes) => Number(bytes) === 7 * MIB);
  await page.screenshot('compare-itself');
  await at(page, 'moment-cursor').click();
  await says(page, 'compare-moments', /A\s*event 0.*B\s*event 58/s);

  // The ends of a range are compared from its details.
  await goTo(page, 'Timeline');
  await press(page, '<');
  await at(page, 'detail-range').waitFor();
  await at(page, 'range-compare').click();
  await says(page, 'compare-moments', /A\s*event 57.*B\s*event 58/s);
  await page.tab.goBack();
  await page.tab.goBack();
  await page.tab.goBack();
  await says(page, 'compare-moments', /A\s*event 0.*B\s*event 58/s);

  // Elsewhere, one file is enough.
  await addressSays(page, 'at', 'cursor');
  const other = await openPage(t, { address: new URL(page.tab.url()).hash });
  await other.load(AFTER);
  await says(other, 'compare-moments', /A\s*event 0.*B\s*event 58/s);
  await at(other, 'compare-base').click();
  assert.equal(await at(other, 'compare-base-row').innerText().then((said) => said.split('\n')[0]), 'this run, earlier');
});
