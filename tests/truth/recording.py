"""One run of a job: its history, and what PyTorch's allocator counted in it."""

import pickle
import warnings

import torch

import device

# PyTorch's counters that are compared, by the name that `vramscope whatif` gives them.
COUNTERS = {
    "peak_reserved": "reserved_bytes.all.peak",
    "peak_allocated": "allocated_bytes.all.peak",
    "peak_active": "active_bytes.all.peak",
    "reserved_end": "reserved_bytes.all.current",
    "segments_end": "segment.all.current",
    "device_allocs": "num_device_alloc",
    "device_frees": "num_device_free",
    "retries": "num_alloc_retries",
    "ooms": "num_ooms",
}
# Those that begin with 0 when the history does.
SUMS = ("device_allocs", "device_frees", "retries", "ooms", "served", "requested")
GRANULE = 2 << 20


class Recording:
    """A run, from its start or from where the job says."""

    def __init__(self, job, case, marks):
        self.job, self.case = job, case
        self.device = device.Device()
        self.at_start, self.failures, self.marks = {}, [], {}
        self.wanted = set(marks)
        self.served = 0
        if job.memory is not None:
            self.device.set_capacity(job.memory)
        if not job.begins_late:
            self.begin()

    def begin(self):
        """Sets the limits of the case, and begins the history."""
        total = torch.cuda.get_device_properties(0).total_memory
        if self.case["capacity"] is not None:
            self.device.set_capacity(self.case["capacity"])
        if self.case["fraction"] is not None:
            torch.cuda.set_per_process_memory_fraction(self.case["fraction"])
        assert total == torch.cuda.get_device_properties(0).total_memory
        if self.job.begins_late:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.cuda.memory._set_allocator_settings(self.case["conf"])
            torch.cuda.reset_peak_memory_stats()
            self.at_start = self.counters()
        torch._C._cuda_attach_out_of_memory_observer(lambda *_: self.failures.append(self.counters()))
        if self.wanted:
            torch._C._activate_gpu_trace()
            torch.cuda._gpu_trace.register_callback_for_memory_allocation(self.has_served)
        context = "all" if self.case["has_stacks"] else None
        torch.cuda.memory._record_memory_history(context=context, stacks="python", max_entries=1 << 24)

    def has_served(self, _):
        """Keeps the counters after a request that failed when the job was recorded."""
        self.served += 1
        requests = self.served + len(self.failures)
        if requests in self.wanted:
            self.marks[requests] = self.counters()

    def counters(self):
        stats = torch.cuda.memory_stats()
        found = {name: stats[key] for name, key in COUNTERS.items()}
        found["served"] = stats["allocation.all.allocated"]
        found["requested"] = stats["requested_bytes.all.allocated"]
        for name in SUMS:
            found[name] -= self.at_start.get(name, 0)
        return found

    def run(self):
        """Runs the job and returns what was counted: at its end, at each failure, and at the marks."""
        has_failed = False
        try:
            self.job.run(self)
        except torch.cuda.OutOfMemoryError:
            has_failed = True
        end = self.failures[-1] if has_failed else self.counters()
        return {"end": end, "has_failed": has_failed, "failures": self.failures, "marks": self.marks}

    def store(self, path):
        """Writes the history as a snapshot."""
        with open(path, "wb") as file:
            pickle.dump(torch.cuda.memory._snapshot(), file)


def requests_that_failed(path):
    """Returns the numbers of the requests in a snapshot's history that failed, counted from 1."""
    with open(path, "rb") as file:
        actions = [entry["action"] for entry in pickle.load(file)["device_traces"][0]]
    requests = [action for action in actions if action in ("alloc", "oom")]
    return [number for number, action in enumerate(requests, 1) if action == "oom"]
