"""Optimizers, averages and copies of the weights of which too many stay."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

from job import leaking
from models import DEVICE, convnet, labels, language_loss, mlp, pictures, tokens, transformer, update


@leaking(share=0.17)
def optimizer_made_again(run):
    """Each epoch makes a new optimizer for the classifier, and a list of schedules keeps the old one with its state."""
    model, schedules = convnet((64, 128, 256), classes=1000), []
    body = torch.optim.SGD(model[:-1].parameters(), lr=0.1, momentum=0.9)
    for step in run.steps(64):
        if step % 8 == 0:
            head = torch.optim.Adam(model[-1].parameters())
            schedules.append(torch.optim.lr_scheduler.StepLR(head, 10))
        F.cross_entropy(model(pictures(64, 48)), labels(64, 1000)).backward()
        body.step()
        head.step()  # leaks
        body.zero_grad()
        head.zero_grad()


@leaking(share=0.098)
def groups_added(run):
    """Every task adds a prompt for the frozen model to the optimizer, whose groups are never removed; their state follows."""
    model, adapter = mlp(512, 1024, 100).requires_grad_(False), nn.Linear(512, 512, device=DEVICE)
    optimizer = torch.optim.AdamW(adapter.parameters())
    for step in run.steps(60):
        if step % 5 == 0:
            prompt = nn.Parameter(torch.zeros(64, 512, device=DEVICE))  # leaks
            optimizer.add_param_group({"params": [prompt]})
        loss = F.cross_entropy(model(adapter(torch.zeros(256, 512, device=DEVICE)) + prompt.mean(0)), labels(256, 100))
        loss.backward()
        optimizer.step()  # leaks
        optimizer.zero_grad()


@leaking(share=0.084)
def averages_of_each_epoch(run):
    """The averaged weights are copied at the end of each epoch and all copies stay, though only the last is used."""
    model = mlp(256, 768, 10)
    average = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(model.parameters())
    epochs = []
    for step in run.steps(60):
        update(optimizer, F.cross_entropy(model(torch.zeros(4096, 256).to(DEVICE)), labels(4096)))
        with torch.no_grad():
            for mean, new in zip(average.parameters(), model.parameters()):
                mean.lerp_(new, 0.01)
        if step % 12 == 11:
            epochs.append([mean.clone() for mean in average[-1].parameters()])  # leaks
            epochs.append(copy.deepcopy(average[2]))  # leaks most


@leaking(share=0.046)
def every_best_model(run):
    """Each time the model gets better its state_dict is copied, on the GPU, and the earlier copies stay."""
    model, best = transformer(width=128, layers=2), []
    optimizer = torch.optim.AdamW(model.parameters())
    for step in run.steps(60):
        update(optimizer, language_loss(model, tokens(8, 256)))
        if step % 6 == 5:
            state = {name: value for name, value in model.blocks.state_dict().items()}
            best.append({name: value.clone() for name, value in state.items()})  # leaks


@leaking(share=0.093)
def buckets_made_again(run):
    """Buckets for the exchange of gradients are made anew each time the order changes, and the old list grows."""

    class Reducer:
        def __init__(self, parameters, size):
            self.parameters, self.size, self.buckets = list(parameters), size, []

        def rebuild(self):
            filled = 0
            for parameter in self.parameters:
                filled += parameter.numel()
                if filled >= self.size:
                    self.buckets.append(torch.empty(filled, device=DEVICE, dtype=torch.float16))  # leaks
                    filled = 0

        def reduce(self):
            for parameter in self.parameters:
                bucket = self.buckets[-1]
                bucket[: min(parameter.numel(), bucket.numel())].fill_(0)

    model = transformer(width=256, layers=3)
    reducer = Reducer(model.blocks.parameters(), 1 << 18)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in run.steps(48):
        if step % 8 == 0:
            reducer.rebuild()
        loss = language_loss(model, tokens(8, 128))
        loss.backward()
        reducer.reduce()
        optimizer.step()
        optimizer.zero_grad()
