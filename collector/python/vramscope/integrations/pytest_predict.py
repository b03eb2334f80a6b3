"""A mark for pytest: a test runs without a GPU, and fails if it would not fit on a card.

    @pytest.mark.vramscope_predict(card="T4-16GB", fail_if_over=0.9)
    def test_training_fits():
        train(steps=3)

The arguments are those of `vramscope.predict`. The test runs in a process of its own, with its fixtures, where the GPU is a
simulated one.
"""

import os
import sys

import pytest

MARK = "vramscope_predict"


def pytest_configure(config):
    config.addinivalue_line("markers", f"{MARK}(card=..., fail_if_over=...): run without a GPU, and fail if it does not fit")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    """Runs a marked test in a process without a GPU; there it runs as any other."""
    mark = item.get_closest_marker(MARK)
    if mark is None or os.environ.get("VRAMSCOPE_PREDICT"):
        return None
    hook, place = item.ihook, {"nodeid": item.nodeid, "location": item.location}
    hook.pytest_runtest_logstart(**place)
    call = pytest.CallInfo.from_call(lambda: _check(item, mark), "call")
    hook.pytest_runtest_logreport(report=hook.pytest_runtest_makereport(item=item, call=call))
    hook.pytest_runtest_logfinish(**place)
    return True


def _check(item, mark):
    from .. import _prediction

    test = ["-p", "no:cacheprovider", "--rootdir", str(item.config.rootpath), f"{item.path}::{item.nodeid.partition('::')[2]}"]
    try:
        found = _prediction.predict("-m", ["pytest", *test], None, {"python": sys.executable, **mark.kwargs})
    except _prediction.PredictError as error:
        item.add_report_section("call", "output", error.output)
        raise pytest.fail.Exception(str(error), pytrace=False) from None
    item.add_report_section("call", "prediction", str(found))
    if found.fits is False:
        pytest.fail(str(found), pytrace=False)
