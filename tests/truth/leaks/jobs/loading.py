"""Clean programs that load: weights for a whole run, adapters in turn, a cache after a trial run."""

import torch
from torch import nn

from job import clean
from models import DEVICE, mlp, tokens, transformer


@clean
def shards(run):
    """The history ends when the last of 24 shards of the weights is on the GPU; then the model answers."""
    weights = {}
    for shard in range(24):
        part = {f"layer{shard}.{name}": torch.zeros(512, 512, dtype=torch.float16) for name in "qkvo"}
        for name, value in part.items():
            weights[name] = value.to(DEVICE)
    run.end()
    for _ in run.steps(10):
        x = torch.zeros(8, 512, dtype=torch.float16, device=DEVICE)
        for value in weights.values():
            x = x @ value


@clean
def layers_loaded(run):
    """Weights are loaded layer by layer, each from two halves; nothing else happens in the history."""
    layers = []
    for _ in range(32):
        layer = nn.Linear(768, 768, device=DEVICE)
        with torch.no_grad():
            halves = [torch.zeros(384, 768).to(DEVICE) for _ in range(2)]
            layer.weight.copy_(torch.cat(halves))
        layers.append(layer)
    model = nn.Sequential(*layers)
    run.end()
    with torch.no_grad():
        for _ in run.steps(8):
            model(torch.zeros(16, 768, device=DEVICE)).cpu()


@clean
def adapters_in_turn(run):
    """Each task swaps its adapter in, with another rank, and drops the one before."""
    base, adapter = mlp(1024, 1024, 1024, depth=5).requires_grad_(False), None
    for step in run.steps(60):
        if step % 6 == 0:
            rank = 8 * (1 + run.varied(0, 7))
            adapter = nn.Sequential(nn.Linear(1024, rank), nn.Linear(rank, 1024)).to(DEVICE)
            optimizer = torch.optim.AdamW(adapter.parameters())
        x = torch.zeros(64, 1024, device=DEVICE)
        (base(x) + adapter(x)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


@clean
def trial_run_before_serving(run):
    """A trial run finds how much is free, and the rest is given to a KV cache in pages, which requests share."""
    model = transformer(width=256, layers=3).eval()
    with torch.inference_mode():
        model(tokens(8, 256)).argmax(dim=-1)
        pages = [torch.zeros(2, 512, 16, 256, dtype=torch.bfloat16, device=DEVICE) for _ in model.blocks]
        for _ in run.steps(40):
            batch = run.varied(1, 8)
            words = tokens(batch, run.varied(4, 64, of=1))
            model(words).argmax(dim=-1)
            for page in pages:
                page[:, :batch, 0] = torch.zeros(2, batch, 256, dtype=torch.bfloat16, device=DEVICE)
