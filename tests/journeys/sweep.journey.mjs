// A person has swept a parameter in the terminal, and looks at the result in the page.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { emptyFolder, programPath } from './program.mjs';
import { at, bytesIn, copied, goTo, number, press, says, text, until } from './workbench.mjs';

const program = (...args) => execFileSync(programPath(), args, { encoding: 'utf8' });

/** Runs a sweep. Returns its file, what the file says, and what the terminal said. */
function sweep(t, ...args) {
  const file = join(emptyFolder(t), 'sweep.json');
  const said = program('sweep', ...args, '--out', file);
  return { file, said, document: JSON.parse(readFileSync(file, 'utf8')) };
}

/** Opens a sweep, and waits for its plot. */
async function open(t, file, options) {
  const page = await openPage(t, options);
  await page.load(file);
  await at(page, 'sweep-plot').waitFor();
  return page;
}

/** Returns the numbers of each row of the table, by the value of the parameter. */
async function rows(page) {
  const found = {};
  for (const row of await at(page, 'sweep-run').all()) {
    const [reserved, allocated] = await bytesIn(row);
    const cells = await row.locator('td').allTextContents();
    const value = await row.getByTestId('sweep-choose').textContent();
    found[value] = [reserved, allocated, number(cells[2]), number(cells[3]), (await row.getAttribute('data-fits')) === 'true'];
  }
  return found;
}

/** Returns what the table must say of runs. */
const expected = (runs) =>
  Object.fromEntries(runs.map((run) => [run.value, [run.peak_reserved, run.peak_allocated, run.retries, run.device_allocs + run.device_frees, run.fits]]));

/** Returns where points of a kind are, from left to right. */
const points = (page, kind) =>
  at(page, 'sweep-plot').locator(`.sweep-mark.${kind}`).evaluateAll((marks) =>
    marks.map((mark) => mark.getBoundingClientRect()).map((box) => [box.x + box.width / 2, box.y + box.height / 2]).sort((a, b) => a[0] - b[0]),
  );

test('a sweep shows the largest batch that fits with its proof, a plot, a table and the line to paste', async (t) => {
  const { file, said, document } = sweep(t, 'resnet-sweep', 'batch=64..512', '--card', 'A100-40GB');
  const { fits, fails } = document.largest;
  const page = await open(t, file);
  await page.screenshot('sweep');

  // The page says what the terminal says.
  const verdict = await text(page, 'sweep-verdict');
  assert.ok(said.includes(`${verdict}\n`), `${verdict} is not in ${said}`);
  assert.ok(verdict.includes(`The largest batch that fits is ${fits.value}`), verdict);
  const labels = await at(page, 'sweep-plot').locator('text').allTextContents();
  for (const label of [`${fits.value} fits, ${fails.value} fails`, 'capacity of A100-40GB: 38.9 GiB', 'batch', '64', '512']) assert.ok(labels.includes(label), `${label} is not in ${labels}`);

  // Both sides of the proof are among the runs, in the order of the numbers.
  const all = [...document.runs, fits, fails].sort((a, b) => a.value - b.value);
  assert.deepEqual(await rows(page), expected(all));
  assert.deepEqual(await at(page, 'sweep-choose').allTextContents(), all.map((run) => run.value));

  // Each point is where its numbers are: batches and bytes to scale.
  const marks = [...(await points(page, 'is-reserved')), ...(await points(page, 'is-failed'))];
  const allocated = await points(page, 'is-allocated');
  assert.equal(allocated.length, all.length);
  const known = [...all.filter((run) => run.fits), ...all.filter((run) => !run.fits)];
  assert.equal(marks.length, known.length);
  const [first, other] = [known[0], known.find((run) => run.value === fits.value)];
  const [from, to] = [marks[0], marks[known.indexOf(other)]];
  const perBatch = (to[0] - from[0]) / (other.value - first.value);
  const perByte = (to[1] - from[1]) / (other.peak_reserved - first.peak_reserved);
  for (const [i, run] of known.entries()) {
    assert.ok(Math.abs(marks[i][0] - from[0] - perBatch * (run.value - first.value)) < 1, `${run.value} is at ${marks[i]}`);
    assert.ok(Math.abs(marks[i][1] - from[1] - perByte * (run.peak_reserved - first.peak_reserved)) < 1, `${run.value} is at ${marks[i]}`);
  }

  // The line repeats the run.
  await at(page, 'sweep-line').getByTestId('copy').click();
  const line = await copied(page);
  assert.equal(line, await at(page, 'sweep-line').locator('code').textContent());
  assert.match(line, new RegExp(`^vramscope run resnet-sweep .*batch=${fits.value} --capacity `));
  const again = JSON.parse(program(...line.split(' ').slice(1), '--json'));
  assert.deepEqual([again.reserved.peak, again.allocated.peak, again.num_ooms], [fits.peak_reserved, fits.peak_allocated, 0]);

  // Another run is chosen in the table, by keyboard too, or in the plot.
  await at(page, 'sweep-choose').filter({ hasText: fails.value }).focus();
  await press(page, 'Enter');
  await says(page, 'sweep-chosen', new RegExp(`^batch=${fails.value}$`));
  await at(page, 'sweep-column').first().click();
  await says(page, 'sweep-chosen', /^batch=64$/);
  await says(page, 'sweep-line', /batch=64 /);

  // In words, for who can't see the plot.
  const twin = await text(page, 'text-twin');
  for (const part of ['Plot of batch from 64 to 512', `Out of memory with ${fails.value}, 512`]) assert.ok(twin.includes(part), twin);
});

