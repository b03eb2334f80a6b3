// Somebody who clicks, drags, types and resizes at random: nothing breaks, and the file is never lost.
//
// VRAMSCOPE_SOAK  anything: all five files, and not only the sample and a job
// MONKEY       gestures on each file; 400 if not given
// MONKEY_SEED  the seed of the random numbers; a failure prints it with the last gestures
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openPage } from './page.mjs';
import { startJob, startServer } from './program.mjs';
import { at, status, until } from './workbench.mjs';

const soaks = process.env.VRAMSCOPE_SOAK !== undefined;
const GESTURES = Number(process.env.MONKEY ?? 400);
const SEED = Number(process.env.MONKEY_SEED ?? 20261123);

/** The page must still show the file each time after this many gestures. */
const ROUND = 25;

const KEYS = (
  'a d w s A D W S f f m M c p o x g i b v h n u l t k q z r . , [ ] < > + - / ? 1 2 3 4 5 6 7 8 ' +
  'ArrowLeft ArrowRight ArrowUp ArrowDown Home End PageUp PageDown Enter Escape Escape Escape Space Tab Tab Shift+Tab Backspace ' +
  'Control+z Control+Shift+z Control+k Shift+ArrowLeft Shift+ArrowRight Shift+f Shift+F10'
).split(' ');
const WORDS = ['train', 'size>1MB', 'stream:0', 'zzz', '(', '"', 'site:model', '-size<1kb', '100mb', '\u{1f525}'];
const SIZES = [[1440, 900], [1024, 700], [390, 844], [720, 450], [1920, 1080], [320, 480]];

/** What a random click must avoid: it would close the file on purpose, or leave the page. */
const SPARED = '[data-testid^="file-close"], [data-testid^="file-menu"], [data-testid="leave"], a[href], a[download], [role=menuitem], input[type=file], header, form';

/** Returns a generator of numbers from 0 to 1 (mulberry32): the same for the same seed. */
function numbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Makes one gesture. Returns it in words. */
async function gesture(tab, chance) {
  const pick = (all) => all[Math.floor(chance() * all.length)];
  const { width, height } = tab.viewportSize();
  const place = () => [Math.floor(chance() * width), Math.floor(chance() * height)];
  const spared = ([x, y]) => tab.evaluate(([x, y, spared]) => document.elementFromPoint(x, y)?.closest(spared) != null, [x, y, SPARED]);
  const { mouse, keyboard } = tab;
  const kind = chance();
  if (kind < 0.3) {
    const key = pick(KEYS);
    await keyboard.press(key);
    return `key ${key}`;
  }
  if (kind < 0.5) {
    const [from, by] = [place(), [Math.floor((chance() - 0.5) * 800), Math.floor((chance() - 0.5) * 800)]];
    const held = pick([undefined, undefined, 'Control', 'Shift', 'Alt']);
    await mouse.move(...from);
    if (held) await keyboard.down(held);
    await mouse.wheel(...by);
    if (held) await keyboard.up(held);
    return `wheel ${by} at ${from} ${held ?? ''}`;
  }
  if (kind < 0.9) {
    const [from, to] = [place(), place()];
    if (await spared(from)) return 'nothing';
    const button = pick(['left', 'left', 'left', 'middle', 'right']);
    const held = pick([undefined, undefined, undefined, 'Shift', 'Alt']);
    const how = pick(['click', 'click', 'double-click', 'drag', 'drag']);
    if (held) await keyboard.down(held);
    if (how === 'drag') {
      await mouse.move(...from);
      await mouse.down({ button });
      await mouse.move(...to, { steps: 4 });
      // Some drags are cancelled.
      if (chance() < 0.1) await keyboard.press('Escape');
      await mouse.up({ button });
    } else {
      await mouse.click(...from, { button, clickCount: how === 'click' ? 1 : 2 });
    }
    if (held) await keyboard.up(held);
    return `${how} ${button} ${from} ${how === 'drag' ? to : ''} ${held ?? ''}`;
  }
  if (kind < 0.95) {
    const word = pick(WORDS);
    await keyboard.press('Escape');
    await keyboard.press('/');
    await keyboard.type(word);
    return `type ${word}`;
  }
  const [w, h] = pick(SIZES);
  await tab.setViewportSize({ width: w, height: h });
  return `resize ${w}x${h}`;
}

/** Returns what proves that the file is open: the page's state, the file's name in the title, and the page's path. */
async function shown(page) {
  const state = await page.state();
  const name = (await page.tab.title()).split(' · ')[0];
  return { state, name, path: new URL(page.tab.url()).pathname };
}

/** Lets the monkey loose on what is open. */
async function play(page) {
  const before = await until('the file is there', () => shown(page), ({ state }) => state === 'ready');
  const chance = numbers(SEED);
  const last = [];
  for (let i = 1; i <= GESTURES; i += 1) {
    last.push(await gesture(page.tab, chance));
    if (last.length > 20) last.shift();
    const told = () => `seed ${SEED}, gesture ${i}; the last ones:\n  ${last.join('\n  ')}`;
    assert.deepEqual(page.complaints, [], told());
    if (i % ROUND === 0) {
      const isThere = (now) => now.state === 'ready' && now.name === before.name && now.path === before.path;
      await until('the file is still there', () => shown(page), isThere).catch((failure) => assert.fail(`${failure.message}; ${told()}`));
    }
  }
  // It still answers: all overlays close, and a key moves the cursor.
  await page.tab.setViewportSize({ width: 1440, height: 900 });
  for (let i = 0; i < 12; i += 1) await page.tab.keyboard.press('Escape');
  await page.tab.evaluate(() => document.activeElement?.blur());
  await page.tab.keyboard.press('1');
  await page.tab.keyboard.press('Home');
  await until('the cursor is at the start', () => status(page), ({ position }) => position === 0);
  await page.screenshot(`monkey-${before.name}`);
}

const fixture = (name) => fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url));

for (const name of soaks ? ['two_devices.pickle', 'recording_markup.vramscope'] : []) {
  test(`a monkey does not break ${name}`, async (t) => {
    const page = await openPage(t);
    await page.load(fixture(name));
    await play(page);
  });
}

test('a monkey does not break the sample', async (t) => {
  const page = await openPage(t, { theme: 'dark' });
  await page.loadSample();
  await play(page);
});

test('a monkey does not break a file that is cut off', { skip: !soaks && 'only where VRAMSCOPE_SOAK is set' }, async (t) => {
  const page = await openPage(t);
  const whole = readFileSync(fixture('torch_2_15.pickle'));
  await page.load({ name: 'cut.pickle', mimeType: 'application/octet-stream', buffer: whole.subarray(0, Math.floor(whole.length * 0.7)) });
  await play(page);
});

test('a monkey does not break a job that is watched', async (t) => {
  const server = await startServer(t);
  const page = await openPage(t);
  startJob(t, server.url, 'transformer', '--rate', '3000', '--steps', '100000').ended.catch(() => {});
  await at(page, 'session').first().waitFor();
  await at(page, 'session-open').first().click();
  await page.reach('ready');
  await play(page);
});
