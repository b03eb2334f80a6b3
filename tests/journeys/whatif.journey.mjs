// A person asks which allocator settings would have saved a run, and whether it would fit on another card.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { emptyFolder, programPath, startJob, startServer } from './program.mjs';
import { address, at, bytesIn, copied, goTo, number, openSample, press, says, status, text, until } from './workbench.mjs';

/** Records a workload, and returns its file. */
function record(t, name, ...args) {
  const file = join(emptyFolder(t), `${name}.vramscope`);
  execFileSync(programPath(), ['run', name, ...args, '--out', file], { stdio: ['ignore', 'ignore', 'inherit'] });
  return file;
}

/** Returns what the program itself says of a file. */
const whatif = (file, ...args) => JSON.parse(execFileSync(programPath(), ['whatif', file, '--json', ...args], { encoding: 'utf8' }));

/** Waits until a number of runs are done, and returns their rows. */
async function runs(page, count) {
  const rows = at(page, 'whatif-runs').locator('tbody tr');
  await until(`${count} runs are done`, () => at(page, 'whatif-runs').locator('tr[data-state=done]').count(), (done) => done === count);
  return rows;
}

/** Returns the exact peak of reserved memory of a row. */
const reserved = async (row) => (await bytesIn(row.getByTestId('whatif-reserved')))[0];

/** Writes a line of settings, and asks for a run under it. */
async function addRun(page, conf) {
  await at(page, 'whatif-conf').fill(conf);
  await at(page, 'whatif-add').click();
}

test('a fragmented trace: press the button, copy the line', async (t) => {
  const page = await openPage(t);
  const file = record(t, 'variable-length');
  await page.load(file);
  await at(page, 'verdict').waitFor();
  await at(page, 'verdict-whatif').click();
  assert.equal(await page.tab.getByRole('tab', { selected: true }).textContent(), 'What-if');
  await says(page, 'whatif-check', /^Replay check passed: [\d,]+ requests came out/);
  await at(page, 'tune-recommended').waitFor({ timeout: 120_000 });
  const line = await at(page, 'tune-recommended').locator('code').textContent();
  assert.match(line, /^PYTORCH_CUDA_ALLOC_CONF=./);
  assert.equal(await at(page, 'tune-verdict').getAttribute('data-complete'), 'true');
  await page.screenshot('whatif-saved');
  await at(page, 'tune-recommended').getByTestId('copy').click();
  assert.equal(await copied(page), line);

  // The advice holds outside of the page, too.
  const { runs: [before, after] } = whatif(file, '--conf', line.split('=')[1]);
  assert.ok(before.ooms > 0 && after.ooms === 0, JSON.stringify([before, after]));
  const [chosen] = await bytesIn(at(page, 'tune-group').first());
  assert.equal(chosen, after.peak_reserved);
  // It is run beside the recorded settings.
  const rows = await runs(page, 2);
  assert.equal(await reserved(rows.nth(1)), after.peak_reserved);
  assert.equal(await at(page, 'tune-add-recommended').count(), 0, 'it needs no second run');
});

test('in a small window, every column of the runs and their buttons are in view', async (t) => {
  const page = await openPage(t, { width: 1024, height: 700, theme: 'dark' });
  await page.load(record(t, 'transformer', '--steps', '6'));
  await goTo(page, 'What-if');
  await runs(page, 1);
  await at(page, 'whatif-expandable').selectOption('True');
  await at(page, 'whatif-add').click();
  await runs(page, 2);
  await until('the least memory is known', () => at(page, 'whatif-smallest').count(), (count) => count === 2);
  const [is, has] = await at(page, 'whatif-runs').evaluate((table) => [table.scrollWidth, table.closest('.whatif-scroll').clientWidth]);
  assert.ok(is <= has, `the table is ${is} px wide, and ${has} px are there`);
  await at(page, 'whatif-runs').scrollIntoViewIfNeeded();
  await page.screenshot('whatif-runs-small');
});

