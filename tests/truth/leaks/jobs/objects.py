"""Python's own objects that keep tensors: cycles, tracebacks, closures."""

import gc

import torch
import torch.nn.functional as F

from job import leaking
from models import DEVICE, convnet, labels, mlp, update


@leaking(share=0.0047)
def cycles_without_collector(run):
    """The collector is off, for speed, and each batch is in a reference cycle with its loader."""
    gc.disable()

    class Batch:
        def __init__(self, loader):
            self.loader = loader
            self.tensor = torch.zeros(4, 512).to(DEVICE)  # leaks
            loader.current = self

    class Loader:
        current = None

    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in run.steps(50):
        batch = Batch(Loader())
        update(optimizer, F.cross_entropy(model(batch.tensor.repeat(64, 1)), labels(256)))


@leaking(share=0.18)
def tracebacks_kept(run):
    """Some batches are broken; their exceptions are kept for a report, and with them the frames and their tensors."""
    model, failures = convnet(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def train(step):
        x = torch.zeros(64, 3, 32, 32).to(DEVICE)  # leaks most
        bright = x[:24] * 1.5 - 0.5  # leaks
        if step % 7 == 3:
            raise ValueError(f"batch {step} has no labels")
        update(optimizer, F.cross_entropy(model(torch.cat([x, bright])), labels(88, 100)))

    for step in run.steps(70):
        try:
            train(step)
        except ValueError as error:
            failures.append(error)


@leaking(share=0.0072)
def closures_kept(run):
    """Each step defers a function that would save an example, and the list of those is never run."""
    model, deferred = mlp(1024, 512, 1024), []
    optimizer = torch.optim.Adam(model.parameters())
    for step in run.steps(60):
        x = torch.zeros(128, 1024).to(DEVICE)
        rebuilt = model(x)
        update(optimizer, F.mse_loss(rebuilt, x))
        if step % 2 == 0:
            worst = (rebuilt.detach()[:4] - x[:4]).abs()  # leaks
            deferred.append(lambda worst=worst, step=step: torch.save(worst, f"{step}.pt"))
