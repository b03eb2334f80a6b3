// Every view looks as it did. It is compared with its golden picture in `golden`, which a person has checked.
//
// VRAMSCOPE_SOAK           anything: all subjects, and not only one of each view
// VRAMSCOPE_GOLDEN=write   writes them anew instead; look at each one before it is committed
// VRAMSCOPE_SCREENSHOTS    gets the whole picture of each view that differs
//
// A golden picture is a third of the view's size. Both are compared in squares by their mean colour, so that a pixel here and
// there, and how edges are smoothed, don't matter. Text has other widths in other fonts; then nothing is compared.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { pictures, SUBJECTS, THEMES } from './gallery.mjs';
import { openPage } from './page.mjs';

const folder = fileURLToPath(new URL('golden', import.meta.url));
const writes = process.env.VRAMSCOPE_GOLDEN === 'write';

/** The side of a square of a golden picture, in its pixels. */
const SQUARE = 6;
/** Mean colours differ if they are further apart than this, of 255. */
const APART = 24;
/** The share of squares of a picture that may differ. */
const TOLERANCE = 0.01;

/** Runs in a blank page: returns the golden picture of a screenshot, and how much it differs from another one. */
async function compare({ screenshot, golden, SQUARE, APART }) {
  const read = async (bytes, type) => createImageBitmap(await (await fetch(`data:image/${type};base64,${bytes}`)).blob());
  const picture = await read(screenshot, 'png');
  const [width, height] = [Math.round(picture.width / 3), Math.round(picture.height / 3)];
  const draw = (image) => {
    const canvas = new OffscreenCanvas(width, height);
    const context = canvas.getContext('2d', { willReadFrequently: true });
    context.imageSmoothingQuality = 'high';
    context.drawImage(image, 0, 0, width, height);
    return { canvas, pixels: context.getImageData(0, 0, width, height).data };
  };
  const now = draw(picture);
  const blob = await now.canvas.convertToBlob({ type: 'image/webp', quality: 0.75 });
  const bytes = new Uint8Array(await blob.arrayBuffer());
  const made = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
  if (!golden) return { made };
  const image = await read(golden, 'webp');
  if (image.width !== width || image.height !== height) return { made, share: 1 };
  const before = draw(image).pixels;
  let [different, all] = [0, 0];
  for (let top = 0; top + SQUARE <= height; top += SQUARE) {
    for (let left = 0; left + SQUARE <= width; left += SQUARE) {
      const sums = [0, 0, 0];
      for (let y = top; y < top + SQUARE; y += 1) {
        for (let x = left; x < left + SQUARE; x += 1) {
          const at = (y * width + x) * 4;
          for (let part = 0; part < 3; part += 1) sums[part] += now.pixels[at + part] - before[at + part];
        }
      }
      all += 1;
      different += sums.some((sum) => Math.abs(sum) / (SQUARE * SQUARE) > APART);
    }
  }
  return { made, share: different / all };
}

/** Runs in the page: returns the widths of texts in its fonts. */
function fontWidths() {
  const context = document.createElement('canvas').getContext('2d');
  const style = getComputedStyle(document.documentElement);
  return ['--sans', '--mono'].map((font) => {
    context.font = `100px ${style.getPropertyValue(font)}`;
    return Math.round(context.measureText('Reserved 592 MiB of 79.3 GiB').width);
  });
}

/** The subjects that are always compared: a run that was out of memory has a verdict as well. */
const EVERY_VIEW = ['out-of-memory', 'two-runs'];
const compared = writes || process.env.VRAMSCOPE_SOAK ? SUBJECTS : SUBJECTS.filter(([name]) => EVERY_VIEW.includes(name));

for (const subject of compared) {
  const [subjectName, prepare] = subject;
  for (const theme of THEMES) {
    test(`${subjectName}, ${theme}: every view looks as it did`, async (t) => {
      const open = await prepare(t);
      const page = await openPage(t, { theme });
      const fonts = JSON.stringify(await page.tab.evaluate(fontWidths));
      const known = join(folder, 'fonts.json');
      if (writes) {
        mkdirSync(folder, { recursive: true });
        writeFileSync(known, fonts);
      } else if (readFileSync(known, 'utf8').trim() !== fonts) {
        t.skip('this machine has other fonts than the golden pictures');
        return;
      }
      const blank = await (await page.tab.context().browser().newContext()).newPage();
      const different = [];
      await pictures(page, subject, open, theme, async (name, picture) => {
        const path = join(folder, `${name}.webp`);
        const golden = !writes && existsSync(path) ? readFileSync(path, 'base64') : '';
        const { made, share } = await blank.evaluate(compare, { screenshot: picture.toString('base64'), golden, SQUARE, APART });
        if (writes) {
          writeFileSync(path, Buffer.from(made, 'base64'));
        } else if (!golden || share > TOLERANCE) {
          different.push(golden ? `${name}: ${(share * 100).toFixed(1)} % differ` : `${name}: there is no golden picture`);
          const shots = process.env.VRAMSCOPE_SCREENSHOTS;
          if (shots) {
            mkdirSync(shots, { recursive: true });
            writeFileSync(join(shots, `golden-${name}.png`), picture);
          }
        }
      });
      assert.deepEqual(different, []);
    });
  }
}
