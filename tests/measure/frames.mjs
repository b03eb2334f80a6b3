// Measures the UI thread's work for one step of a zoom or a pan, from Chromium's own trace.

const STEPS = 30;

/** The trace event that begins a frame on the UI thread. */
const FRAME = 'ProxyMain::BeginMainFrame';

/** Returns the UI thread's work in milliseconds for each step that `act` makes, smallest first. */
export async function workOfSteps(browser, tab, act) {
  const steps = await framesOf(browser, tab, STEPS, act);
  return steps.map((frames) => frames.reduce((sum, work) => sum + work, 0)).sort((a, b) => a - b);
}

/** Returns, for each of `times` steps that `act` makes, the UI thread's work in milliseconds from frame to frame. */
export async function framesOf(browser, tab, times, act) {
  await browser.startTracing(tab, { categories: ['toplevel', 'benchmark', 'devtools.timeline', 'disabled-by-default-devtools.timeline', '__metadata'] });
  for (let i = 0; i < times; i++) {
    await tab.evaluate((i) => console.timeStamp(`step ${i}`), i);
    await act(i);
    // Waits until the step is drawn.
    await tab.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  }
  await tab.evaluate((i) => console.timeStamp(`step ${i}`), times);
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());

  const marks = traceEvents.filter((event) => event.name === 'TimeStamp' && /^step \d+$/.test(event.args?.data?.message ?? ''));
  marks.sort((a, b) => a.ts - b.ts);
  const { pid, tid } = marks[0];
  const onThread = traceEvents.filter((event) => event.pid === pid && event.tid === tid);
  const tasks = onThread.filter((event) => event.name === 'RunTask' && event.dur);
  const begins = onThread.filter((event) => event.name === FRAME && event.dur).map((event) => event.ts).sort((a, b) => a - b);
  return marks.slice(1).map((mark, i) => {
    const ends = [...begins.filter((at) => at > marks[i].ts && at < mark.ts), mark.ts];
    let begin = marks[i].ts;
    return ends.map((end) => {
      const work = tasks.filter((task) => task.ts >= begin && task.ts < end).reduce((sum, task) => sum + task.dur, 0) / 1000;
      begin = end;
      return work;
    });
  });
}

/** Returns the work of the heaviest frame. */
export const heaviest = (frames) => Math.max(0, ...frames);

/** Returns a percentile, given as a share of 1. */
export const percentile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];

/** Returns the 95th percentile. */
export const percentile95 = (sorted) => percentile(sorted, 0.95);
