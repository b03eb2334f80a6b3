"""A small transformer."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class Attention(nn.Module):
    """Attention by hand: the fast kernels need a device."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1)
        weights = F.softmax(scores, dim=-1)
        mixed = (weights @ v).transpose(1, 2).reshape(batch, length, width)
        return self.out(mixed)


class Block(nn.Module):
    def __init__(self, width, inside, dropout):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, 8)
        self.up, self.down = nn.Linear(width, inside), nn.Linear(inside, width)
        self.dropout = dropout

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        y = self.up(self.norm2(x))
        y = F.gelu(y)
        y = F.dropout(y, self.dropout) if self.dropout else y
        return x + self.down(y)


class Transformer(nn.Module):
    def __init__(self, width=256, inside=1024, layers=4, words=4096, dropout=0.0, checkpoints=False):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width, inside, dropout) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.checkpoints = checkpoints

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpoints else block(x)
        return self.head(self.norm(x))
