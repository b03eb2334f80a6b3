// Computes how late events are on the screen.

/**
 * Returns a function from a share to the lag in milliseconds below which that share of the events lies. Each frame is
 * `[shown, newest]`: when the frame was on the screen, and when its newest event happened, in microseconds since the epoch.
 * An event is on the screen with the first frame whose newest event is not older. Events are taken as evenly spread in
 * time, so those between two newest events have all lags between two bounds, evenly.
 */
export function lagsOf(frames) {
  const runs = [];
  let before = frames[0]?.[1];
  for (const [shown, newest] of frames.slice(1)) {
    if (newest <= before) continue;
    runs.push({ least: shown - newest, span: newest - before });
    before = newest;
  }
  const all = runs.reduce((sum, run) => sum + run.span, 0);
  const within = (lag) => runs.reduce((sum, run) => sum + Math.min(Math.max(lag - run.least, 0), run.span), 0);
  return (share) => {
    if (all === 0) return NaN;
    let [low, high] = [Math.min(...runs.map((run) => run.least)), Math.max(...runs.map((run) => run.least + run.span))];
    while (high - low > 1) {
      const middle = (low + high) / 2;
      if (within(middle) < share * all) low = middle;
      else high = middle;
    }
    return high / 1000;
  };
}

/** Returns the value below which a share of the values lies, which need not be sorted. */
export function percentile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] : 0;
}
