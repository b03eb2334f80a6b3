"""Why a prediction differs from the truth, where the trace can't tell."""


def explanation(row):
    """Returns a sentence, or None if there is no known reason."""
    return None
