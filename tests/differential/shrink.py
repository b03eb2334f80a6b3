"""Makes a script smaller as long as it still shows its difference."""

import copy

# Enough to bring two thousand operations down to a handful; a round trip takes some tens of milliseconds.
TRIES = 800


def shrink(script, differs):
    """Returns the smallest script found for which `differs` holds. It must hold for `script`."""
    left = [TRIES]

    def still(candidate):
        if left[0] <= 0:
            return False
        left[0] -= 1
        return differs(candidate)

    def with_ops(ops):
        return {**script, "ops": ops}

    # Drop operations: first halves of the script, finally single ones.
    ops, size = script["ops"], max(1, len(script["ops"]) // 2)
    while left[0] > 0:
        i, dropped = 0, False
        while i < len(ops):
            shorter = ops[:i] + ops[i + size :]
            if still(with_ops(shorter)):
                ops, dropped = shorter, True
            else:
                i += size
        if size == 1 and not dropped:
            break
        size = max(1, size // 2) if not dropped or size > 1 else 1
    script = with_ops(ops)

    # Drop options of the settings, at start and later.
    for text, put in settings_of(script):
        parts = text.split(",")
        i = 0
        while i < len(parts) and text:
            fewer = parts[:i] + parts[i + 1 :]
            candidate = put(script, ",".join(fewer))
            if still(candidate):
                script, parts = candidate, fewer
            else:
                i += 1
    if script.get("va") == "bump" and still({**script, "va": "firstfit"}):
        script = {**script, "va": "firstfit"}
    return script


def settings_of(script):
    """Yields each settings string of a script with a function that replaces it."""
    yield script.get("config", ""), lambda s, text: {**s, "config": text}
    for i, op in enumerate(script["ops"]):
        if op[0] == "config" and isinstance(op[1], str):

            def put(s, text, i=i):
                changed = copy.deepcopy(s)
                changed["ops"][i][1] = text
                return changed

            yield op[1], put
