// Whether a GPU draws the shapes or the processor, the picture is the same.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { at, goTo, openSample } from './workbench.mjs';

/** Returns a screenshot of the page, without a pointer over it. */
async function picture(page) {
  await page.tab.mouse.move(720, 895);
  // What was under the pointer is gone with the next frames.
  await page.tab.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return (await page.tab.screenshot()).toString('base64');
}

/** Opens the sample with a painter, and returns its pictures. */
async function picturesBy(t, painter) {
  const page = await openPage(t);
  await page.tab.evaluate((painter) => localStorage.setItem('vramscope.renderer', painter), painter);
  await page.open();
  await openSample(page);
  assert.equal(await page.tab.locator(`canvas[data-renderer="${painter}"]`).count(), 2);
  const pictures = { whole: await picture(page) };
  await goTo(page, 'Segments');
  await at(page, 'segments-note').waitFor();
  pictures.segments = await picture(page);
  return { page, pictures };
}

/** Returns the number of pixels in which two pictures differ visibly. */
const differing = (page, pair) =>
  page.tab.evaluate(async (pair) => {
    const [a, b] = await Promise.all(
      pair.map(async (base64) => {
        const image = await createImageBitmap(new Blob([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))]));
        const context = new OffscreenCanvas(image.width, image.height).getContext('2d');
        context.drawImage(image, 0, 0);
        return context.getImageData(0, 0, image.width, image.height).data;
      }),
    );
    let pixels = 0;
    for (let i = 0; i < a.length; i += 4) {
      if ([0, 1, 2].some((channel) => Math.abs(a[i + channel] - b[i + channel]) > 4)) pixels++;
    }
    return pixels;
  }, pair);

test('both painters draw the same pictures', async (t) => {
  const probe = await openPage(t);
  const hasWebGl = await probe.tab.evaluate(() => new OffscreenCanvas(1, 1).getContext('webgl2') !== null);
  if (!hasWebGl) return t.skip('this browser has no WebGL 2, not even an emulated one');
  const { page, pictures: byProcessor } = await picturesBy(t, 'cpu');
  const { pictures: byGpu } = await picturesBy(t, 'webgl');
  for (const [name, one] of Object.entries(byProcessor)) {
    assert.equal(await differing(page, [one, byGpu[name]]), 0, name);
  }
  assert.ok((await differing(page, [byProcessor.whole, byProcessor.segments])) > 10_000, 'pictures can differ');
});