test('a run under other settings stands beside that of the recording, and is what the program says', async (t) => {
  const file = record(t, 'transformer', '--steps', '6');
  const page = await openPage(t);
  await page.load(file);
  await goTo(page, 'What-if');
  await runs(page, 1);
  const said = whatif(file, '--conf', 'expandable_segments:True');
  const { requests, equal } = said.selfcheck;
  const check = await text(page, 'whatif-check');
  assert.equal(equal, requests);
  assert.equal(number(/^Replay check passed: ([\d,]+) requests/.exec(check)[1]), requests);

  // A control writes the line; the line is what runs.
  await at(page, 'whatif-expandable').selectOption('True');
  assert.equal(await at(page, 'whatif-conf').inputValue(), 'expandable_segments:True');
  await at(page, 'whatif-add').click();
  const rows = await runs(page, 2);
  for (const [i, run] of said.runs.entries()) assert.equal(await reserved(rows.nth(i)), run.peak_reserved);
  await until('the least memory is known', () => at(page, 'whatif-smallest').count(), (count) => count === 2);
  const least = await bytesIn(at(page, 'whatif-smallest'));
  assert.deepEqual(least, said.runs.map((run) => run.smallest_capacity));
  await page.screenshot('whatif-runs');

  // What a person did is still there after a look elsewhere.
  await goTo(page, 'Timeline');
  await goTo(page, 'What-if');
  await runs(page, 2);
  assert.equal((await address(page)).get('tab'), 'whatif');
  await at(page, 'whatif-remove').click();
  await runs(page, 1);
});

test('a run opens as a file of its own, and its line stands over the timeline', async (t) => {
  const file = record(t, 'variable-length');
  const page = await openPage(t);
  await page.load(file);
  const views = ['timeline-canvas', 'overview-canvas'];
  const look = () => Promise.all(views.map((name) => at(page, name).screenshot()));
  await at(page, 'verdict').waitFor();
  await goTo(page, 'What-if');
  await runs(page, 1);
  await goTo(page, 'Timeline');
  let before = await look();
  await until('the views stand still', async () => {
    const last = before;
    before = await look();
    return before.every((picture, i) => picture.equals(last[i]));
  });

  await goTo(page, 'What-if');
  await addRun(page, 'expandable_segments:True');
  const rows = await runs(page, 2);
  const { runs: said } = whatif(file, '--conf', 'expandable_segments:True');
  await goTo(page, 'Timeline');
  await until('the line of the run is drawn', look, (after) => after.every((picture, i) => !picture.equals(before[i])));
  await page.screenshot('whatif-over-timeline');

  await goTo(page, 'What-if');
  await at(page, 'whatif-open').last().click();
  await until('the run is open', () => page.tab.title(), (title) => title.includes('with expandable_segments:True'));
  // Nothing failed in it, and it repeats itself.
  assert.equal(await at(page, 'verdict').count(), 0);
  for (const view of ['Heatmap', 'Segments', 'Flame', 'Timeline']) await goTo(page, view);
  await page.screenshot('whatif-opened');
  await goTo(page, 'What-if');
  await says(page, 'whatif-check', /^Replay check passed/);
  const [own] = await (await runs(page, 1)).all();
  assert.equal(await reserved(own), said[1].peak_reserved);
  assert.equal(await rows.count(), 1);
});

test('the verdict says what was checked on this trace', async (t) => {
  const file = record(t, 'variable-length');
  const page = await openPage(t);
  await page.load(file);
  await says(page, 'verdict-fix', /^Serves this request, checked: PYTORCH_CUDA_ALLOC_CONF=\S+Copy$/);
  // It exits with 1, since there is something to say.
  const { stdout } = spawnSync(programPath(), ['doctor', file, '--json'], { encoding: 'utf8' });
  const { files: [{ devices }] } = JSON.parse(stdout);
  const [best] = devices[0].verdict.remedies;
  assert.ok(best.checked);
  assert.ok((await text(page, 'verdict-fix')).includes(best.copy), best.copy);
  await page.screenshot('whatif-checked');
  await at(page, 'verdict-fold').click();
  await says(page, 'verdict', /Checked on this trace: .*The request fits: 0 retries, .* reserved at the peak/);
  assert.ok((await text(page, 'verdict')).includes(best.text), best.text);
  // The findings tab has the same advice.
  await at(page, 'verdict-findings').click();
  assert.ok((await text(page, 'verdict-section')).includes(best.text));
});

test('the chart has the axis of the timeline, and a click moves the cursor', async (t) => {
  const page = await openPage(t);
  const before = await openSample(page);
  await goTo(page, 'What-if');
  await runs(page, 1);
  await page.tab.evaluate(() => document.activeElement?.blur());
  const box = await at(page, 'whatif-chart').boundingBox();
  await page.tab.mouse.click(box.x + 80, box.y + box.height / 2);
  const { position } = await until('the cursor is at the start', () => status(page), (now) => now.position < before.events / 10);
  assert.notEqual(position, before.position);
  await press(page, 'w', 'w');
  await until('the window is zoomed', async () => (await address(page)).get('w'), Boolean);
  await page.screenshot('whatif-zoomed');
});

