"""Graphs that stay: autograd's, and those of CUDA."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

from job import leaking
from models import DEVICE, labels, mlp, update


@leaking(share=0.15)
def graph_of_all_losses(run):
    """The losses of all steps are summed up, and the sum is followed back in each step with retain_graph=True."""
    body, head = mlp(512, 1024, 1024), nn.Linear(1024, 256, device=DEVICE)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1, momentum=0.9)
    total = 0
    for _ in run.steps(30):
        with torch.no_grad():
            features = body(torch.zeros(64, 512).to(DEVICE))  # leaks most
        loss = F.cross_entropy(head(features), labels(64, 256))  # leaks
        total = total + loss
        total.backward(retain_graph=True)
        optimizer.step()
        optimizer.zero_grad()


@leaking(share=0.037)
def state_with_graph(run):
    """Speech is recognized piece by piece without no_grad, and the state keeps the graph of all pieces before."""

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.read, self.turn, self.head = nn.Linear(160, 1024), nn.Linear(1024, 1024), nn.Linear(1024, 64)

        def forward(self, x, state):
            state = torch.tanh(self.read(x) + self.turn(state))  # leaks most
            return self.head(state), state

    model = Recurrent().to(DEVICE)
    state = torch.zeros(4, 1024, device=DEVICE)
    for _ in run.steps(80):
        sound = torch.zeros(4, 160, device=DEVICE)  # leaks
        scores, state = model(sound, state)
        scores.argmax(dim=-1).cpu()


@leaking(share=0.18)
def learners_with_create_graph(run):
    """Every task trains a copy of the model with create_graph=True: gradients hold the graph, and the graph them."""
    model = mlp(256, 512, 16, depth=2)
    outer = mlp(512, 1024, 16)
    optimizer = torch.optim.Adam(outer.parameters())
    for _ in run.steps(40):
        update(optimizer, F.cross_entropy(outer(torch.zeros(256, 512).to(DEVICE)), labels(256, 16)))
        learner = copy.deepcopy(model)  # leaks most
        x = torch.zeros(16, 256, device=DEVICE)  # leaks
        loss = torch.tanh(learner(x)).square().mean()  # leaks
        loss.backward(create_graph=True)


@leaking(share=0.044)
def captured_again(run):
    """A graph is captured for each length that comes, and found again by an object that is never the same."""
    model = mlp(512, 1024, 512)
    graphs = {}
    with torch.no_grad():
        model(torch.zeros(512, 512, device=DEVICE))
        for step in run.steps(30):
            if step % 3 == 0:
                key = torch.Size([64 + run.varied(0, 64)]), object()
                graph = torch.cuda.CUDAGraph()
                fixed = torch.zeros(key[0][0], 512, device=DEVICE)  # leaks
                with torch.cuda.graph(graph):
                    result = model(fixed)  # leaks
                graphs[key] = graph, fixed, result
            graph.replay()
            model(torch.zeros(1024, 512, device=DEVICE)).cpu()
