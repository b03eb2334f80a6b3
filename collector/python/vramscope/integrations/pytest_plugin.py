"""A plugin for pytest: the fixture ``vramscope_memory`` fails a test whose peak of GPU memory grows.

    def test_forward(vramscope_memory):
        vramscope_memory(max_growth="2%")       # from here to the end of the test
        model(x)

        # or only a part of it:
        with vramscope_memory(max_growth="5%", name="backward"):
            loss.backward()

A test that only asks for the fixture is measured as a whole, without its other fixtures, with the setting
``vramscope_memory_growth`` (2 %). What is measured is the most that each device had allocated above what it had at the
start. ``pytest --vramscope-update`` stores it as the baseline, in ``vramscope_memory.json`` beside pytest's configuration:
keep that file with the tests. A test without a baseline fails. Peaks differ between releases of PyTorch and kinds of GPUs,
so each pair has its own baselines. Without a GPU the test is skipped.
"""

from __future__ import annotations

import gc
import os
import re
import sys

import pytest

GROWTH, FILE = "2%", "vramscope_memory.json"
_KEY = "vramscope_memory_of_item"


def pytest_addoption(parser):
    group = parser.getgroup("vramscope", "peaks of GPU memory")
    what = "store the measured peaks as the baselines of vramscope_memory"
    group.addoption("--vramscope-update", action="store_true", help=what)
    parser.addini("vramscope_memory_file", "the file of the baselines of vramscope_memory", default=FILE)
    parser.addini("vramscope_memory_growth", "how much a peak may grow unless a test says otherwise", default=GROWTH)


def pytest_configure(config):
    from . import pytest_predict

    config._vramscope_baselines = None
    config.pluginmanager.register(pytest_predict, "vramscope_predict")


def _baselines(config):
    if config._vramscope_baselines is None:
        from ._baselines import Baselines

        config._vramscope_baselines = Baselines(config.rootpath / config.getini("vramscope_memory_file"))
    return config._vramscope_baselines


def pytest_sessionfinish(session):
    if session.config._vramscope_baselines is not None:
        session.config._vramscope_baselines.save()


class Part:
    """A measured part of a test: to the end of a ``with`` block, or of the test."""

    def __init__(self, memory, max_growth, name):
        from .. import _ring
        from ._baselines import growth

        self.key = memory.key if name is None else f"{memory.key} {name}"
        self.growth, self.is_open, self._memory = growth(max_growth), True, memory
        gc.collect()  # What earlier tests have left must not be freed within this one.
        _ring.restart(_ring.ENTRIES)
        cuda = self._cuda = sys.modules["torch"].cuda
        self._before = {device: cuda.memory_allocated(device) for device in range(cuda.device_count())}
        for device in self._before:
            cuda.reset_peak_memory_stats(device)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.is_open = self.is_open and kind is None
        self.end()

    def end(self):
        if self.is_open:
            self.is_open = False
            peaks = {str(device): self._cuda.max_memory_allocated(device) - of for device, of in self._before.items()}
            self._memory.check(self, {device: peak for device, peak in peaks.items() if peak > 0})


class Memory:
    """The fixture: call it to measure a part of the test instead of the whole."""

    def __init__(self, item, torch):
        from .. import _torch

        self.key, self._config, self._parts, self._is_whole = item.nodeid, item.config, [], True
        self._place = "torch %d.%d, %s" % (*_torch.version(torch), torch.cuda.get_device_name(0))
        self._wrong = []

    def __call__(self, max_growth=None, name=None):
        if self._is_whole:
            self._parts, self._is_whole = [], False
        if any(part.is_open for part in self._parts):
            raise RuntimeError("one part of a test is measured at a time: use `with vramscope_memory(...)`")
        part = Part(self, self._config.getini("vramscope_memory_growth") if max_growth is None else max_growth, name)
        if any(part.key == of.key for of in self._parts):
            raise ValueError("parts of one test need names of their own: vramscope_memory(name=...)")
        self._parts.append(part)
        return part

    def begin(self):
        """Measures the whole test, unless it says otherwise."""
        from .. import _ring

        _ring.hold(_ring.ENTRIES)
        self()
        self._is_whole = True

    def end(self):
        """Returns what is wrong, or None."""
        for part in self._parts:
            part.end()
        return "\n".join(self._wrong) or None

    def check(self, part, peaks):
        """Compares the peaks of a part with its baselines, or makes them its baselines."""
        if self._config.getoption("--vramscope-update"):
            _baselines(self._config).put(self._place, part.key, peaks)
            return
        kept = _baselines(self._config).get(self._place, part.key)
        found = self._compare(part, peaks, kept)
        if kept is None:
            found = [f"{part.key}: no baseline for {self._place}. Store one: pytest --vramscope-update"]
        if found:
            self._wrong += found + self._why(part)

    @staticmethod
    def _compare(part, peaks, kept):
        from .._monitor import _bytes

        found = []
        for device, peak in peaks.items():
            before = (kept or {}).get(device, 0)
            if peak > before * (1 + part.growth):
                much = f"by {100 * (peak / before - 1):.1f} %" if before else "from nothing"
                found.append(
                    f"{part.key}: the peak of device {device} grew {much}, from {_bytes(before)} to {_bytes(peak)}; "
                    f"{100 * part.growth:g} % is allowed. If that is right: pytest --vramscope-update"
                )
        return found

    def _why(self, part):
        """Returns the lines of code that held the most at the peak, as far as they are known."""
        from .. import _program, _ring

        try:
            name = re.sub(r"\W+", "-", part.key).strip("-")[-100:] + ".pickle"
            path = _ring.write(os.path.join(self._config.cache.mkdir("vramscope"), name))
        except Exception as error:  # The test has failed in any case.
            return [f"The memory's state was not written: {error}"]
        said, _ = _program.run("report", "--", path)
        lines = re.search(r"^  live at the peak, by line:\n(?:    .*\n)*", said or "", re.MULTILINE)
        return [*(lines[0].rstrip().splitlines() if lines else ()), f"More: vramscope report {path}"]


@pytest.fixture
def vramscope_memory(request):
    """Fails the test if its peak of GPU memory grows: call it with max_growth="2%"."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("vramscope_memory needs a GPU")
    torch.cuda.init()
    memory = Memory(request.node, torch)
    setattr(request.node, _KEY, memory)
    yield memory
    delattr(request.node, _KEY)


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    memory = getattr(pyfuncitem, _KEY, None)
    if memory is None:
        yield
        return
    from .. import _ring

    memory.begin()
    outcome = yield
    try:
        # A test that has failed says nothing about its peak.
        wrong = memory.end() if outcome.excinfo is None else None
    finally:
        _ring.release()
    if wrong is not None:
        outcome.force_exception(pytest.fail.Exception(wrong, pytrace=False))
