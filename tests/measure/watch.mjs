// Runs inside a measured page: a clock, the long tasks, and waiting for elements to become visible.

/** Runs in the page before its own code. */
export function install() {
  const watch = { longest: 0, begun: 0 };
  new PerformanceObserver((list) => {
    for (const task of list.getEntries()) watch.longest = Math.max(watch.longest, task.duration);
  }).observe({ type: 'longtask', buffered: true });

  /** Starts the clock and forgets earlier long tasks. */
  watch.begin = () => {
    watch.longest = 0;
    watch.begun = performance.now();
  };
  const frames = (count) =>
    new Promise((done) => {
      const next = () => (count-- > 0 ? requestAnimationFrame(next) : done());
      next();
    });
  /** Returns the milliseconds from `begin` until `seen` holds, and some animation frames more. */
  watch.until = async (seen, further = 2) => {
    if (!seen()) {
      await new Promise((done) => {
        const check = () => {
          if (!seen()) return;
          observer.disconnect();
          done();
        };
        const observer = new MutationObserver(check);
        observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
      });
    }
    await frames(further);
    return performance.now() - watch.begun;
  };
  /** The longest task on the UI thread since `begin`, in milliseconds; browsers report none below 50 ms. */
  watch.longestTask = async () => {
    await frames(2);
    return watch.longest;
  };
  globalThis.watch = watch;
}