test('a sweep is not a trace: it has no tabs, and stands beside traces', async (t) => {
  const { file } = sweep(t, 'transformer', 'batch=1..3', '--steps', '2');
  const page = await openPage(t);
  await page.loadSample();
  await goTo(page, 'Flame');
  await until('the address names the sample', () => page.tab.url(), (url) => url.includes('sample.pickle'));
  await page.load(file);
  await at(page, 'sweep-plot').waitFor();
  assert.equal(await page.tab.getByRole('tab').count(), 0);
  assert.ok(await at(page, 'share-button').isDisabled(), 'nothing to share');
  for (const name of ['device-menu', 'status']) assert.equal(await at(page, name).count(), 0, name);
  assert.match(await page.tab.title(), /^sweep\.json/);
  // Links can't name it, so that the last one goes.
  await until('the address names nothing', () => new URL(page.tab.url()).hash, (hash) => hash === '');
  // Keys of a trace do nothing.
  await press(page, '1', 'f', 'u', 'p', '/', 'Escape');
  assert.equal(await at(page, 'sweep-plot').count(), 1);
  // With each value that fits, the end of the range is the answer.
  assert.match(await text(page, 'sweep-verdict'), /^batch=3 fits, the end of the range/);
  await press(page, 'k');
  await at(page, 'tab-flame').waitFor();
  assert.equal(await at(page, 'tab-flame').getAttribute('aria-selected'), 'true');
  await press(page, 'k');
  await at(page, 'sweep-plot').waitFor();
});

test('words stand at equal distances, without lines between them', async (t) => {
  const { file, document } = sweep(t, 'checkpoint-save', 'copy=whole,tensor,pinned', '--capacity', '22GiB');
  const page = await open(t, file, { theme: 'dark' });
  await page.screenshot('sweep-words-dark');
  assert.equal(await text(page, 'sweep-verdict'), 'copy: 2 of 3 runs fit in 22.0 GiB');
  assert.equal(await at(page, 'sweep-plot').locator('.sweep-line').count(), 0);
  assert.equal((await points(page, 'is-failed')).length, 1);
  const [a, b, c] = (await points(page, 'is-allocated')).map(([x]) => x);
  assert.ok(Math.abs(b - a - (c - b)) < 1, `${[a, b, c]}`);
  assert.deepEqual(await rows(page), expected(document.runs));
  assert.match(await text(page, 'sweep-line'), /copy=tensor --capacity 22GiB/);
});

test('all of it is there on a narrow page, in the dark', async (t) => {
  const { file } = sweep(t, 'resnet-sweep', 'batch=16..512', '--card', 'A100-40GB', '--conf', 'roundup_power2_divisions:[256:1,>:2]');
  const page = await open(t, file, { width: 390, height: 844, theme: 'dark' });
  await page.screenshot('sweep-narrow-dark');
  const wide = await page.tab.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  assert.equal(wide, false);
  const labels = await at(page, 'sweep-plot').locator('text').evaluateAll((texts) => texts.map((text) => text.getBoundingClientRect()).map(({ left, right, top, bottom }) => [left, right, top, bottom]));
  const box = await at(page, 'sweep-plot').boundingBox();
  for (const [i, one] of labels.entries()) {
    assert.ok(one[0] >= box.x - 1 && one[1] <= box.x + box.width + 1, `a label is cut off: ${one} in ${JSON.stringify(box)}`);
    for (const other of labels.slice(i + 1)) {
      const overlaps = one[0] < other[1] && other[0] < one[1] && one[2] + 2 < other[3] && other[2] + 2 < one[3];
      assert.ok(!overlaps, `two labels overlap: ${one} and ${other}`);
    }
  }
  await at(page, 'sweep-line').scrollIntoViewIfNeeded();
  await page.screenshot('sweep-narrow-dark-below');
});

test('a damaged or newer sweep gets one clear sentence', async (t) => {
  const { file } = sweep(t, 'transformer', 'batch=1..3', '--steps', '2');
  const whole = readFileSync(file, 'utf8');
  const page = await openPage(t);
  for (const [name, content, want] of [
    ['cut.json', whole.slice(0, whole.length - 20), /damaged at line \d+, column \d+: it ends early/],
    ['newer.json', whole.replace('sweep 1', 'sweep 2'), /format version 2; this program reads version 1\. Update/],
    ['empty.json', whole.replace(/"runs": \[[^\]]*\]/, '"runs": []'), /it has no runs/],
    ['large.json', whole + ' '.repeat(2 ** 21), /has more than 1\.00 MiB/],
    ['hostile.json', whole.replace('"transformer"', '"--out=<img src=x onerror=alert(1)>"'), /of its workload or of a parameter has characters that no name has/],
  ]) {
    await page.drop({ name, mimeType: 'application/json', buffer: Buffer.from(content) });
    await until(`${name} is the file`, () => page.tab.title(), (title) => title.startsWith(name));
    await page.reach('error');
    await says(page, 'error-message', want);
  }
  await page.screenshot('sweep-damaged');
  assert.equal(await page.tab.locator('img').count(), 0);
  await page.drop(file);
  await at(page, 'sweep-plot').waitFor();
});
