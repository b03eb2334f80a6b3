"""The models: a small GPT and a small ResNet."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

DEVICE = "cuda"


class Layer(nn.Module):
    """A layer of a transformer with attention in its quadratic form, for its large intermediate results."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attention(self, x):
        batch, length, width = x.shape
        shape = (batch, length, 3, self.heads, width // self.heads)
        q, k, v = self.qkv(x).view(shape).permute(2, 0, 3, 1, 4)
        scores = F.softmax(q @ k.transpose(-2, -1), dim=-1)
        return self.out((scores @ v).transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    """A decoder; with `recompute`, layers keep only their inputs for the backward pass."""

    def __init__(self, width=512, layers=4, words=16000, heads=8, recompute=False):
        super().__init__()
        self.recompute = recompute
        self.words = words
        self.embedding = nn.Embedding(words, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.recompute else layer(x)
        return self.head(x)


class Convolutions(nn.Module):
    """A block of a ResNet."""

    def __init__(self, narrow, wide, stride):
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(narrow, wide, 3, stride, 1, bias=False),
            nn.BatchNorm2d(wide),
            nn.ReLU(inplace=True),
            nn.Conv2d(wide, wide, 3, 1, 1, bias=False),
            nn.BatchNorm2d(wide),
        )
        self.beside = nn.Conv2d(narrow, wide, 1, stride, bias=False)

    def forward(self, x):
        return F.relu(self.path(x) + self.beside(x))


class ResNet(nn.Module):
    """Convolutions of growing width, and a classifier."""

    def __init__(self, widths=(32, 64, 128, 256), classes=1000):
        super().__init__()
        self.stem = nn.Conv2d(3, widths[0], 7, 2, 3, bias=False)
        pairs = zip((widths[0], *widths), widths)
        self.body = nn.Sequential(*(Convolutions(narrow, wide, 1 + (i > 0)) for i, (narrow, wide) in enumerate(pairs)))
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, x):
        return self.head(self.body(F.relu(self.stem(x))).mean((2, 3)))


def gpt_step(model, optimizer, batch, length):
    """Trains for one step on random words and returns the loss."""
    tokens = torch.randint(0, model.words, (batch, length + 1), device=DEVICE)
    logits = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()


def resnet_step(model, optimizer, batch, side):
    """Trains for one step on random square pictures."""
    pictures = torch.randn(batch, 3, side, side, device=DEVICE)
    labels = torch.randint(0, 1000, (batch,), device=DEVICE)
    F.cross_entropy(model(pictures), labels).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
