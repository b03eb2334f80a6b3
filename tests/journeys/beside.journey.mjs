// A person looks at the memory that the allocator doesn't manage: the process's, and that of others on the device.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { onFakeDevice, startJobIn, startServer } from './program.mjs';
import { at, bytesIn, until } from './workbench.mjs';

const GIB = 2 ** 30;

for (const theme of ['light', 'dark']) {
  test(`what lies beside the allocator has curves under the overview (${theme})`, async (t) => {
    const server = await startServer(t);
    const env = onFakeDevice({
      FAKECUDA_CAPACITY: String(32 * GIB),
      FAKECUDA_OTHER_BYTES: String(3 * GIB),
      FAKECUDA_CONTEXT_BYTES: String(GIB / 2),
    });
    const job = startJobIn(t, env, server.url, 'leak', '--driver', 'cuda', '--capacity', '24GiB', '--rate', '2000', '--steps', '3');
    await job.ended;
    const page = await openPage(t, { theme });
    await at(page, 'session-open').first().click();
    await page.reach('ready');

    const strip = at(page, 'outside');
    await strip.getByRole('button').click();
    const curves = strip.getByTestId('outside-curve');
    await until('the curves are there', () => curves.count(), (count) => count === 3);
    const names = await curves.locator('.outside-name').allInnerTexts();
    assert.match(names.join('; '), /Process memory.*Device, not this allocator.*Other processes/s);
    // 3 GiB of another process, and the 512 MiB of a context.
    const [resident, outside, others] = await bytesIn(curves);
    assert.ok(resident > 2 ** 20 && resident < GIB, String(resident));
    assert.deepEqual([outside, others], [3.5 * GIB, 3 * GIB]);
    await page.screenshot(`beside-${theme}`);

    await strip.getByRole('button').click();
    await until('the curves are put away', () => curves.count(), (count) => count === 0);
  });
}
