// What a test leaves behind, in the order in which it can be taken down.

/** What each test still has to take down, the newest last. */
const left = new WeakMap();

/**
 * Does `action` when the test ends, after everything that was asked for later than this. The test runner itself begins
 * with the oldest, which would kill a server under the pages that still show it.
 */
export function atEnd(t, action) {
  const actions = left.get(t);
  if (actions) {
    actions.push(action);
    return;
  }
  left.set(t, [action]);
  t.after(async () => {
    const failures = [];
    for (const each of left.get(t).reverse()) {
      try {
        await each();
      } catch (failure) {
        failures.push(failure);
      }
    }
    if (failures.length > 0) throw failures[0];
  });
}
