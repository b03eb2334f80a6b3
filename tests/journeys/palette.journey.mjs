// A person finds everything by name: views, commands, open files, jobs of the server, lines of the program.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { startJob, startServer } from './program.mjs';
import { address, addressSays, at, openSample, press, until } from './workbench.mjs';

/** Returns the palette's groups with the texts of their rows, read at one moment. */
function groups(page) {
  return page.tab.evaluate(() => Object.fromEntries(
    [...document.querySelectorAll('[data-testid="palette-group"]')].map((group) => [
      group.getAttribute('aria-label'),
      [...group.querySelectorAll('.palette-title')].map((row) => row.textContent),
    ]),
  ));
}

/** Opens the palette and types. Waits until its first row fits. */
async function find(page, typed, first) {
  await press(page, 'Control+k');
  await at(page, 'palette-input').fill(typed);
  return until(`${first} comes first`, () => groups(page), (found) => first.test(Object.values(found)[0]?.[0] ?? ''));
}

test('the palette finds views, lines, files and jobs', async (t) => {
  const server = await startServer(t);
  startJob(t, server.url, 'transformer', '--rate', '50', '--steps', '4000', '--name', 'night-run');
  const page = await openPage(t);
  await at(page, 'session-open').first().waitFor();
  await openSample(page);

  await press(page, 'Control+k');
  const idle = await until('the job is listed', () => groups(page), (found) => found.Jobs?.length > 0);
  assert.ok(idle.Views.length >= 7 && idle.Commands.length > 20 && !('Lines' in idle), JSON.stringify(idle));
  await page.screenshot('palette');
  await press(page, 'Escape');

  await find(page, '1,234', /Go to event 1,234/);
  await press(page, 'Enter');
  await addressSays(page, 'cur', '1234');

  await find(page, 'heatm', /heatmap/);
  await press(page, 'Enter');
  await addressSays(page, 'tab', 'heatmap');

  const lines = await find(page, 'modelpy113', /model\.py:113/);
  assert.ok(lines.Lines.length <= 8, 'bounded');
  await page.screenshot('palette-lines');
  await press(page, 'Enter');
  await until('the line is selected', () => address(page), (now) => now.get('sel')?.startsWith('l'));
  await at(page, 'detail-line').waitFor();

  // The text for screen readers before the file's name is not part of it.
  const name = (await at(page, 'file-menu').innerText()).split('\n').at(-1);
  const job = idle.Jobs[0];
  await find(page, job, new RegExp(job.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')));
  await press(page, 'Enter');
  await until('the job is watched', () => address(page), (now) => now.get('session') !== null);
  await page.reach('ready');

  await find(page, name.slice(0, 8), new RegExp(name.slice(0, 8)));
  await press(page, 'Enter');
  await until('back to the file', () => at(page, 'file-menu').innerText(), (now) => now.endsWith(name));
});
