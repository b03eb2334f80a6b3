// Measures the UI thread's work for one step of a zoom or a pan, from Chromium's own trace.

const STEPS = 30;

/** Returns the UI thread's work in milliseconds for each step that `act` makes, smallest first. */
export async function workOfSteps(browser, tab, act) {
  await browser.startTracing(tab, { categories: ['toplevel', 'devtools.timeline', 'disabled-by-default-devtools.timeline', '__metadata'] });
  for (let i = 0; i < STEPS; i++) {
    await tab.evaluate((i) => console.timeStamp(`step ${i}`), i);
    await act(i);
    // Waits until the step is drawn.
    await tab.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  }
  await tab.evaluate((i) => console.timeStamp(`step ${i}`), STEPS);
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());

  const marks = traceEvents.filter((event) => event.name === 'TimeStamp' && /^step \d+$/.test(event.args?.data?.message ?? ''));
  marks.sort((a, b) => a.ts - b.ts);
  const { pid, tid } = marks[0];
  const tasks = traceEvents.filter((event) => event.name === 'RunTask' && event.pid === pid && event.tid === tid && event.dur);
  const work = marks.slice(1).map((mark, i) => {
    const within = tasks.filter((task) => task.ts >= marks[i].ts && task.ts < mark.ts);
    return within.reduce((sum, task) => sum + task.dur, 0) / 1000;
  });
  return work.sort((a, b) => a - b);
}

/** Returns the 95th percentile. */
export const percentile95 = (sorted) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.95))];
