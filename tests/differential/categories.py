#!/usr/bin/env python3
"""Compares the categories that Vramscope tells with those of jobs in which the role of every tensor is known.

    categories.py [--release 2.11] [--keep] [--fixtures] [JOB...]

Each job trains (or serves) a small model with an official PyTorch release without a GPU (see `environment.py`), and
writes a snapshot and the truth: by hooks and `data_ptr`, the role of each tensor and when it had it. The program
`shared/session/examples/categories.rs` tells the categories of the snapshot alone, and compares them at the peak, byte by byte.
The files are in `target/differential/categories`; with `--keep`, those of an earlier run are used. With `--fixtures`,
the smaller snapshots and the roles at their peaks become the fixtures of `shared/session/tests/properties/categories.rs`. The table is that
of `shared/analysis/src/category/CATEGORIES.md`. DETAIL=1 lists what is wrong.
"""

import contextlib
import gzip
import json
import os
import pathlib
import pickle
import subprocess
import sys
import time

import held_out

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "target/differential/categories"
FIXTURES = ROOT / "shared/session/tests/fixtures/categories"
# Jobs whose snapshots are small enough to keep.
SMALL = ("mlp", "cnn", "gan", "gpt_late")

# Job: what the table says about it.
JOBS = {
    "mlp": "SGD with momentum, `set_to_none=False`",
    "gpt": "AdamW, 2 micro-batches a step",
    "gpt_bf16": "bf16 autocast, Adam, `set_to_none=False`",
    "gpt_checkpointed": "activation checkpointing, AdamW",
    "gpt_late": "AdamW, recording begun in the third step",
    "cnn": "fp16 autocast with a gradient scaler, SGD with momentum",
    "lstm": "Adam, gradients clipped, `set_to_none=False`",
    "gan": "two optimizers (Adam)",
    "serving": "inference with a KV cache that grows by concatenation",
    **held_out.JOBS,
}


class Truth:
    """The roles of tensors: time, address of the storage, role. It keeps no tensor alive and allocates nothing."""

    def __init__(self):
        self.records, self.phases, self.fixed = [], [], set()

    def role(self, role, *tensors):
        now = time.time_ns() // 1000
        for tensor in tensors:
            if tensor is None or not tensor.is_cuda:
                continue
            address = tensor.untyped_storage().data_ptr()
            if role == "activations" and address in self.fixed:
                continue
            if role in ("parameters", "optimizer_state"):
                self.fixed.add(address)
            self.records.append([now, address, role])

    def phase(self, phase):
        self.phases.append([time.time_ns() // 1000, phase])

    def watch(self, module):
        """Records the parameters of a module, their gradients as they are made, and the results of each layer."""

        def tensors(value):
            if hasattr(value, "untyped_storage"):
                yield value
            elif isinstance(value, (tuple, list)):
                for item in value:
                    yield from tensors(item)

        self.role("parameters", *module.parameters(), *module.buffers())
        for parameter in module.parameters():
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(lambda p: self.role("gradients", p.grad))
        for layer in module.modules():
            layer.register_forward_hook(lambda _, __, out: self.role("activations", *tensors(out)))

    def stepped(self, optimizer):
        for state in optimizer.state.values():
            self.role("optimizer_state", *(v for v in state.values() if hasattr(v, "is_cuda")))

    @contextlib.contextmanager
    def saved(self):
        """Records what the forward pass keeps for the backward pass."""
        import torch

        def pack(tensor):
            self.role("activations", tensor)
            return tensor.detach()

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            yield


def gpt(torch, width=768, layers=6, checkpointed=False):
    # The kernels of `scaled_dot_product_attention` need a device in the backward pass.
    nn, F = torch.nn, torch.nn.functional

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x, cache=None):
            batch, length, _ = x.shape
            q, k, v = self.qkv(x).view(batch, length, 3, 12, width // 12).permute(2, 0, 3, 1, 4)
            if cache is not None:
                k, v = cache.append(k, v)
            scores = (q @ k.transpose(-2, -1)) * k.shape[-1] ** -0.5
            y = F.softmax(scores, -1) @ v
            return self.out(y.transpose(1, 2).reshape(batch, length, width))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.attention = nn.LayerNorm(width), Attention()
            self.norm2 = nn.LayerNorm(width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x, cache=None):
            x = x + self.attention(self.norm1(x), cache)
            return x + self.mlp(self.norm2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(16384, width), nn.Embedding(1024, width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 16384, bias=False)

        def forward(self, ids, caches=None):
            x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
            for i, block in enumerate(self.blocks):
                if checkpointed:
                    x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
                else:
                    x = block(x, caches[i] if caches else None)
            return self.head(self.norm(x))

    return GPT()


def train(torch, truth, model, make_optimizer, batch, loss_of, steps=4, micro=1, to_none=True, amp=None, clip=False, at=None):
    """A training loop, as programs have it."""
    model = model.to("cuda")
    truth.watch(model)
    optimizer = make_optimizer(model.parameters())
    scaler = torch.amp.GradScaler("cuda") if amp == torch.float16 else None
    for step in range(steps):
        if at and step == at:
            record(torch)
        for _ in range(micro):
            data = [x.to("cuda") for x in batch()]
            truth.role("inputs", *data)
            truth.phase("forward")
            with truth.saved(), torch.autocast("cuda", dtype=amp, enabled=amp is not None):
                loss = loss_of(model, *data) / micro
            truth.role("activations", loss)
            truth.phase("backward")
            (scaler.scale(loss) if scaler else loss).backward()
        truth.phase("optimizer")
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if scaler:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
        truth.stepped(optimizer)
        optimizer.zero_grad(set_to_none=to_none)


def run_mlp(torch, truth):
    nn = torch.nn
    layers = [layer for _ in range(6) for layer in (nn.Linear(2048, 2048), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(2048, 10))
    batch = lambda: (torch.zeros(4096, 2048), torch.zeros(4096, dtype=torch.long))
    loss = lambda model, x, y: nn.functional.cross_entropy(model(x), y)
    train(torch, truth, model, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), batch, loss, to_none=False)


def language(torch, truth, model, make_optimizer, **options):
    # With more tokens, the gradient of an embedding is sorted by kernels that need a device.
    batch = lambda: (torch.zeros(4, 512, dtype=torch.long), torch.zeros(4, 512, dtype=torch.long))
    loss = lambda model, x, y: torch.nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
    train(torch, truth, model, make_optimizer, batch, loss, **options)


def run_gpt(torch, truth):
    language(torch, truth, gpt(torch), lambda p: torch.optim.AdamW(p, lr=1e-3), micro=2)


def run_gpt_bf16(torch, truth):
    language(torch, truth, gpt(torch), lambda p: torch.optim.Adam(p), amp=torch.bfloat16, to_none=False)


def run_gpt_checkpointed(torch, truth):
    language(torch, truth, gpt(torch, checkpointed=True), lambda p: torch.optim.AdamW(p, lr=1e-3))


def run_gpt_late(torch, truth):
    language(torch, truth, gpt(torch), lambda p: torch.optim.AdamW(p, lr=1e-3), steps=6, at=2)


def run_cnn(torch, truth):
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, inside, outside, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
            self.norm1 = nn.BatchNorm2d(outside)
            self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
            self.norm2 = nn.BatchNorm2d(outside)
            self.short = nn.Conv2d(inside, outside, 1, stride, bias=False)

        def forward(self, x):
            y = F.relu(self.norm1(self.conv1(x)))
            return F.relu(self.norm2(self.conv2(y)) + self.short(x))

    sizes = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
    blocks = [Block(*size) for size in sizes]
    model = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))
    batch = lambda: (torch.zeros(64, 3, 128, 128), torch.zeros(64, dtype=torch.long))
    loss = lambda model, x, y: F.cross_entropy(model(x), y)
    train(torch, truth, model, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), batch, loss, amp=torch.float16)


