// Cleanup at the end of a test, in reverse order of creation.

/** The actions that run when each test ends, the newest last. */
const left = new WeakMap();

/**
 * Runs `action` when the test ends, after all actions that were registered later. The test runner itself begins
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
