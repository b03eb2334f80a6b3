// Drives PyTorch's own page for measurements: `MemoryViz.js` unchanged, with d3 from a file beside it.
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';

// PyTorch's page with a file input, whose file is dropped on the page.
const HTML = `<!doctype html><html><head><meta charset="utf-8"></head><body>
<input type="file" id="measured" style="display:none"><script type="module" src="MemoryViz.js"></script></body></html>`;

/** Serves the folder that holds MemoryViz.js and d3.js. */
export async function serve(folder) {
  const script = (await readFile(join(folder, 'MemoryViz.js'), 'utf8')).replace(/(from\s+)["']https:[^"']*["']/g, '$1"./d3.js"');
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost');
    if (pathname === '/') return response.setHeader('content-type', 'text/html').end(HTML);
    response.setHeader('content-type', 'text/javascript');
    if (pathname === '/MemoryViz.js') return response.end(script);
    if (pathname === '/d3.js') return createReadStream(join(folder, 'd3.js')).pipe(response);
    return response.writeHead(404).end();
  });
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  const url = `http://127.0.0.1:${server.address().port}/`;
  return { name: 'memory_viz', url, page, stop: () => server.close() };
}

const page = {
  async open(tab) {
    await tab.locator('select').nth(1).waitFor({ state: 'attached' });
  },

  /** Drops the file; returns the milliseconds until two frames after the first shape. */
  async load(tab, file) {
    await tab.locator('#measured').setInputFiles(file);
    return tab.evaluate(async () => {
      const transfer = new DataTransfer();
      transfer.items.add(document.getElementById('measured').files[0]);
      watch.begin();
      document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }));
      return watch.until(() => document.querySelector('svg polygon, svg path, svg rect'));
    });
  },

  /** Opens the state history: its event list and its segment map are one view. */
  state: (tab) => open(tab, 'Allocator State History'),

  events: async () => null,

  /** Steps one event back in the event list. */
  step: (tab) =>
    tab.evaluate(() => {
      watch.begin();
      document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowUp', bubbles: true, cancelable: true }));
      return watch.until(() => true, 1);
    }),

  async timeline(tab) {
    await open(tab, 'Active Memory Timeline');
    return tab.locator('svg').first().boundingBox();
  },
};

/** Returns the milliseconds from choosing a view to two frames after it is drawn. */
function open(tab, view) {
  return tab.evaluate((view) => {
    const select = document.querySelectorAll('select')[1];
    watch.begin();
    select.value = view;
    select.dispatchEvent(new Event('change', { bubbles: true }));
    return watch.until(() => true);
  }, view);
}
