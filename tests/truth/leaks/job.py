"""What says of a job whether it leaks, for the program that runs it; `truth.py` reads the same from the source."""


def leaking(share):
    """A job that leaks; `share` is what the marked lines hold at the end, as a share of the run's peak."""
    return lambda job: job


def clean(job):
    """A job that keeps nothing that it doesn't need."""
    return job


def clean_late(job):
    """A clean job that begins the history itself, after some work."""
    job.begins_late = True
    return job
