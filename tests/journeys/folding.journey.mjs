// A person reads stacks by the lines of their own code, and says which code that is.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { at, goTo, press, says, text, until } from './workbench.mjs';

const VENV = '/home/me/venv/lib/python3.11/site-packages';
const frame = (name, filename, line) => ({ name, filename, line });

/** A stack with every kind of frame, innermost first. */
const ATTEND = [
  frame('scaled_dot_product_attention', `${VENV}/torch/nn/functional.py`, 5_000),
  frame('attend', `${VENV}/mylib/attention.py`, 12),
  frame('_call_impl', `${VENV}/torch/nn/modules/module.py`, 1_532),
  frame('_wrapped_call_impl', `${VENV}/torch/nn/modules/module.py`, 1_521),
  frame('forward', '/home/me/gpt/model.py', 40),
  frame('train', '/home/me/gpt/train.py', 7),
  frame('_run_code', '<frozen runpy>', 88),
];
const BASE = 0x7f0000000000;
const MIB = 1 << 20;

/** A snapshot of one block with this stack, and of one that was there before recording began. */
function snapshot() {
  const block = (index, size, frames) => ({ address: BASE + index * 4 * MIB, size, requested_size: size, state: 'active_allocated', frames });
  const blocks = [block(0, 4 * MIB, ATTEND), block(1, 2 * MIB, [])];
  blocks.push({ address: BASE + 6 * MIB, size: 14 * MIB, requested_size: 0, state: 'inactive', frames: [] });
  const segment = {
    device: 0, address: BASE, total_size: 20 * MIB, allocated_size: 6 * MIB, active_size: 6 * MIB, requested_size: 6 * MIB,
    stream: 0, segment_type: 'large', segment_pool_id: [0, 0], is_expandable: false, frames: [], blocks,
  };
  const event = { action: 'alloc', addr: BASE, size: 4 * MIB, stream: 0, time_us: 1_700_000_000_000_000, compile_context: 'N/A', user_metadata: '', frames: ATTEND };
  const json = JSON.stringify({ segments: [segment], device_traces: [[event, { ...event, action: 'snapshot', addr: 0, size: 6 * MIB }]], allocator_settings: {}, external_annotations: [] });
  return { name: 'attend.json', mimeType: 'application/json', buffer: Buffer.from(json) };
}

/** Returns the rows of the stack in the details pane: function names, and what stands in folded rows. */
const rows = (page) =>
  page.tab.locator('.stack .frames > li').evaluateAll((all) => all.map((row) => (row.querySelector('.frame-name, .fold-toggle') ?? row).innerText.replace(/^[▸▾]\s*/, '').trim()));

const rowsAre = (page, wanted) => until(`the stack is ${wanted}`, () => rows(page), (now) => JSON.stringify(now) === JSON.stringify(wanted));

/** Opens the snapshot, and selects its first block by its name. */
async function select(page, name = 'b7f0000000000_0') {
  await press(page, '/');
  await until('the box has the focus', () => page.tab.evaluate(() => document.activeElement.dataset.testid), (id) => id === 'search-input');
  await page.tab.keyboard.type(name);
  await says(page, 'search-result', /^1 ·/);
  await press(page, 'Enter');
  await at(page, 'detail-allocation').waitFor();
}

test('library frames fold around the lines of the program, and unfold where one asks', async (t) => {
  const page = await openPage(t);
  await page.load(snapshot());
  await select(page);
  const folded = ['4 frames of torch and mylib', 'forward', 'train', '1 frame of Python'];
  await rowsAre(page, folded);
  assert.match(await at(page, 'detail-allocation').innerText(), /by forward model\.py:40/);
  await page.screenshot('folding');

  const copied = async (label) => {
    await page.tab.locator('.stack').getByRole('button', { name: label }).click();
    return page.tab.evaluate(() => navigator.clipboard.readText());
  };
  await page.tab.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  assert.equal(await copied('Copy stack'), '… 4 frames of torch and mylib\n/home/me/gpt/model.py:40:forward\n/home/me/gpt/train.py:7:train\n… 1 frame of Python\n');
  assert.equal((await copied('Copy all frames')).split('\n').length, ATTEND.length + 1);

  await at(page, 'stack-fold').first().click();
  await until('four more frames', () => rows(page), (now) => now.length === folded.length + 4);
  assert.match(await copied('Copy stack'), /functional\.py:5000:scaled_dot_product_attention\n.*attention\.py:12:attend\n/);
  await at(page, 'stack-fold').first().click();
  await rowsAre(page, folded);
  // One setting unfolds every stack.
  await press(page, 'h');
  await until('all frames', () => rows(page), (now) => now.length === ATTEND.length);
  await press(page, 'h');
  await rowsAre(page, folded);
});

test('a package becomes the own code of the person who writes it, also after a reload', async (t) => {
  const page = await openPage(t);
  await page.load(snapshot());
  await select(page);
  await at(page, 'stack-fold').first().click();
  await page.tab.getByRole('button', { name: 'attend', exact: true }).click();
  await at(page, 'frame-mine').click();
  const own = ['1 frame of torch', 'attend', '2 frames of torch', 'forward', 'train', '1 frame of Python'];
  await rowsAre(page, own);
  assert.match(await at(page, 'detail-allocation').innerText(), /by attend attention\.py:12/);
  await page.screenshot('folding-mine');

  await page.tab.reload();
  await page.load(snapshot());
  await select(page);
  await rowsAre(page, own);

  // The dialog has the rule; what can't be a rule is refused with its line.
  await page.tab.getByRole('button', { name: 'attend', exact: true }).click();
  await at(page, 'frame-rules').click();
  const field = at(page, 'folding-text');
  assert.equal(await field.inputValue(), 'mine: site-packages/mylib\n');
  await field.fill('mine: site-packages/mylib\ntheirs: gpt');
  await at(page, 'folding-apply').click();
  await until('it says why', () => page.alerts(), (said) => /^Line 2: Begin it with/.test(said));
  assert.match(await field.inputValue(), /theirs: gpt$/, 'what was typed stays');
  await page.screenshot('folding-rules');
  await field.fill('library: model.py');
  await at(page, 'folding-apply').click();
  await rowsAre(page, ['5 frames of model, torch and 1 more', 'train', '1 frame of Python']);
});

test('the flame graph folds a run to one box, which opens when it is clicked', async (t) => {
  const page = await openPage(t);
  await page.load(snapshot());
  await goTo(page, 'Flame');
  await at(page, 'flame-as-table').click();
  const names = () => page.tab.getByRole('treeitem').locator('b').allInnerTexts();
  const whole = ['all live memory', 'train', 'forward', '4 frames of torch and mylib', 'no stack recorded'];
  await until('a folded run', names, (now) => JSON.stringify(now) === JSON.stringify(whole));
  await page.screenshot('folding-flame');
  await at(page, 'flame-fold').click();
  await until('every frame', names, (now) => now.length === ATTEND.length + 2);
});

test('a missing stack has a reason, and a way to get it', async (t) => {
  const page = await openPage(t);
  await page.load(snapshot());
  await select(page, 'b7f0000400000_0');
  const said = await until('the reason', () => text(page, 'missing-stack'));
  assert.match(said, /allocated before recording began.*_record_memory_history/);
  await page.screenshot('folding-missing');
});