test('would it fit? cards by name, and what no settings change', async (t) => {
  const page = await openPage(t);
  const file = record(t, 'transformer', '--steps', '6');
  await page.load(file);
  await goTo(page, 'What-if');
  await runs(page, 1);
  await until('the least memory is known', () => at(page, 'whatif-smallest').count(), (count) => count === 1);
  const [least] = await bytesIn(at(page, 'whatif-smallest'));
  const card = await text(page, 'whatif-least');
  await at(page, 'whatif-fit').locator('summary').click();
  const rows = at(page, 'whatif-fit').locator('tbody tr');
  assert.ok((await rows.count()) > 8);
  const names = [];
  for (const row of (await rows.all()).slice(1)) {
    const [usable] = await bytesIn(row);
    assert.match(await row.textContent(), least <= usable ? /fits$/ : /too small$/);
    if (least <= usable) names.push(await row.locator('th').textContent());
  }
  assert.match(card, new RegExp(`^As recorded, the run needs [\\d.]+ \\S+: ${names[0]} or larger\\.`));
  await at(page, 'whatif-fit').scrollIntoViewIfNeeded();
  await page.screenshot('whatif-fit');
  // On a card that it needs, it runs; on one granule less, it does not.
  for (const [bytes, want] of [[least, /^(?!at)/], [least - 2 ** 21, /^at event/]]) {
    await at(page, 'whatif-memory').fill(`${bytes}`);
    await at(page, 'whatif-memory').blur();
    await at(page, 'whatif-add').click();
    const all = await runs(page, (await at(page, 'whatif-runs').locator('tbody tr').count()));
    const cells = all.last().locator('td');
    assert.match((await cells.nth(0).textContent()).trim(), want, `${bytes} bytes`);
  }
  // The place is shown on the timeline.
  await at(page, 'whatif-place').last().click();
  assert.equal(await page.tab.getByRole('tab', { selected: true }).textContent(), 'Timeline');
});

test('a search is for what was chosen, also where memory ran out', async (t) => {
  const page = await openPage(t);
  const file = record(t, 'variable-length', '--steps', '200', '--capacity', '13GiB');
  await page.load(file);
  await goTo(page, 'What-if');
  await runs(page, 1);
  await at(page, 'tune-goal').selectOption('fewest driver calls');
  await at(page, 'tune-start').click();
  await at(page, 'tune-verdict').waitFor({ timeout: 120_000 });
  assert.equal(await at(page, 'tune-goal').evaluate((select) => select.selectedOptions[0].textContent), 'fewest driver calls');
  // The device is what the form and the choice say.
  await at(page, 'tune-card').selectOption('T4-16GB');
  await at(page, 'whatif-fraction').fill('0.5');
  await at(page, 'tune-start').click();
  await says(page, 'tune-verdict', /^No setting helps: .* and the process can have 7\.\d+ GiB/);
});

test('a search is cancelled, and keeps what it has found', async (t) => {
  const page = await openPage(t);
  await page.load(record(t, 'transformer', '--steps', '40'));
  await goTo(page, 'What-if');
  await runs(page, 1);
  await at(page, 'tune-goal').selectOption({ index: 1 });
  await at(page, 'tune-start').click();
  await until('some settings were tried', () => text(page, 'tune-progress'), (said) => number(/^[\d,]+/.exec(said)?.[0] ?? '0') > 3);
  await page.screenshot('whatif-tuning');
  await at(page, 'tune-cancel').click();
  await says(page, 'tune-verdict', /cancelled/);
  assert.equal(await at(page, 'tune-verdict').getAttribute('data-complete'), 'false');
  assert.ok((await at(page, 'tune-group').count()) > 0);
  // The worker answers at once: it is not searching any more.
  await addRun(page, 'max_split_size_mb:64');
  await runs(page, 2);
});