def run_lstm(torch, truth):
    nn = torch.nn

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.cell = nn.Embedding(32768, 512), nn.LSTMCell(512, 1024)
            self.head = nn.Linear(1024, 256)

        def forward(self, ids):
            x = self.embedding(ids)
            h = c = torch.zeros(ids.shape[0], 1024, device=ids.device)
            states = []
            for t in range(ids.shape[1]):
                h, c = self.cell(x[:, t], (h, c))
                states.append(h)
            return self.head(torch.stack(states, 1))

    batch = lambda: (torch.zeros(64, 48, dtype=torch.long), torch.zeros(64, 48, dtype=torch.long))
    loss = lambda model, x, y: nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
    train(torch, truth, Tagger(), lambda p: torch.optim.Adam(p), batch, loss, to_none=False, clip=True)


def run_gan(torch, truth):
    nn, F = torch.nn, torch.nn.functional
    generator = nn.Sequential(
        nn.Linear(128, 256 * 16), nn.Unflatten(1, (256, 4, 4)),
        *(layer for i, o in ((256, 256), (256, 128), (128, 64)) for layer in (nn.ConvTranspose2d(i, o, 4, 2, 1), nn.BatchNorm2d(o), nn.ReLU())),
        nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh(),
    ).to("cuda")
    discriminator = nn.Sequential(
        *(layer for i, o in ((3, 64), (64, 128), (128, 256)) for layer in (nn.Conv2d(i, o, 4, 2, 1), nn.LeakyReLU(0.2))),
        nn.Flatten(), nn.Linear(256 * 64, 1),
    ).to("cuda")
    truth.watch(generator)
    truth.watch(discriminator)
    first, second = torch.optim.Adam(discriminator.parameters()), torch.optim.Adam(generator.parameters())
    for _ in range(4):
        real = torch.zeros(256, 3, 64, 64).to("cuda")
        noise = torch.randn(256, 128, device="cuda")
        truth.role("inputs", real, noise)
        truth.phase("forward")
        with truth.saved():
            made = generator(noise)
            loss = F.softplus(discriminator(made.detach())).mean() + F.softplus(-discriminator(real)).mean()
        truth.phase("backward")
        first.zero_grad()
        loss.backward()
        truth.phase("optimizer")
        first.step()
        truth.stepped(first)
        truth.phase("forward")
        with truth.saved():
            loss = F.softplus(-discriminator(made)).mean()
        truth.phase("backward")
        second.zero_grad()
        loss.backward()
        truth.phase("optimizer")
        second.step()
        truth.stepped(second)


