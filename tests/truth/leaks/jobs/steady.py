"""Clean programs that train with a steady need, as most do."""

import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from job import clean, clean_late
from models import DEVICE, convnet, labels, language_loss, mlp, pictures, tokens, transformer, update


@clean
def varied_lengths(run):
    """Sequences have different lengths, so the free memory gets fragmented; nothing of a step stays."""
    model = transformer(layers=2)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in run.steps(50):
        update(optimizer, language_loss(model, tokens(4, run.varied(48, 640))))


@clean_late
def recorded_late(run):
    """The history begins right before the first update, which makes the optimizer's state."""
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters())
    loss = F.cross_entropy(model(torch.zeros(512, 512).to(DEVICE)), labels(512))
    run.begin()
    update(optimizer, loss)
    for _ in run.steps(40):
        update(optimizer, F.cross_entropy(model(torch.zeros(512, 512).to(DEVICE)), labels(512)))


@clean
def lazy_modules(run):
    """Heads are made when their task first comes, the last of five after three quarters of the run."""
    body, heads = mlp(512, 1024, 512), nn.ModuleDict()
    optimizer = torch.optim.SGD(body.parameters(), lr=0.1, momentum=0.9)
    for step in run.steps(60):
        task = f"task{min(step // 11, 4) if step % 11 == 0 else step % (min(step // 11, 4) + 1)}"
        if task not in heads:
            heads[task] = nn.LazyLinear(200).to(DEVICE)
            x = body(torch.zeros(2, 512, device=DEVICE))
            heads[task](x)
            optimizer.add_param_group({"params": list(heads[task].parameters())})
        x = torch.zeros(256, 512).to(DEVICE)
        update(optimizer, F.cross_entropy(heads[task](body(x)), labels(256, 200)))


@clean
def experts_used_late(run):
    """A mixture of experts uses a new expert every eight steps, whose optimizer state is made then."""
    experts = nn.ModuleList(nn.Linear(512, 512, device=DEVICE) for _ in range(6))
    head = nn.Linear(512, 64, device=DEVICE)
    optimizer = torch.optim.Adam([*experts.parameters(), *head.parameters()])
    for step in run.steps(60):
        known = min(step // 8, 5) + 1
        x = torch.zeros(256, 512).to(DEVICE)
        for expert in {step % known, known - 1}:
            x = x + F.gelu(experts[expert](x))
        update(optimizer, F.cross_entropy(head(x), labels(256, 64)))


@clean
def two_players(run):
    """A generator and a critic take turns, each with an optimizer of its own."""
    generator = nn.Sequential(
        nn.Linear(64, 128 * 16), nn.Unflatten(1, (128, 4, 4)), nn.ConvTranspose2d(128, 64, 4, 2, 1), nn.ReLU(),
        nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh(),
    ).to(DEVICE)
    critic = convnet((32, 64), classes=1)
    first, second = (torch.optim.Adam(model.parameters()) for model in (critic, generator))
    for step in run.steps(45):
        made = generator(torch.randn(96, 64, device=DEVICE))
        update(first, F.softplus(critic(made.detach())).mean() + F.softplus(-critic(pictures(96, 16))).mean())
        if step % 3 == 2:
            update(second, F.softplus(-critic(made)).mean())


@clean
def checkpointed(run):
    """Activations are computed again in the backward pass."""
    model = transformer(layers=4)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in run.steps(20):
        words = tokens(4, 256)
        x = model.embedding(words)
        for block in model.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        update(optimizer, F.cross_entropy(model.head(model.norm(x)).flatten(0, 1), words.flatten()))


@clean
def loss_scaling(run):
    """Half precision with a scaler of losses, which keeps a few numbers on the GPU."""
    model = convnet((64, 128, 256))
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), torch.amp.GradScaler("cuda")
    for _ in run.steps(40):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.cross_entropy(model(pictures(64)), labels(64, 100))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


@clean
def prefetched(run):
    """Three batches are on their way to the GPU ahead of the one in use, on a stream of their own."""
    model, side, ahead = convnet(), torch.cuda.Stream(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in run.steps(50):
        while len(ahead) < 3:
            with torch.cuda.stream(side):
                ahead.append(torch.zeros(64, 3, 48, 48).to(DEVICE, non_blocking=True))
        torch.cuda.current_stream().wait_stream(side)
        x = ahead.pop(0)
        x.record_stream(torch.cuda.current_stream())
        update(optimizer, F.cross_entropy(model(x), labels(64, 100)))


@clean
def averaged_weights(run):
    """Stochastic weight averaging from the middle of the run; an evaluation of the average ends it."""
    model = convnet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    average = None
    for step in run.steps(60):
        update(optimizer, F.cross_entropy(model(pictures(48)), labels(48, 100)))
        if step == 30:
            average = torch.optim.swa_utils.AveragedModel(model)
        elif step > 30 and step % 5 == 0:
            average.update_parameters(model)
        if step == 58:
            with torch.no_grad():
                average.eval()(pictures(96)).argmax(dim=1).cpu()


@clean
def teacher_and_student(run):
    """A student learns from the moving average of itself, with two views of each batch."""
    student = convnet(classes=256)
    teacher = copy.deepcopy(student).requires_grad_(False)
    optimizer, center = torch.optim.AdamW(student.parameters()), torch.zeros(256, device=DEVICE)
    for _ in run.steps(40):
        x = pictures(64)
        with torch.no_grad():
            wanted = teacher(x.flip(-1))
            center = 0.9 * center + 0.1 * wanted.mean(dim=0)
            wanted = F.softmax(wanted - center, dim=1)
        update(optimizer, -(wanted * student(x).log_softmax(dim=1)).sum(dim=1).mean())
        torch._foreach_lerp_(list(teacher.parameters()), [p.detach() for p in student.parameters()], 0.004)
