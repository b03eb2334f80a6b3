// How late events are on the screen.

/**
 * Lags of events that happen evenly in time, from a series of frames. Each frame is `[shown, newest]`: when it was on the
 * screen, and when the newest event in it happened, both in microseconds since the epoch. An event is on the screen with
 * the first frame whose newest is not older. Gives the function that tells the lag below which a share of the events lies,
 * in milliseconds: exact, since the events between two newest ones have all lags from one bound to the other, evenly.
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

/** The value below which a share of some lies; they need not be sorted. */
export function percentile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] : 0;
}