def run_serving(torch, truth):
    class Cache:
        def __init__(self):
            self.k = self.v = None

        def append(self, k, v):
            self.k = k.clone() if self.k is None else torch.cat([self.k, k], 2)
            self.v = v.clone() if self.v is None else torch.cat([self.v, v], 2)
            truth.role("kv_cache", self.k, self.v)
            return self.k, self.v

    model = gpt(torch, width=768, layers=8).to("cuda", torch.bfloat16).eval()
    truth.watch(model)
    truth.phase("inference")
    with torch.inference_mode():
        for _ in range(3):
            caches = [Cache() for _ in model.blocks]
            ids = torch.zeros(16, 512, dtype=torch.long).to("cuda")
            truth.role("inputs", ids)
            for _ in range(24):
                ids = model(ids, caches)[:, -1:].argmax(-1)
                truth.role("activations", ids)


def record(torch):
    torch.cuda.memory._record_memory_history(context="all", stacks="python", max_entries=1_000_000)


def job(name, folder):
    """Runs a job in this process, and writes its snapshot and the truth."""
    import torch
    import torch.utils.checkpoint

    # The library's choice of an algorithm needs a device; PyTorch's own convolutions do not. The same holds for attention.
    torch.backends.cudnn.enabled = False
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)
    truth = Truth()
    torch.zeros(1, device="cuda")
    if not name.endswith("_late"):
        record(torch)
    (globals().get("run_" + name) or getattr(held_out, "run_" + name))(torch, truth)
    torch.cuda.memory._dump_snapshot(f"{folder}/{name}.pickle")
    found = {"records": truth.records, "phases": truth.phases}
    pathlib.Path(folder, name + ".json").write_text(json.dumps(found))


def write_fixture(name, roles):
    """Writes a job's snapshot, without the machine's paths, and the roles at its peak."""

    def shorten(value):
        if isinstance(value, dict):
            return {key: shorten(item) for key, item in value.items()}
        if isinstance(value, list):
            return [shorten(item) for item in value]
        if isinstance(value, str) and "site-packages/" in value:
            return "/venv/lib/python3/site-packages/" + value.rsplit("site-packages/", 1)[1]
        return "/job/train.py" if isinstance(value, str) and value.endswith(("differential/categories.py", "differential/held_out.py")) else value

    FIXTURES.mkdir(parents=True, exist_ok=True)
    snapshot = shorten(pickle.loads((OUT / f"{name}.pickle").read_bytes()))
    (FIXTURES / f"{name}.pickle.gz").write_bytes(gzip.compress(pickle.dumps(snapshot, 4), 9, mtime=0))
    (FIXTURES / f"{name}.json").write_text(json.dumps(roles, separators=(",", ":")) + "\n")


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--job"]:
        return job(*arguments[1:])
    if "-h" in arguments or "--help" in arguments:
        return print(__doc__.strip())
    import environment

    release = arguments.pop(arguments.index("--release") + 1) if "--release" in arguments else "2.11"
    keep = "--keep" in arguments
    names = [a for a in arguments if not a.startswith("-")] or list(JOBS)
    OUT.mkdir(parents=True, exist_ok=True)
    environment = environment.Environment(release)
    subprocess.run(["cargo", "build", "--quiet", "--package", "session", "--example", "categories"], cwd=ROOT, check=True)
    print("| job | settings | bytes at the peak | right | unknown |\n|---|---|---:|---:|---:|")
    for name in names:
        if not keep or not (OUT / f"{name}.pickle").exists():
            made = environment.make()
            subprocess.run(made.command(__file__, "--job", name, OUT), env={**made.variables(), "FAKECUDA_CAPACITY": str(80 << 30), "PYTHONWARNINGS": "ignore"}, check=True, stderr=None if os.environ.get("DETAIL") else subprocess.DEVNULL)
        files = [OUT / f"{name}.pickle", OUT / f"{name}.json"]
        told = subprocess.run([ROOT / "target/debug/examples/categories", *files], cwd=ROOT, check=True, capture_output=True, text=True)
        result = json.loads(told.stdout)
        print(f"| {name} | {JOBS[name]} | {result['peak']:,} | {result['right']:.1%} | {result['unknown']:.1%} |", flush=True)
        if "--fixtures" in arguments and name in SMALL:
            write_fixture(name, result["roles"])
        if os.environ.get("DETAIL"):
            for row in result["wrong"]:
                print("   ", row)


if __name__ == "__main__":
    main()
