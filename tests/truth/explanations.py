"""Why a prediction differs from the truth, where the trace can't tell."""

UNSEEN_CALL = (
    "Some calls of `empty_cache` released nothing when the job was recorded, and so left no trace; under these settings they "
    "release something."
)
LAG = (
    "A block whose stream was done when it was freed looks like one that no other stream used; here the stream is further "
    "behind, or not as far, since requests wait for it at other places."
)
BY_JOB = {"needless_empty_cache": UNSEEN_CALL, "lagging": LAG, "expandable_lagging": LAG}


def explanation(row):
    """Returns a sentence, or None if there is no known reason."""
    # Under the recorded settings nothing may differ.
    return None if row.setting == "as recorded" else BY_JOB.get(row.job)
