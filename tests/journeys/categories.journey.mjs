// The dialog of category rules shows which rule classified how many bytes, and takes a rule of the user's own; the flame graph
// can be coloured by category.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { addressSays, at, goTo, press, says, text, until } from './workbench.mjs';
import { trainingJob } from './training.mjs';

/** Returns the rules that decided something: name, category and bytes. */
const decided = (page) =>
  at(page, 'category-row').evaluateAll((rows) =>
    rows
      .map((row) => [(row.querySelector('code') ?? row.querySelector('th').firstChild).textContent, row.cells[1].textContent, Number(row.querySelector('.bytes')?.dataset.bytes ?? 0)])
      .filter(([, , bytes]) => bytes > 0),
  );

/** Opens the dialog from the palette. */
async function openRules(page) {
  await press(page, 'Control+k');
  await at(page, 'palette-input').waitFor();
  await page.tab.keyboard.type('category rules');
  await press(page, 'Enter');
  await at(page, 'category-table').waitFor();
}

/** The boxes of the flame graph's first level, in the table. */
const firstLevel = (page) => page.tab.locator('[role="treeitem"][aria-level="2"] b').allInnerTexts();

test('a rule of one’s own decides, is remembered, and can be removed', async (t) => {
  const page = await openPage(t);
  await page.load(trainingJob());
  await openRules(page);
  const before = await decided(page);
  const sum = (rows) => rows.reduce((all, [, , bytes]) => all + bytes, 0);
  assert.ok(before.some(([name, category]) => name === 'module, kept' && category === 'parameters'), JSON.stringify(before));
  await says(page, 'category-unknown', /unknown/);

  await at(page, 'category-part').fill('  ');
  await at(page, 'category-add').click();
  await until('it says why', () => page.alerts(), (said) => /^Name a part of a function/.test(said));
  await at(page, 'category-part').fill('model.py:7');
  await at(page, 'category-name').selectOption('KV cache');
  await at(page, 'category-add').click();
  const own = await until('the rule is first', () => decided(page), (rows) => rows[0]?.[0] === 'model.py:7');
  assert.equal(own[0][1], 'KV cache');
  assert.equal(sum(own), sum(before), 'every byte is decided once');
  await page.screenshot('category-rules');
  await press(page, 'Escape');

  // The flame graph says the same, also after a reload.
  await page.tab.reload();
  await page.load(trainingJob());
  await goTo(page, 'Flame');
  await at(page, 'flame-by-category').click();
  await at(page, 'flame-as-table').click();
  await until('the category leads', () => firstLevel(page), (names) => names.includes('KV cache'));
  await addressSays(page, 'group', 'category');
  await page.screenshot('flame-by-category');

  await at(page, 'category-rules').click();
  await at(page, 'category-remove').click();
  await until('the rule is gone', () => decided(page), (rows) => JSON.stringify(rows) === JSON.stringify(before));
  await press(page, 'Escape');
  await until('its category too', () => firstLevel(page), (names) => !names.includes('KV cache'));
});

test('the colours of categories lead to their rules', async (t) => {
  const page = await openPage(t, { width: 1024, height: 700, theme: 'dark' });
  await page.load(trainingJob());
  await at(page, 'timeline-color').selectOption('category');
  await at(page, 'category-rules').click();
  await says(page, 'category-unknown', /at the peak/);
});
