"""Programs that keep too much."""

import concurrent.futures

import torch
import torch.nn.functional as F
from torch import nn

from job import leaking
from models import DEVICE, convnet, labels, mlp, pictures, tokens, transformer, update


@leaking(share=0.015)
def thumbnails_of_a_stream(run):
    """A detector without any end keeps a thumbnail of each frame with a person in it."""
    model, found = convnet().eval(), []
    with torch.no_grad():
        for frame in run.steps(80):
            x = pictures(4, 224)
            model(x).amax(dim=1).cpu()
            if frame % 3 == 1:
                found.append(F.interpolate(x[:1], size=(48, 48)))  # leaks


@leaking(share=0.078)
def penalty_with_graph(run):
    """A penalty on gradients is averaged over the run without detach, so every step's second graph stays."""

    class Critic(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.outer = nn.Linear(256, 1024), nn.Linear(1024, 1)

        def forward(self, x):
            return self.outer(F.softplus(self.inner(x)))  # leaks most

    model, average = Critic().to(DEVICE), 0
    optimizer = torch.optim.Adam(model.parameters())
    for _ in run.steps(40):
        update(optimizer, F.softplus(model(torch.zeros(2048, 256, device=DEVICE))).mean())
        mixed = torch.zeros(32, 256, device=DEVICE, requires_grad=True)  # leaks
        (slope,) = torch.autograd.grad(model(mixed).sum(), mixed, create_graph=True)
        average = 0.99 * average + 0.01 * slope.square().mean()  # leaks


@leaking(share=0.0014)
def loss_of_each_example(run):
    """The losses of all examples are kept for a later look at the hardest ones."""
    model, hardest = convnet(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in run.steps(60):
        x, y = pictures(256, 16), labels(256, 100)
        losses = F.cross_entropy(model(x), y, reduction="none")
        hardest.append(losses.detach() * 1.0)  # leaks
        update(optimizer, losses.mean())


@leaking(share=0.0062)
def gradients_of_tasks(run):
    """The importance of each weight is kept for every batch instead of being summed up."""
    model, importance = mlp(512, 512, 20), {}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in run.steps(50):
        loss = F.cross_entropy(model(torch.zeros(1024, 512).to(DEVICE)), labels(1024, 20))
        loss.backward()
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                importance[name, step] = parameter.grad.square()  # leaks
        optimizer.step()
        optimizer.zero_grad()


@leaking(share=0.045)
def maps_of_attention(run):
    """An attention layer keeps its weights of all batches, to draw them later."""

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v = (nn.Linear(256, 256) for _ in range(3))
            self.maps = []

        def forward(self, x):
            weights = torch.softmax(self.q(x) @ self.k(x).transpose(1, 2) / 16, dim=-1)
            self.maps.append(weights.detach().mean(0))  # leaks
            return weights @ self.v(x)

    model = nn.Sequential(nn.Linear(64, 256), Attention(), nn.GELU(), Attention(), nn.Linear(256, 10)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in run.steps(40):
        x = torch.zeros(24, run.varied(64, 160), 64, device=DEVICE)
        update(optimizer, model(x).square().mean())


@leaking(share=0.15)
def latents_of_a_sampler(run):
    """A diffusion sampler returns all intermediate pictures beside the last, and the gallery keeps them."""
    model = nn.Sequential(nn.Conv2d(4, 64, 3, 1, 1), nn.SiLU(), nn.Conv2d(64, 4, 3, 1, 1)).to(DEVICE)

    def sample(number, turns):
        x, path = torch.randn(number, 4, 32, 32, device=DEVICE), []
        for turn in range(turns):
            x = x - 0.1 * model(x)  # leaks
            if turn % 4 == 0:
                path.append(x)
        return x, path

    gallery = []
    with torch.no_grad():
        for _ in run.steps(24):
            x, path = sample(4, 16)
            gallery.append({"picture": x.cpu(), "path": path})


@leaking(share=0.043)
def adapters_never_evicted(run):
    """A server loads an adapter for each customer it sees, and has no limit for how many."""
    base, adapters, r = mlp(1024, 1024, 1024, depth=6).eval(), {}, torch.Generator().manual_seed(5)

    def load(customer):
        parts = [torch.zeros(1024, 8), torch.zeros(8, 1024)]
        adapters[customer] = [part.to(DEVICE, non_blocking=True) for part in parts]  # leaks

    with torch.inference_mode():
        for request in run.steps(100):
            customer = int(torch.randint(3 + 2 * request // 3, (1,), generator=r))
            if customer not in adapters:
                load(customer)
            down, up = adapters[customer]
            x = torch.zeros(run.varied(1, 64), 1024, device=DEVICE)
            (base(x) + x @ down @ up).argmax(dim=1).cpu()


@leaking(share=0.12)
def trials_kept(run):
    """A search over learning rates keeps the model of each trial on the GPU, to compare them at the end."""
    trials = {}
    for trial in run.steps(16):
        model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10))
        model.to(DEVICE)  # leaks
        optimizer = torch.optim.SGD(model.parameters(), lr=10**-trial)
        for _ in range(12):
            loss = F.cross_entropy(model(torch.zeros(4096, 256).to(DEVICE)), labels(4096))
            update(optimizer, loss)
        trials[trial] = (loss.item(), model)


@leaking(share=0.034)
def tree_of_prefixes(run):
    """A cache of prompts by prefix is a tree, whose nodes count their users and are not dropped at zero."""
    model = transformer(width=256, layers=3).eval()

    class Node:
        def __init__(self, length):
            self.users, self.children = 0, {}
            self.keys = torch.zeros(3, 2, length, 256, dtype=torch.float16, device=DEVICE)  # leaks

    root = Node(64)
    with torch.inference_mode():
        for request in run.steps(40):
            path = [root]
            for depth in range(1 + request % 2):
                place = request if depth else request // 4
                if place not in path[-1].children:
                    path[-1].children[place] = Node(run.varied(8, 48, of=depth))
                path.append(path[-1].children[place])
                path[-1].users += 1
            for _ in range(3):
                model(tokens(6, 64)).argmax(dim=-1)
            for node in path[1:]:
                node.users -= 1


@leaking(share=0.028)
def teacher_by_example(run):
    """The teacher's outputs are stored by step and augmentation, a key that never comes again."""
    teacher, student, known = convnet((64, 128, 256), 200).eval(), convnet(classes=200), {}
    optimizer = torch.optim.AdamW(student.parameters())
    for step in run.steps(50):
        x, key = pictures(48), (step, "augmented")
        if key not in known:
            with torch.no_grad():
                known[key] = teacher(x).softmax(dim=1)  # leaks
        update(optimizer, F.kl_div(student(x).log_softmax(dim=1), known[key], reduction="batchmean"))


@leaking(share=0.012)
def samples_of_each_epoch(run):
    """After each epoch the generator draws the same noise again, and the pictures of all epochs stay for a film."""
    generator = nn.Sequential(
        nn.Linear(64, 128 * 16), nn.Unflatten(1, (128, 4, 4)), nn.ConvTranspose2d(128, 64, 4, 2, 1), nn.ReLU(),
        nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh(),
    ).to(DEVICE)
    critic = convnet((32, 64), classes=1)
    first, second = (torch.optim.Adam(model.parameters()) for model in (critic, generator))
    noise, film = torch.randn(32, 64, device=DEVICE), []
    for step in run.steps(60):
        made = generator(torch.randn(128, 64, device=DEVICE))
        update(first, F.softplus(critic(made.detach())).mean() + F.softplus(-critic(pictures(128, 16))).mean())
        update(second, F.softplus(-critic(made)).mean())
        if step % 10 == 9:
            with torch.no_grad():
                film.append(generator(noise))  # leaks


@leaking(share=0.065)
def futures_kept(run):
    """A server answers in a pool of threads, and a list of futures, made to wait for the last, keeps every result."""
    model, pool, futures = convnet((64, 128), classes=1000).eval(), concurrent.futures.ThreadPoolExecutor(1), []

    def answer(number):
        with torch.inference_mode():
            scores = model(pictures(number))
            return scores.softmax(dim=1)  # leaks

    for _ in run.steps(60):
        futures.append(pool.submit(answer, run.varied(1, 32)))
        concurrent.futures.wait(futures[-1:])
