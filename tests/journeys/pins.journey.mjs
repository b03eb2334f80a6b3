// A person pins moments, measures between them, and sends them to somebody else.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { address, addressSays, at, bytesIn, movesFrom, openSample, press, savedSample, says, standsAt, status, until } from './workbench.mjs';

/** The pins in the address bar. */
const linked = async (page) => (await address(page)).getAll('pin');
const pins = (page) => at(page, 'pin').evaluateAll((all) => all.map((pin) => Number(pin.dataset.position)));
const count = (page, wanted) => until(`${wanted} pins`, () => pins(page), (all) => all.length === wanted);

/** Pins the cursor. */
async function pinHere(page, wanted) {
  await press(page, 'Shift+M');
  return count(page, wanted);
}

test('moments are pinned, named, stepped, and measured exactly', async (t) => {
  const page = await openPage(t);
  const oom = await openSample(page);
  await pinHere(page, 1);
  assert.match(await at(page, 'pin-name').inputValue(), /^oom /);
  await press(page, 'p');
  const peak = await movesFrom(page, oom.position);
  await pinHere(page, 2);
  const order = [peak.position, oom.position].sort((a, b) => a - b);
  assert.deepEqual(await pins(page), order, 'in the order of the trace');
  const names = await at(page, 'pin-name').evaluateAll((all) => all.map((field) => field.value));
  assert.ok(names.some((name) => name.startsWith('peak, ')), `${names}`);
  await page.screenshot('pins');

  // The difference between the two is exact to the byte.
  const facts = (name) => at(page, 'pin-measured').locator('.fact', { has: page.tab.locator(`dt:text-is("${name}")`) });
  await at(page, 'pin-measured').waitFor();
  const later = peak.position > oom.position ? [oom, peak] : [peak, oom];
  for (const [name, key] of [['Allocated', 'allocated'], ['Active', 'active'], ['Reserved', 'reserved'], ['Requested', 'requested']]) {
    assert.deepEqual(await bytesIn(facts(name)), [later[1][key] - later[0][key]], name);
  }
  assert.match(await facts('Events').innerText(), new RegExp((order[1] - order[0]).toLocaleString('en-US')));

  // A name is changed in place, and is in the link.
  await at(page, 'pin-name').first().fill('before, & after #1');
  await press(page, 'Enter');
  const link = await until('the name in the link', () => linked(page), (all) => all[0]?.endsWith('before, & after #1'));
  assert.equal(link.length, 2);
  await at(page, 'pin-name').first().fill('thrown away');
  await press(page, 'Escape');
  assert.equal(await at(page, 'pin-name').first().inputValue(), 'before, & after #1');
  await page.tab.evaluate(() => document.activeElement.blur());

  // Keys step from pin to pin, and from the last to the first.
  await press(page, 'Home');
  await standsAt(page, 0);
  await press(page, '}');
  await standsAt(page, order[0]);
  await press(page, '}');
  await standsAt(page, order[1]);
  await press(page, '}');
  await standsAt(page, order[0]);
  await press(page, '{');
  await standsAt(page, order[1]);
  await at(page, 'pin-range').click();
  await addressSays(page, 'r', `${order[0]},${order[1]}`);
  await press(page, 'Escape');

  // The same key removes it.
  await press(page, 'Shift+M');
  await count(page, 1);
  await at(page, 'pin-remove').first().click();
  await count(page, 0);
  await addressSays(page, 'pin', null);
});

test('there are five at most, and one of an allocation selects it', async (t) => {
  const page = await openPage(t);
  await openSample(page);
  await press(page, 'Home');
  await standsAt(page, 0);
  for (let wanted = 1; wanted <= 4; wanted += 1) {
    await press(page, '.');
    await standsAt(page, wanted);
    await pinHere(page, wanted);
  }
  await at(page, 'legend-row').first().click();
  await press(page, ']');
  const sel = await until('an allocation', async () => (await address(page)).get('sel'), (now) => /^a\d+$/.test(now ?? ''));
  await at(page, 'detail-allocation').waitFor();
  const there = await status(page);
  await pinHere(page, 5);
  await until(`the link has ${sel}`, () => linked(page), (all) => all.some((pin) => pin.split(',')[1] === sel));
  await press(page, 'Escape', 'Escape', 'End');
  await movesFrom(page, there.position);
  await press(page, 'Shift+M');
  await says(page, 'notice', /You can have at most 5 pins/);
  await count(page, 5);
  await page.screenshot('pins-five');

  // A click on the flag of the allocation goes there.
  await at(page, 'pin-go').last().click();
  await addressSays(page, 'sel', sel);
  await standsAt(page, (await pins(page)).at(-1));
});

test('a link brings the pins, and a flag is clicked', async (t) => {
  const sender = await openPage(t);
  const { events } = await openSample(sender);
  await press(sender, 'Shift+f');
  await until('all of it is linked', () => address(sender), (now) => now.has('file') && !now.has('w') && !now.has('y'));
  const middle = Math.round(events / 2);
  const link = `${new URL(sender.tab.url()).hash}&pin=${middle},,half%20way&pin=10,,early&pin=x,,broken`;
  const page = await openPage(t, { theme: 'dark', address: link });
  await page.load(await savedSample(page));
  // The page names the part that is no valid pin, and shows the other pins.
  await says(page, 'notice', /a pin/);
  assert.deepEqual(await count(page, 2), [10, middle]);
  await page.screenshot('pins-dark');
  // The flag stands at the foot of its line.
  await until('a click on the flag goes there', async () => {
    // The verdict about the failure appears later, and takes room.
    const box = await at(page, 'timeline-canvas').boundingBox();
    const x = box.x + 68 + ((box.width - 68 - 12) * middle) / events;
    await page.tab.mouse.click(x + 6, box.y + box.height - 24 - 7);
    return (await status(page)).position;
  }, (position) => position === middle);
});