test('settings that PyTorch refuses get one clear line, and nothing is lost', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await goTo(page, 'What-if');
  await runs(page, 1);
  for (const [conf, why] of [
    ['max_split_size_mb:1', /max_split_size_mb/],
    ['nonsense', /PyTorch refuses/],
    ['garbage_collection_threshold:7', /garbage_collect/],
    [`${'[,:'.repeat(20_000)}`, /PyTorch refuses/],
    ['<img src=x onerror=alert(1)>:\u0000\u202e', /PyTorch refuses/],
  ]) {
    await addRun(page, conf);
    await says(page, 'whatif-refused', why);
    const refused = await text(page, 'whatif-refused');
    assert.ok(!refused.includes('\n') && refused.length < 400, refused.slice(0, 500));
    await runs(page, 1);
  }
  await page.screenshot('whatif-refused');
  assert.equal(await page.tab.locator('img').count(), 0);
  await at(page, 'whatif-conf').fill('');
  await at(page, 'whatif-memory').fill('a lot');
  await at(page, 'whatif-memory').blur();
  await at(page, 'whatif-add').click();
  await says(page, 'whatif-refused', /is not a size/);
  await at(page, 'whatif-memory').fill('');
  await addRun(page, 'export PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True"');
  await runs(page, 2);
});

test('it is all there on a narrow page, in the dark, and by keyboard', async (t) => {
  const page = await openPage(t, { width: 390, height: 844, theme: 'dark' });
  await openSample(page);
  await press(page, '7');
  await runs(page, 1);
  await page.screenshot('whatif-narrow-dark');
  await at(page, 'whatif-conf').focus();
  await page.tab.keyboard.type('max_split_size_mb:64');
  await press(page, 'Enter');
  await runs(page, 2);
  const wide = await page.tab.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  assert.equal(wide, false);
  for (const name of ['whatif-chart', 'whatif-runs', 'whatif-fit', 'whatif-tune']) assert.equal(await at(page, name).count(), 1, name);
  await at(page, 'whatif-tune').scrollIntoViewIfNeeded();
  await page.screenshot('whatif-narrow-dark-below');
});

test('a job that runs is answered for what it has requested so far', async (t) => {
  const server = await startServer(t);
  const page = await openPage(t);
  startJob(t, server.url, 'transformer', '--rate', '4000', '--steps', '4000');
  await at(page, 'session-open').first().click();
  await page.reach('ready');
  await goTo(page, 'What-if');
  await runs(page, 1);
  await at(page, 'whatif-again').waitFor();
  const events = async () => number(/first ([\d,]+) events/.exec(await text(page, 'whatif-check'))[1]);
  const before = await events();
  await at(page, 'whatif-again').click();
  await until('more events', async () => (/first/.test(await text(page, 'whatif-check')) ? events() : 0), (now) => now > before);
  await runs(page, 1);
  await page.screenshot('whatif-live');
});

test('what leaks is said first, and settings only delay it; a run that failed fits as far as it was recorded', async (t) => {
  const page = await openPage(t);
  await page.load(record(t, 'leak'));
  await at(page, 'verdict').waitFor();
  assert.equal(await text(page, 'verdict-whatif'), 'Settings that delay it');
  await at(page, 'verdict-whatif').click();
  await says(page, 'whatif-leak', /^This run leaks; settings only delay it\. Look at \S+:\d+/);
  assert.ok(await at(page, 'whatif').evaluate((view) => view.firstElementChild.dataset.testid === 'whatif-leak'), 'nothing stands before it');
  // The answer, what is recommended, and then the form.
  await at(page, 'tune-verdict').waitFor({ timeout: 120_000 });
  const tops = await Promise.all(['whatif-fit', 'whatif-tune', 'whatif-runs', 'whatif-conf'].map(async (name) => (await at(page, name).boundingBox()).y));
  assert.deepEqual(tops, [...tops].sort((a, b) => a - b));
  await page.screenshot('whatif-leak');

  await page.load(record(t, 'transformer', '--steps', '3'));
  await at(page, 'verdict-unfailed').waitFor();
  assert.doesNotMatch(await page.tab.locator('main').innerText(), /would have saved/, 'nothing failed');
});

test('a request that is served for once makes a run fit as far as recorded', async (t) => {
  const page = await openPage(t);
  await page.load(record(t, 'variable-length'));
  await goTo(page, 'What-if');
  await runs(page, 1);
  await addRun(page, 'expandable_segments:True');
  await runs(page, 2);
  await says(page, 'whatif-least', /Run 1 needs [\d.]+ \S+ as far as recorded: \S+ or larger\./);
});
