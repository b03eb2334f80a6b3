"""What a snapshot itself says of a job: its peak, and what the marked lines hold, at the end and before."""

import pickle

# In the paths of PyTorch's files and of Python's own.
LIBRARY = "/lib/python3"
# What cuBLAS and cuBLASLt work in, on an H100: the first line that multiplies allocates it, and it stays.
WORKSPACES = (32 << 20, 1 << 20)
QUARTERS = (0.25, 0.5, 0.75)


def line_of(frames):
    """The innermost frame that is neither PyTorch's nor Python's own."""
    for frame in frames:
        if LIBRARY not in frame["filename"]:
            return frame["filename"], frame["line"]
    return None


class Snapshot:
    def __init__(self, path):
        with open(path, "rb") as file:
            content = pickle.load(file)
        self.events = [event for event in content["device_traces"][0] if event["action"] in ("alloc", "free_completed")]
        self.live = {}
        for segment in content["segments"]:
            for block in segment["blocks"]:
                if block["state"].startswith("active"):
                    self.live[block["address"]] = block["size"], line_of(block["frames"])
        self.peak = self.find_peak()

    def find_peak(self):
        """The most bytes that were live at once, counted back from the end."""
        now = most = sum(size for size, _ in self.live.values())
        for event in reversed(self.events):
            now += event["size"] if event["action"] == "free_completed" else -event["size"]
            most = max(most, now)
        return most

    def at_the_end(self):
        """Live bytes by line without workspaces, the largest first."""
        held, workspaces = {}, set()
        for size, line in sorted(self.live.values(), key=lambda block: -block[0]):
            if size in WORKSPACES and (size, line) not in workspaces:
                workspaces.add((size, line))
            else:
                held[line] = held.get(line, 0) + size
        return dict(sorted(held.items(), key=lambda item: -item[1]))

    def over_time(self, path, lines):
        """The bytes that some lines of a file hold after each quarter of the history, without workspaces."""
        limits = [int(share * len(self.events)) for share in QUARTERS]
        held, now, found, workspaces = {}, 0, [], set()
        for number, event in enumerate(self.events):
            if number in limits:
                found.append(now)
            if event["action"] == "alloc":
                line = line_of(event["frames"])
                if line is None or line[0] != path or line[1] not in lines:
                    continue
                if event["size"] in WORKSPACES and (event["size"], line) not in workspaces:
                    workspaces.add((event["size"], line))
                else:
                    held[event["addr"]] = event["size"]
                    now += event["size"]
            else:
                now -= held.pop(event["addr"], 0)
        return [*found, now]
