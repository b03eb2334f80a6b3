"""Hooks that keep what they see, and hooks that are registered too often."""

import torch
import torch.nn.functional as F
from torch import nn

from job import leaking
from models import DEVICE, convnet, labels, language_loss, mlp, pictures, tokens, transformer, update


@leaking(share=0.19)
def activations_of_a_hook(run):
    """A forward hook stores the activations of one layer in each step."""
    model, stored = mlp(), []

    def keep(module, inputs, output):
        stored.append(output.detach().clone())  # leaks

    model[2].register_forward_hook(keep)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in run.steps(40):
        update(optimizer, F.cross_entropy(model(torch.zeros(128, 512).to(DEVICE)), labels(128)))


@leaking(share=0.002)
def hooks_registered_again(run):
    """Every step registers hooks again, each with statistics of its own, and none is removed."""
    model = convnet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def watch(layer):
        statistics = torch.zeros(2, layer.out_channels, device=DEVICE)  # leaks

        def add(module, inputs, output):
            statistics[0] += output.detach().mean((0, 2, 3))

        layer.register_forward_hook(add)

    for _ in run.steps(40):
        for layer in model:
            if isinstance(layer, nn.Conv2d):
                watch(layer)
        update(optimizer, F.cross_entropy(model(pictures(32, 32)), labels(32, 100)))


@leaking(share=0.049)
def gradients_of_a_hook(run):
    """A hook on a weight copies each of its gradients into a list, in the thread of the backward pass."""
    model, seen = transformer(width=256, layers=2), []
    model.blocks[0].attention.out.weight.register_hook(lambda grad: seen.append(grad.clone()))  # leaks
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in run.steps(50):
        update(optimizer, language_loss(model, tokens(4, 256)))


@leaking(share=0.0072)
def log_of_activations(run):
    """A log for TensorBoard keeps histograms' inputs of all layers every fifth step, and writes them at the end."""

    class Writer:
        def __init__(self):
            self.histograms = []

        def add_histogram(self, tag, values, step):
            self.histograms.append((tag, values.detach().flatten()[::64].contiguous(), step))  # leaks

    model, writer, seen = mlp(depth=6), Writer(), {}
    for name, layer in model.named_modules():
        if isinstance(layer, nn.ReLU):
            layer.register_forward_hook(lambda _, __, out, name=name: seen.__setitem__(name, out))
    optimizer = torch.optim.Adam(model.parameters())
    for step in run.steps(60):
        update(optimizer, F.cross_entropy(model(torch.zeros(256, 512).to(DEVICE)), labels(256)))
        if step % 5 == 0:
            for name, values in seen.items():
                writer.add_histogram(name, values, step)


@leaking(share=0.0081)
def many_small_statistics(run):
    """Each step keeps 36 small tensors: the mean squares of the gradients of all weights in the blocks."""
    model, history = transformer(width=256, layers=3), []
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in run.steps(40):
        loss = language_loss(model, tokens(4, 128))
        loss.backward()
        with torch.no_grad():
            rows = [parameter.grad.square().mean(-1) for parameter in model.blocks.parameters()]  # leaks
        history.append(rows)
        optimizer.step()
        optimizer.zero_grad()
