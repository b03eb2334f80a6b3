// Touches of the page, and checks of what fingers can hit.

/** The least width and height of what a finger must hit, in pixels. */
const TARGET = 40;

/**
 * Returns the fingers of a page.
 *
 *   const fingers = await fingersOf(page);
 *   await fingers.down([100, 200], [200, 200]);
 *   await fingers.move([50, 200], [250, 200]);
 *   await fingers.up();
 */
export async function fingersOf(page) {
  const session = await page.tab.context().newCDPSession(page.tab);
  const send = (type, places) =>
    session.send('Input.dispatchTouchEvent', { type, touchPoints: places.map(([x, y], id) => ({ x, y, id })) });
  return {
    down: (...places) => send('touchStart', places),
    move: (...places) => send('touchMove', places),
    up: () => send('touchEnd', []),
    /** Moves one finger from a place to another in small steps. */
    async drag(from, to, steps = 8) {
      await send('touchStart', [from]);
      for (let i = 1; i <= steps; i += 1) {
        const on = (axis) => from[axis] + ((to[axis] - from[axis]) * i) / steps;
        await send('touchMove', [[on(0), on(1)]]);
      }
      await send('touchEnd', []);
    },
    /** Touches a place briefly. */
    async tap(place) {
      await send('touchStart', [place]);
      await send('touchEnd', []);
    },
  };
}

/** Returns what can be pressed and is smaller than a finger needs, as `name (width x height)`. */
export function tooSmall(page) {
  return page.tab.evaluate((least) => {
    const PRESSED = 'button, a[href], input:not([hidden]), select, textarea, [role=tab], [role=option], [role=treeitem], .grid [role=row]:not(.event-head)';
    // The area that can be pressed may be larger than the element: its label, its field, its row.
    const area = (element) => element.closest('label, .search-box:has(> input), .session') ?? element;
    const isShown = (element) => element.checkVisibility({ visibilityProperty: true }) && !element.closest('.visually-hidden, .skip-link');
    return [...document.querySelectorAll(PRESSED)]
      .filter(isShown)
      .map((element) => [element, (element.matches('button') ? element : area(element)).getBoundingClientRect()])
      .filter(([, { width, height }]) => width > 0 && (width < least - 0.5 || height < least - 0.5))
      .map(([element, { width, height }]) => {
        const name = element.dataset.testid || element.getAttribute('aria-label') || element.innerText || element.className;
        return `${name} (${width.toFixed(0)}x${height.toFixed(0)})`;
      });
  }, TARGET);
}

/** Brings each thing that takes the focus into view, and returns those that stay outside of the page or behind something. */
export function unreachable(page) {
  return page.tab.evaluate(() => {
    const found = [];
    const root = document.querySelector('dialog:modal') ?? document.body;
    const FOCUSED = 'button:enabled, a[href]:not(.skip-link), input:enabled:not([hidden]), select:enabled, textarea:enabled, [tabindex="0"]';
    for (const element of root.querySelectorAll(FOCUSED)) {
      if (!element.checkVisibility({ visibilityProperty: true })) continue;
      // What a toolbar has no room for is shown by the button at its end, over what is below; the sheet may be over that.
      const toolbar = element.closest('.toolbar:has(.toolbar-more):not(.is-open)');
      toolbar?.classList.add('is-open');
      element.scrollIntoView({ block: toolbar ? 'start' : 'nearest', inline: 'nearest' });
      const { left, top, right, bottom } = element.getBoundingClientRect();
      const [x, y] = [(Math.max(left, 0) + Math.min(right, innerWidth)) / 2, (Math.max(top, 0) + Math.min(bottom, innerHeight)) / 2];
      // A quarter as well: a sheet may cover the middle of a tall picture.
      const hit = [y, top + (bottom - top) / 4, top + 4].some((y) => {
        const on = document.elementFromPoint(x, y);
        return on && (element.contains(on) || on.contains(element) || on.closest('label')?.contains(element));
      });
      toolbar?.classList.remove('is-open');
      if (!hit) found.push(`${element.dataset.testid || element.innerText || element.className} (${[left, top, right, bottom].map(Math.round)})`);
    }
    return found;
  });
}
