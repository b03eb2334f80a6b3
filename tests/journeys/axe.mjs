// What axe-core finds in the page's accessibility tree. Only journeys use it; it is not part of the page.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const SOURCE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/**
 * Violations that are expected, as [rule, selector], with the reason.
 *
 * A virtual list is a scroller inside a grid or tree. The grid or tree around it takes the focus, and its arrow, page, Home
 * and End keys scroll the list. The rule looks for focus inside the scroller only, and a second tab stop there would do
 * nothing.
 */
const EXPECTED = [['scrollable-region-focusable', '[tabindex="0"]:is([role=grid], [role=tree]) > .virtual']];

/** Returns the violations of all of axe's rules, as `rule: element, and what is wrong`. */
export async function violations(page) {
  await page.tab.evaluate(SOURCE);
  return page.tab.evaluate(async (expected) => {
    const { violations } = await globalThis.axe.run(document, { resultTypes: ['violations'] });
    const isExpected = (id, target) => expected.some(([rule, selector]) => rule === id && document.querySelector(target)?.matches(selector));
    return violations.flatMap(({ id, nodes }) =>
      nodes
        .filter(({ target }) => !isExpected(id, target.at(-1)))
        .map(({ target, failureSummary }) => `${id}: ${target.join(' ')}: ${failureSummary.replaceAll(/\s+/g, ' ').slice(0, 300)}`));
  }, EXPECTED);
}
