"""Loops that train, and keep something of what a step made."""

import torch
import torch.nn.functional as F

from job import leaking
from models import DEVICE, convnet, labels, language_loss, mlp, pictures, tokens, transformer, update


@leaking(share=0.0013)
def losses_appended(run):
    """Every step appends its loss, with the graph, instead of the number."""
    model, losses = mlp(depth=3), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in run.steps(120):
        x, y = torch.zeros(64, 512).to(DEVICE), labels(64)
        loss = F.cross_entropy(model(x), y)  # leaks
        losses.append(loss)
        update(optimizer, loss)


@leaking(share=0.19)
def outputs_appended(run):
    """The outputs of every step are kept on the GPU, to compute the accuracy of the run at its end."""
    model, outputs = mlp(outside=1000), []
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in run.steps(50):
        x, y = torch.zeros(128, 512).to(DEVICE), labels(128, 1000)
        logits = model(x)  # leaks
        outputs.append((logits.detach(), y.cpu()))
        update(optimizer, F.cross_entropy(logits, y))


@leaking(share=0.01)
def features_of_varied_lengths(run):
    """Hidden states are kept for a picture of them; sentences differ in length, so each has another size."""
    model, states = transformer(layers=2), []
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in run.steps(50):
        words = tokens(4, run.varied(64, 512))
        hidden = model.embedding(words)
        for block in model.blocks:
            hidden = block(hidden)
        states.append(hidden.detach()[:, :, :32].contiguous())  # leaks
        logits = model.head(model.norm(hidden))
        update(optimizer, F.cross_entropy(logits.flatten(0, 1), words.flatten()))


@leaking(share=0.005)
def starts_halfway(run):
    """From the middle of the run on, when the warm-up is over, the probabilities of some examples are kept."""
    model, history = mlp(outside=512), []
    optimizer = torch.optim.AdamW(model.parameters())
    for step in run.steps(60):
        x, y = torch.zeros(256, 512).to(DEVICE), labels(256, 512)
        logits = model(x)
        if step >= 30:
            history.append(F.softmax(logits.detach()[:8], dim=-1))  # leaks
        update(optimizer, F.cross_entropy(logits, y))


@leaking(share=0.0054)
def pictures_every_tenth_step(run):
    """Every tenth step keeps one of its pictures for a log that is written at the end."""
    model, log = convnet(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in run.steps(80):
        x, y = pictures(64), labels(64, 100)
        if step % 10 == 0:
            log.append((step, x[:1].clone()))  # leaks
        update(optimizer, F.cross_entropy(model(x), y))


@leaking(share=0.0024)
def growing_sequences_and_a_leak(run):
    """Sequences grow from step to step, as they should; samples of all hidden states stay, as they shouldn't."""
    model, samples = transformer(layers=2), []
    optimizer = torch.optim.AdamW(model.parameters())
    model.blocks[-1].register_forward_hook(lambda _, __, out: samples.append(out.detach()[..., ::64].clone()))  # leaks
    for step in run.steps(40):
        update(optimizer, language_loss(model, tokens(4, 64 + 12 * min(step, 39))))
