"""Models and steps of training that several jobs share."""

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = "cuda"
KIB, MIB = 1 << 10, 1 << 20


class Attention(nn.Module):
    """Attention by hand: the fast kernels need a device."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = F.softmax(q @ k.transpose(-2, -1), dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads=8):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self, width=512, layers=4, words=8192):
        super().__init__()
        self.words = words
        self.embedding = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def mlp(inside=512, width=1024, outside=10, depth=4):
    sizes = [inside] + [width] * (depth - 1)
    layers = [layer for i, o in zip(sizes, sizes[1:]) for layer in (nn.Linear(i, o), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], outside)).to(DEVICE)


def convnet(widths=(32, 64, 128), classes=100, pictures=3):
    """A small network of convolutions, of PyTorch's own layers only."""
    sizes = zip((pictures, *widths), widths)
    layers = [part for i, o in sizes for part in (nn.Conv2d(i, o, 3, 2, 1), nn.BatchNorm2d(o), nn.ReLU())]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], classes)).to(DEVICE)


def transformer(**options):
    return Transformer(**options).to(DEVICE)


def tokens(batch, length, words=8192):
    return torch.randint(0, words, (batch, length), device=DEVICE)


def pictures(batch, side=64):
    return torch.zeros(batch, 3, side, side).to(DEVICE)


def labels(batch, classes=10):
    return torch.randint(0, classes, (batch,), device=DEVICE)


def language_loss(model, words):
    """The loss of predicting each next word."""
    logits = model(words[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), words[:, 1:].flatten())


def update(optimizer, loss):
    """Ends a step."""
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
