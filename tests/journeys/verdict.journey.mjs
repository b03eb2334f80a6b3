// A person opens the trace of a job that died, and reads why.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { emptyFolder, programPath, startJob, startServer } from './program.mjs';
import { address, addressSays, answered, at, goTo, movesFrom, number, openSample, standsAt, status, text, until } from './workbench.mjs';

/** Records a workload, and returns its file. */
function record(t, name, ...args) {
  const file = join(emptyFolder(t), `${name}.vramscope`);
  execFileSync(programPath(), ['run', name, ...args, '--out', file], { stdio: ['ignore', 'ignore', 'inherit'] });
  return file;
}

/** Returns the position that the card is about. */
const event = async (page) => number(/event ([\d,]+)/.exec(await text(page, 'verdict'))[1]);

test('a leak is called a leak, and a click leads to its line', async (t) => {
  const page = await openPage(t);
  await page.load(record(t, 'leak'));
  await at(page, 'verdict').waitFor();
  assert.equal(await at(page, 'verdict').getAttribute('data-cause'), 'leak');
  assert.match(await at(page, 'verdict-headline').getAttribute('title'), /^Leak: [\d.]+ \S+ kept over \d+ steps, then [\d.]+ \S+ did not fit$/);
  assert.ok((await at(page, 'verdict').boundingBox()).height < 80, 'the headline, and the line with what to try');
  assert.equal(await at(page, 'verdict-sentence').count(), 0);
  await at(page, 'verdict-fold').click();
  const sentence = await text(page, 'verdict-sentence');
  assert.match(sentence, /^A leak: /);
  assert.doesNotMatch(sentence, /fragmented/i);
  await page.screenshot('verdict-leak');

  const line = await text(page, 'verdict-line');
  const [, name, place] = /^(.*?) +(\S+)$/.exec(line);
  assert.ok(sentence.includes(`${place} (${name})`), `${line}: ${sentence}`);
  await at(page, 'verdict-line').click();
  const detail = await until('the line is selected', () => text(page, 'detail-line'));
  assert.ok(detail.replace(/\s+/g, ' ').includes(line.replace(/\s+/g, ' ')), `${line}: ${detail}`);

  // The tab tells it once, with what was looked for.
  await at(page, 'verdict-findings').click();
  assert.equal(await at(page, 'verdict-section').getAttribute('data-cause'), 'leak');
  assert.equal(await at(page, 'verdict').count(), 0, 'the card is not repeated');
  assert.match(await text(page, 'looked-for'), /leaks/);
  assert.equal(await at(page, 'findings').locator('[data-code=leak]').count(), 0, 'the leak is not repeated');
});

test('a trace that ran out of memory opens at the window before its failure, a leak and any other whole', async (t) => {
  const page = await openPage(t);
  await page.load(record(t, 'variable-length', '--steps', '200', '--capacity', '13GiB'));
  await at(page, 'verdict').waitFor();
  const position = await event(page);
  await standsAt(page, position);
  const window = await until('a window', async () => (await address(page)).get('w'));
  const [from, to] = window.split(',').map(Number);
  assert.ok(from < position && position <= to && to - from <= 250, `${window} before ${position}`);
  await page.screenshot('verdict-opened');
  await at(page, 'timeline-fit').click();
  await addressSays(page, 'w', null);
  await at(page, 'verdict-show').click();
  await addressSays(page, 'w', window);

  const other = await openPage(t);
  await openSample(other);
  assert.equal(await at(other, 'verdict').getAttribute('data-cause'), 'leak');
  await standsAt(other, await event(other));
  await page.load(record(t, 'transformer', '--steps', '3'));
  await addressSays(page, 'w', null);
  await page.screenshot('verdict-whole');
});

test('a click on the timeline leaves the picture where it is: the failed request stays, and so does the height', async (t) => {
  const page = await openPage(t);
  await page.loadSample();
  await at(page, 'verdict').waitFor();
  const opened = await standsAt(page, await event(page));
  const box = await at(page, 'timeline-canvas').boundingBox();
  // The labels of the height, beside the plot.
  const labels = () => page.tab.screenshot({ clip: { x: box.x, y: box.y + 60, width: 60, height: box.height - 90 } });
  let before = await labels();
  await until('the height rests', async () => {
    const last = before;
    before = await labels();
    return last.equals(before);
  });
  await page.tab.mouse.click(box.x + 0.4 * box.width, box.y + 0.9 * box.height);
  await movesFrom(page, opened.position);
  await page.screenshot('verdict-clicked');
  assert.ok(before.equals(await labels()), 'the height moved');
  assert.match(await text(page, 'text-twin'), /A request of \S+ \S+ failed at event/);
});

test('the failed request is shown where it did not fit, and the card can be closed', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await at(page, 'verdict').waitFor();
  const position = await event(page);
  // Over another view it is the same, so that nothing moves.
  const { height } = await at(page, 'verdict').boundingBox();
  await goTo(page, 'Flame');
  assert.ok(await at(page, 'verdict-brief').isVisible());
  assert.equal((await at(page, 'verdict').boundingBox()).height, height);
  await at(page, 'verdict-fold').click();
  await at(page, 'verdict-sentence').waitFor();
  await at(page, 'verdict-fold').click();
  await at(page, 'verdict-sentence').waitFor({ state: 'hidden' });
  await at(page, 'verdict-show').click();
  await standsAt(page, position);
  const window = await status(page);
  assert.equal(window.position, position);
  assert.equal(await page.tab.getByRole('tab', { selected: true }).textContent(), 'Timeline');
  await page.screenshot('verdict-show');

  await at(page, 'verdict-close').click();
  await until('the card is closed', () => at(page, 'verdict').count(), (count) => count === 0);
  await goTo(page, 'Findings');
  await at(page, 'verdict-section').waitFor();
});

