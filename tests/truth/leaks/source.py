"""What the source of the jobs says: which there are, what each does, and which of its lines leak."""

import ast
import dataclasses
import re

# At the end of a line: the tensors that this line allocates stay. The job is the one around the line, or is named.
MARK = re.compile(r"# leaks(?P<most> most)?(?: in (?P<jobs>\w+(?:, \w+)*))?$")


@dataclasses.dataclass
class Job:
    name: str
    # The path of its file, and the file's name as the tool prints it: with its folder.
    path: str
    place: str
    # What it does, in a sentence.
    about: str
    # What the marked lines hold at the end, as a share of the peak; None for a clean job.
    share: float | None
    # The numbers of marked lines, and of the one that holds most, if one is marked so.
    lines: set = dataclasses.field(default_factory=set)
    most: set = dataclasses.field(default_factory=set)

    @property
    def leaks(self):
        return self.share is not None

    @property
    def answers(self):
        """The lines that are right answers."""
        return self.most or self.lines


def read(folder):
    """Returns the jobs in a folder by name, in the order of the source."""
    jobs = {}
    for path in sorted(folder.glob("[!_]*.py")):
        text = path.read_text()
        spans = []
        for node in ast.parse(text).body:
            job = isinstance(node, ast.FunctionDef) and job_of(node, path)
            if job:
                assert job.name not in jobs, f"two jobs have the name {job.name}"
                jobs[job.name] = job
                spans.append((node.lineno, node.end_lineno, job.name))
        mark(jobs, text, spans)
    for job in jobs.values():
        assert job.leaks == bool(job.lines), f"{job.name}: a leaking job has marked lines, and a clean one none"
    return jobs


def job_of(node, path):
    """The job of a function, by its decorator; None if it is none."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Name) and decorator.id in ("clean", "clean_late"):
            share = None
        elif isinstance(decorator, ast.Call) and decorator.func.id == "leaking":
            share = ast.literal_eval(decorator.keywords[0].value)
        else:
            continue
        about = " ".join(ast.get_docstring(node).split())
        return Job(node.name, str(path), f"{path.parent.name}/{path.name}", about, share)
    return None


def mark(jobs, text, spans):
    for number, line in enumerate(text.splitlines(), 1):
        found = MARK.search(line)
        if not found:
            continue
        around = [name for first, last, name in spans if first <= number <= last]
        for name in found["jobs"].split(", ") if found["jobs"] else around:
            jobs[name].lines.add(number)
            if found["most"]:
                jobs[name].most.add(number)
