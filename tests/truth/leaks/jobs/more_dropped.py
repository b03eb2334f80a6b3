"""Programs that keep only what they need."""

import copy
import random

import torch
import torch.nn.functional as F
from torch import nn

from job import clean
from models import DEVICE, convnet, labels, language_loss, mlp, pictures, tokens, transformer, update


@clean
def search(run):
    """A search trains one model after another, each wider than the last, and drops it before the next."""
    for trial in run.steps(8):
        model = mlp(256, 128 * (1 + trial % 8), 10)
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(12):
            update(optimizer, F.cross_entropy(model(torch.zeros(256, 256).to(DEVICE)), labels(256)))
        del model, optimizer


@clean
def best_model(run):
    """The best weights are copied whenever the model gets better, and replace those before."""
    model, best, r = transformer(width=256, layers=2), None, random.Random(12)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in run.steps(50):
        update(optimizer, language_loss(model, tokens(4, 128)))
        if step >= 15 and r.random() < 0.2 or step == 15:
            best = copy.deepcopy(model.state_dict())
    del best


@clean
def rollouts(run):
    """An agent collects observations for 16 steps, learns, and drops them; the history ends within a rollout."""
    model, seen = mlp(1024, 512, 8), []
    optimizer = torch.optim.Adam(model.parameters())
    for step in run.steps(92):
        with torch.no_grad():
            x = torch.zeros(32, 1024).to(DEVICE)
            seen.append((x, model(x).log_softmax(dim=1)))
        if len(seen) == 16:
            for _ in range(3):
                x, before = (torch.cat(parts) for parts in zip(*seen))
                update(optimizer, (model(x).log_softmax(dim=1) - before).exp().mean())
            seen.clear()


@clean
def last_evaluation(run):
    """The history ends in the middle of the evaluation after the training, which collects outputs on the GPU."""
    model, outputs = mlp(512, 1024, 1000), []
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(40):
        update(optimizer, F.cross_entropy(model(torch.zeros(512, 512).to(DEVICE)), labels(512, 1000)))
        if step % 20 == 19:
            with torch.no_grad():
                torch.cat([model(torch.zeros(256, 512).to(DEVICE)) for _ in range(12)]).argmax(dim=1).cpu()
    with torch.no_grad():
        for _ in run.steps(10):
            outputs.append(model(torch.zeros(256, 512).to(DEVICE)))
            if len(outputs) == 12:
                torch.cat(outputs).argmax(dim=1).cpu()
                outputs.clear()


@clean
def students_grow(run):
    """The student is made larger twice, from the weights of the one before, which is dropped."""
    teacher, width = mlp(512, 2048, 64, depth=5), 256
    for step in run.steps(60):
        if step % 20 == 0 and step < 60:
            student = mlp(512, width, 64)
            optimizer = torch.optim.AdamW(student.parameters())
            width *= 2
        x = torch.zeros(256, 512).to(DEVICE)
        with torch.no_grad():
            wanted = teacher(x).softmax(dim=1)
        update(optimizer, F.kl_div(student(x).log_softmax(dim=1), wanted, reduction="batchmean"))


@clean
def growing_pictures(run):
    """The resolution of the pictures grows in four phases; each phase keeps one batch on the GPU for its evaluation."""
    model, evaluated = convnet(), None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in run.steps(60):
        side = 32 + 16 * (min(step, 59) // 15)
        if step % 15 == 0:
            evaluated = pictures(32, side)
        update(optimizer, F.cross_entropy(model(pictures(64, side)), labels(64, 100)))
        if step % 15 == 14:
            with torch.no_grad():
                model(evaluated).argmax(dim=1).cpu()


@clean
def examples_of_tasks(run):
    """Continual learning keeps examples of all tasks within one limit: with each new task, old ones give up some."""
    model, memory = convnet((32, 64)), {}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in run.steps(72):
        task = min(step // 12, 5)
        if step % 12 == 0:
            memory[task] = pictures(240 // (task + 1))
            for old in memory:
                memory[old] = memory[old][: 240 // len(memory)].clone()
        old = torch.cat([examples[:8] for examples in memory.values()])
        x = torch.cat([pictures(32), old])
        update(optimizer, F.cross_entropy(model(x), labels(len(x), 100)))


@clean
def shuffle_buffer(run):
    """A stream of data is shuffled in a buffer of 32 batches on the GPU, which is filled before and while training."""
    model, buffer, r = convnet(), [], random.Random(3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in run.steps(70):
        while len(buffer) < 33:
            buffer.append(pictures(32))
            if len(buffer) % 8 == 0:
                break
        x = buffer.pop(r.randrange(len(buffer)))
        update(optimizer, F.cross_entropy(model(x), labels(32, 100)))


@clean
def experts_loaded_while_serving(run):
    """Requests are answered from the start while the rest of the weights arrive; the last part comes at the end."""
    parts = []
    with torch.inference_mode():
        for step in run.steps(40):
            if len(parts) < 40:
                parts.append(nn.Linear(512, 512, device=DEVICE))
            x = torch.zeros(run.varied(8, 200), 512, device=DEVICE)
            for part in parts:
                x = F.gelu(part(x))
            x.argmax(dim=1).cpu()


@clean
def history_of_lbfgs(run):
    """L-BFGS keeps the last 12 directions, each as large as the model; they are complete after a dozen updates."""
    model = mlp(256, 512, 10, depth=3)
    options = {"max_iter": 1, "history_size": 12, "tolerance_grad": -1, "tolerance_change": -1}
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, **options)

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(torch.zeros(128, 256, device=DEVICE)), labels(128))
        loss.backward()
        return loss

    for _ in run.steps(40):
        optimizer.step(closure)


@clean
def rounds_of_clients(run):
    """Federated learning: a round trains three copies of the model, averages them, and drops them."""
    model = mlp(256, 512, 10)
    for step in run.steps(30):
        clients = []
        for _ in range(1 + step % 3):
            client = copy.deepcopy(model)
            optimizer = torch.optim.SGD(client.parameters(), lr=0.1, momentum=0.9)
            for _ in range(2):
                update(optimizer, F.cross_entropy(client(torch.zeros(64, 256, device=DEVICE)), labels(64)))
            clients.append(client)
        with torch.no_grad():
            for mean, *values in zip(model.parameters(), *(client.parameters() for client in clients)):
                mean.copy_(torch.stack(values).mean(dim=0))


@clean
def beams_that_end(run):
    """Beam search keeps the scores of each word until the sentence ends; the history ends within a sentence."""
    model = mlp(256, 1024, 1024)
    with torch.inference_mode():
        for step in run.steps(85):
            if step % 25 == 0:
                words, total = [], torch.zeros(6, 1, device=DEVICE)
            scores = model(torch.zeros(6, 256, device=DEVICE)).log_softmax(dim=-1)
            total, places = (total + scores).flatten().topk(6)
            total = total[:, None]
            words.append((scores[places // 1024], places % 1024))
