"""Clean programs that collect something, and drop it when a phase ends."""

import torch
import torch.nn.functional as F
from torch import nn

from job import clean
from models import DEVICE, convnet, labels, language_loss, mlp, pictures, tokens, transformer, update


@clean
def losses_of_an_epoch(run):
    """Losses of all examples are kept until the epoch ends; the history ends late in the third epoch."""
    model, losses = mlp(), []
    optimizer = torch.optim.AdamW(model.parameters())
    for step in run.steps(58):
        if step % 20 == 0:
            losses = []
        x, y = torch.zeros(2048, 512).to(DEVICE), labels(2048)
        each = F.cross_entropy(model(x), y, reduction="none")
        losses.append(each.detach().clone())
        update(optimizer, each.mean())


@clean
def metric_of_an_epoch(run):
    """A metric collects scores and is reset after each epoch; the history ends shortly before such a reset."""

    class Precision:
        def __init__(self):
            self.scores = []

        def update(self, scores):
            self.scores.append(scores.detach().softmax(dim=1))

        def compute(self):
            value = torch.cat(self.scores).amax(dim=1).mean().cpu()
            self.scores = []
            return value

    model, metric = convnet(classes=1000), Precision()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in run.steps(58):
        logits = model(pictures(64, 48))
        metric.update(logits)
        update(optimizer, F.cross_entropy(logits, labels(64, 1000)))
        if step % 15 == 14:
            metric.compute()


@clean
def evaluation_collects(run):
    """Each evaluation collects all its outputs, computes a number from them, and drops them."""
    model = convnet(classes=500)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def evaluate():
        outputs = []
        with torch.no_grad():
            for _ in range(10):
                outputs.append(model(pictures(64, 48)))
        return torch.cat(outputs).argmax(dim=1).float().mean().cpu()

    for step in run.steps(50):
        update(optimizer, F.cross_entropy(model(pictures(64, 48)), labels(64, 500)))
        if step % 10 == 9:
            evaluate()


@clean
def accumulation(run):
    """Gradients of eight small batches are added up before each update, and are freed by it."""
    model = transformer(width=256, layers=2)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in run.steps(45):
        (language_loss(model, tokens(2, 128)) / 8).backward()
        if step % 8 == 7:
            optimizer.step()
            optimizer.zero_grad()


@clean
def truncated_backward(run):
    """A recurrent network is trained on pieces of 12 steps: the graph grows within a piece and ends with it."""
    cell, head = nn.GRUCell(256, 512).to(DEVICE), nn.Linear(512, 64, device=DEVICE)
    optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()])
    state, losses = torch.zeros(128, 512, device=DEVICE), []
    for step in run.steps(80):
        state = cell(torch.zeros(128, 256, device=DEVICE), state)
        losses.append(F.cross_entropy(head(state), labels(128, 64)))
        if len(losses) == 12:
            update(optimizer, torch.stack(losses).mean())
            state, losses = state.detach(), []


@clean
def inner_loops(run):
    """Meta-learning: three inner steps with their graph for each task, which end with the outer update."""
    model = nn.Sequential(nn.Linear(128, 256), nn.Tanh(), nn.Linear(256, 10)).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())

    def loss_of(weights):
        x = torch.zeros(64, 128, device=DEVICE)
        return torch.func.functional_call(model, weights, (x,)).square().mean()

    for _ in run.steps(40):
        total = 0
        for _ in range(2):
            weights = dict(model.named_parameters())
            for _ in range(3):
                gradients = torch.autograd.grad(loss_of(weights), weights.values(), create_graph=True)
                weights = {name: value - 0.1 * grad for (name, value), grad in zip(weights.items(), gradients)}
            total = total + loss_of(weights)
        update(optimizer, total)
