"""Why a prediction differs from the truth, where the trace can't tell."""

UNSEEN_CALL = (
    "Some calls of `empty_cache` released nothing when the job was recorded, and so left no trace; under these settings they "
    "release something."
)
LAG = (
    "A block whose stream was done when it was freed looks like one that no other stream used; here the stream is further "
    "behind, or not as far, since requests wait for it at other places."
)
TAKEN_FOR_CALLS = (
    "Without stacks, some releases by requests that waited for the lagging stream are taken for calls of `empty_cache`."
)
BY_JOB = {"needless_empty_cache": UNSEEN_CALL, "lagging": LAG, "expandable_lagging": LAG}


def explanation(row):
    """Returns a sentence, or None if there is no known reason."""
    if row.job == "expandable_lagging" and not row.has_stacks and row.different == ["retries"]:
        return TAKEN_FOR_CALLS
    # Under the recorded settings nothing else may differ.
    return None if row.setting == "as recorded" else BY_JOB.get(row.job)
