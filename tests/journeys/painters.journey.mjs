// Whether a GPU draws the shapes or the processor, the picture is the same.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { answered, at, goTo, openSample, tip, until } from './workbench.mjs';

/** Returns a screenshot of the page, without a pointer over it. */
async function picture(page) {
  await page.tab.mouse.move(720, 895);
  // What was under the pointer is gone with the next frames.
  await page.tab.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return (await page.tab.screenshot()).toString('base64');
}

/** Returns a picture of the page once it has all answers and looks the same twice. */
async function rested(page) {
  let before = '';
  for (;;) {
    await answered(page);
    const now = await picture(page);
    if (now === before) return now;
    before = now;
    await page.tab.waitForTimeout(250);
  }
}

/** Opens the sample with a painter, and returns its pictures. */
async function picturesBy(t, painter) {
  const page = await openPage(t);
  await page.tab.evaluate((painter) => localStorage.setItem('vramscope.renderer', painter), painter);
  await page.open();
  await openSample(page);
  assert.equal(await page.tab.locator(`canvas[data-renderer="${painter}"]`).count(), 2);
  const pictures = { whole: await rested(page) };
  await goTo(page, 'Segments');
  await at(page, 'segments-note').waitFor();
  pictures.segments = await rested(page);
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

/** Returns whether the browser has WebGL 2; otherwise the test is skipped. */
async function hasWebGl(t) {
  const probe = await openPage(t);
  const has = await probe.tab.evaluate(() => new OffscreenCanvas(1, 1).getContext('webgl2') !== null);
  if (!has) t.skip('this browser has no WebGL 2, not even an emulated one');
  return has;
}

test('both painters draw the same pictures', async (t) => {
  if (!await hasWebGl(t)) return;
  const { page, pictures: byProcessor } = await picturesBy(t, 'cpu');
  const { pictures: byGpu } = await picturesBy(t, 'webgl');
  for (const [name, one] of Object.entries(byProcessor)) {
    assert.equal(await differing(page, [one, byGpu[name]]), 0, name);
  }
  assert.ok((await differing(page, [byProcessor.whole, byProcessor.segments])) > 10_000, 'pictures can differ');
});

test('a context lives as long as its picture, only where there are shapes, and the processor draws on when it is lost', async (t) => {
  if (!await hasWebGl(t)) return;
  const page = await openPage(t);
  await page.tab.evaluate(() => localStorage.setItem('vramscope.renderer', 'webgl'));
  await page.tab.addInitScript(() => {
    window.contexts = new Set();
    const get = HTMLCanvasElement.prototype.getContext;
    HTMLCanvasElement.prototype.getContext = function (kind, ...options) {
      const context = get.call(this, kind, ...options);
      if (kind === 'webgl2') window.contexts.add(context);
      return context;
    };
  });
  await page.open();
  await openSample(page);
  const living = () => page.tab.evaluate(() => [...window.contexts].filter((context) => !context.isContextLost()).map(({ canvas }) => canvas.isConnected));
  // The overview has one in every view.
  for (const [name, wanted] of [['Segments', 2], ['Timeline', 2], ['What-if', 1], ['Segments', 2], ['Flame', 2], ['Timeline', 2]]) {
    await goTo(page, name);
    await answered(page);
    await until(`${wanted} contexts in ${name}`, living, (all) => all.length === wanted && all.every(Boolean));
  }
  const before = await picture(page);
  await page.tab.evaluate(() => window.contexts.forEach((context) => context.getExtension('WEBGL_lose_context')?.loseContext()));
  await until('the processor draws', () => page.tab.locator('canvas[data-renderer="cpu"]').count(), (count) => count === 2);
  assert.equal(await differing(page, [before, await picture(page)]), 0, 'the same picture');
});

/**
 * Shows the page on a screen with this many device pixels per CSS pixel. Every other time the window becomes a pixel wider, since
 * Chromium tells a page of no other emulated ratio at the same size.
 */
async function moveTo(page, ratio) {
  const screen = await page.tab.context().newCDPSession(page.tab);
  const { width, height } = page.tab.viewportSize();
  const isWider = await page.tab.evaluate((width) => innerWidth === width, width);
  await screen.send('Emulation.setDeviceMetricsOverride', { width: width + Number(isWider), height, deviceScaleFactor: ratio, mobile: false });
}

/** Runs in the page: returns by how many device pixels the canvases are larger than their places, whose edges are whole ones. */
const excess = () =>
  [...document.querySelectorAll('canvas')].map((canvas) => {
    const { left, right, top, bottom } = canvas.getBoundingClientRect();
    const [x0, x1, y0, y1] = [left, right, top, bottom].map((edge) => Math.round(edge * devicePixelRatio));
    return [canvas.width - (x1 - x0), canvas.height - (y1 - y0)];
  });

test('on another screen each pixel of a picture is one of the screen, and can be pointed at', async (t) => {
  const page = await openPage(t, { width: 1433, height: 877 });
  await page.tab.addInitScript(() => window.addEventListener('resize', (event) => event.stopImmediatePropagation(), true));
  await page.open();
  await openSample(page);
  // The flame graph is as high as its rows, which need not end with a pixel.
  for (const [view, most] of [['Timeline', 0], ['Flame', 1], ['Segments', 0]]) {
    await goTo(page, view);
    for (const ratio of [1.25, 2, 1.5, 1]) {
      await moveTo(page, ratio);
      await until(`${view} is sharp at ${ratio}`, () => page.tab.evaluate(excess), (all) => all.length >= 2 && all.flat().every((by) => Math.abs(by) <= most));
    }
  }
  await goTo(page, 'Timeline');
  await moveTo(page, 2);
  await answered(page);
  const { x, y, width, height } = await at(page, 'timeline-canvas').boundingBox();
  const columns = [];
  for (let half = 0; half < 8; half += 1) {
    await page.tab.mouse.move(Math.floor(x + width / 2) + half / 2, y + height - 30);
    const event = async () => /event ([\d,]+)/.exec(await tip(page))?.[1];
    columns.push(await until(`another event at half a pixel more than ${columns.at(-1)}`, event, (event) => event && event !== columns.at(-1)));
  }
});
