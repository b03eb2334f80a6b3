"""Clean programs whose memory grows, for a while or to the end, since what they do grows."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

from job import clean
from models import DEVICE, convnet, labels, language_loss, mlp, pictures, tokens, transformer, update


@clean
def curriculum(run):
    """The length of the sequences grows until the run ends, and with it what a step needs."""
    model = transformer(layers=2)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in run.steps(40):
        update(optimizer, language_loss(model, tokens(4, 64 + 12 * min(step, 39))))


@clean
def growing_batch(run):
    """The batch grows every ten steps, as a schedule for the noise of gradients wants it."""
    model = convnet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in run.steps(60):
        batch = 16 * (1 + min(step, 59) // 10)
        x, y = pictures(batch), labels(batch, 100)
        update(optimizer, F.cross_entropy(model(x), y))


@clean
def unfreezing(run):
    """Layers are unfrozen one by one, from the last to the first: each has gradients and a state from then on."""
    layers = [nn.Sequential(nn.Linear(768, 768), nn.GELU()) for _ in range(8)]
    model = nn.Sequential(*layers, nn.Linear(768, 50)).to(DEVICE).requires_grad_(False)
    optimizer = torch.optim.AdamW([p.requires_grad_() for p in model[-1].parameters()])
    for step in run.steps(64):
        if step % 8 == 7 and step < 64:
            parameters = list(model[7 - step // 8].requires_grad_().parameters())
            optimizer.add_param_group({"params": parameters})
        loss = F.cross_entropy(model(torch.zeros(128, 768).to(DEVICE)), labels(128, 50))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)


@clean
def layers_added(run):
    """The model is trained layer by layer: four times a layer is added before the head, and a new optimizer made."""
    body, head = nn.Sequential(), nn.Linear(512, 32, device=DEVICE)
    for step in run.steps(60):
        if step % 15 == 0 and step < 60:
            body.append(nn.Sequential(nn.Linear(512, 512), nn.ReLU()).to(DEVICE))
            optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()])
        x = torch.zeros(256, 512).to(DEVICE)
        update(optimizer, F.cross_entropy(head(body(x)), labels(256, 32)))


@clean
def table_resized(run):
    """An embedding table grows three times, as new words come, and then has its final size."""
    words, table = 2000, nn.Embedding(2000, 256, device=DEVICE)
    head = mlp(256, 512, 64)
    for step in run.steps(60):
        if step in (10, 20, 35):
            words *= 2
            larger = nn.Embedding(words, 256, device=DEVICE)
            with torch.no_grad():
                larger.weight[: words // 2] = table.weight
            table = larger
        if step in (0, 10, 20, 35):
            optimizer = torch.optim.Adam([*table.parameters(), *head.parameters()])
        x = table(tokens(256, 8, words)).mean(dim=1)
        update(optimizer, F.cross_entropy(head(x), labels(256, 64)))


@clean
def generation_goes_on(run):
    """The history ends in the middle of an answer, while its KV cache still grows by a word in each step."""
    model = nn.ModuleList(nn.Linear(512, 1536, device=DEVICE, dtype=torch.bfloat16) for _ in range(4))
    with torch.inference_mode():
        for step in run.steps(170):
            if step % 60 == 20:
                caches = [torch.zeros(8, 16, 1024, device=DEVICE, dtype=torch.bfloat16) for _ in model]
            elif step < 20:
                continue
            x = torch.zeros(8, 1, 512, device=DEVICE, dtype=torch.bfloat16)
            for number, layer in enumerate(model):
                q, kv = layer(x).split([512, 1024], dim=-1)
                caches[number] = torch.cat([caches[number], kv], dim=1)
                k, v = caches[number].chunk(2, dim=-1)
                x = F.softmax(q @ k.transpose(1, 2), dim=-1) @ v


@clean
def one_long_generation(run):
    """A single long answer: the KV cache grows by chunks to the end of the history, and is dropped later."""
    model = mlp(256, 1024, 512).to(torch.bfloat16)
    keys, longest = [], 90
    with torch.inference_mode():
        for step in run.steps(60):
            if len(keys) == longest:
                keys.clear()
            hidden = model(torch.zeros(4, 256, device=DEVICE, dtype=torch.bfloat16))
            keys.append(hidden[:, None])
            torch.cat(keys, dim=1).mean(dim=1).argmax(dim=-1).cpu()


@clean
def averages_made_late(run):
    """Averaged weights are made at three quarters of the run, and copies of the last two epochs are kept."""
    model, average, best = mlp(512, 1024, 10), None, []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in run.steps(60):
        update(optimizer, F.cross_entropy(model(torch.zeros(512, 512).to(DEVICE)), labels(512)))
        if step == 45:
            average = copy.deepcopy(model).requires_grad_(False)
        elif step > 45:
            torch._foreach_lerp_(list(average.parameters()), [p.detach() for p in model.parameters()], 0.01)
        if step % 10 == 9:
            best = [*best, copy.deepcopy(model.state_dict())][-2:]