test('of several failures each is explained: the card follows the cursor, and the buttons go from one to the next', async (t) => {
  const page = await openPage(t);
  await page.load(record(t, 'recovery', 'batch=256'));
  await at(page, 'verdict').waitFor();
  const opened = await event(page);
  const told = async () => [await event(page), await at(page, 'verdict-headline').getAttribute('title')];
  const stands = async (number) => {
    await until(`failure ${number}`, () => text(page, 'verdict'), (said) => said.includes(`${number} of 5`));
    // Its size is there at once, the cause a moment later.
    await until('it is explained', () => at(page, 'verdict-headline').getAttribute('title'), (headline) => /^[A-Z][a-z ]+: .* asked/.test(headline));
  };
  await stands(1);
  assert.ok(await at(page, 'verdict-previous').isDisabled(), 'it is the first');
  const seen = [await told()];
  for (let number = 2; number <= 5; number += 1) {
    await at(page, 'verdict-next').click();
    await stands(number);
    const [position, headline] = await told();
    await standsAt(page, position);
    assert.ok(position > seen.at(-1)[0], `failure ${number} is later`);
    seen.push([position, headline]);
  }
  assert.ok(await at(page, 'verdict-next').isDisabled(), 'it is the last');
  assert.ok(new Set(seen.map(([, headline]) => headline)).size >= 4, `each has numbers of its own: ${seen}`);
  await page.screenshot('verdict-several');
  await at(page, 'verdict-previous').click();
  await stands(4);
  assert.deepEqual(await told(), seen[3]);
  assert.equal(seen[0][0], opened);
});

test('a trace without a failure has a verdict in one line, which unfolds', async (t) => {
  const page = await openPage(t);
  await page.load(record(t, 'transformer', '--steps', '3'));
  await at(page, 'verdict-unfailed').waitFor();
  assert.match(await text(page, 'verdict-headline'), /^No request failed: [\d.]+ \S+ allocated at the peak, [\d.]+ \S+ reserved$/);
  assert.match(await text(page, 'verdict-line'), /\.py:\d+/);
  assert.ok((await at(page, 'verdict-unfailed').boundingBox()).height < 40);
  await page.screenshot('verdict-unfailed');
  await at(page, 'verdict-fold').click();
  assert.match(await text(page, 'verdict-sentence'), /^No request failed; at the peak, .*\.$/);
  await at(page, 'verdict-findings').click();
  await at(page, 'verdict-section').waitFor();
  assert.equal(await at(page, 'verdict-section').getAttribute('data-cause'), 'none');
  assert.equal(await at(page, 'verdict').count(), 0);
  assert.equal(await at(page, 'verdict-unfailed').count(), 0, 'the tab has it');
});

test('nothing moves when the verdict comes, whatever it is, nor does the scale', async (t) => {
  const [whole, growing] = [record(t, 'transformer', '--steps', '3'), record(t, 'leak', '--steps', '60', '--capacity', '80GiB')];
  for (const [width, height] of [[1440, 900], [1024, 700], [390, 844]]) {
    const page = await openPage(t, { width, height });
    await page.tab.addInitScript(() => {
      window.places = new Set();
      window.labels = {};
      const look = () => {
        for (const name of ['.panes', '[data-testid="timeline-canvas"]']) {
          const place = document.querySelector(name)?.getBoundingClientRect();
          if (place?.height > 0) window.places.add(`${name} from ${place.top} to ${place.bottom}`);
        }
        requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
      const { fillText } = CanvasRenderingContext2D.prototype;
      CanvasRenderingContext2D.prototype.fillText = function draw(text, x, y) {
        // The labels of the height, which stand to the left of the plot.
        const isLabel = this.canvas.closest('[data-testid="timeline-canvas"]') && /[KMG]iB$/.test(text) && x < 68;
        if (isLabel) (window.labels[text] ??= new Set()).add(Math.round(y));
        return fillText.call(this, text, x, y);
      };
    });
    for (const [cause, open] of [['leak', (page) => page.loadSample()], ['growth', (page) => page.load(growing)], ['none', (page) => page.load(whole)]]) {
      await page.open();
      await open(page);
      await at(page, { leak: 'verdict', growth: 'verdict-growth', none: 'verdict-unfailed' }[cause]).waitFor();
      await answered(page);
      const places = await page.tab.evaluate(() => [...window.places]);
      assert.equal(places.length, 2, `${cause}, ${width} by ${height}: ${places.join(', ')}`);
      const labels = await page.tab.evaluate(() => Object.entries(window.labels).map(([text, heights]) => [text, ...heights]));
      assert.ok(labels.length > 1 && labels.every((label) => label.length === 2), `${cause}, ${width} by ${height}: ${JSON.stringify(labels)}`);
    }
  }
});

test('a job that runs out of memory while it is watched has its verdict at once', async (t) => {
  const server = await startServer(t);
  const page = await openPage(t);
  startJob(t, server.url, 'leak', '--rate', '30000');
  await at(page, 'session-open').first().click();
  await page.reach('ready');
  await page.tab.evaluate(() => {
    window.tops = [];
    const look = () => {
      const top = document.querySelector('.panes').getBoundingClientRect().top;
      if (window.tops.at(-1) !== top) window.tops.push(top);
      requestAnimationFrame(look);
    };
    look();
  });
  await at(page, 'verdict').waitFor({ timeout: 60_000 });
  await answered(page);
  const tops = await page.tab.evaluate(() => window.tops);
  assert.ok(tops.length <= 2, `the views move once, for the news, and not again for its card: ${tops}`);
  assert.equal(await at(page, 'verdict').getAttribute('data-cause'), 'leak');
  await standsAt(page, await event(page));
  await page.screenshot('verdict-live');
});
