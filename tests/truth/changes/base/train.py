"""Trains the transformer for some steps."""

import copy

import torch
import torch.nn.functional as F

from model import Transformer

WORDS = 4096
BATCH, LENGTH = 8, 256
STEPS = 6


def loss_of(model, tokens):
    logits = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    return loss


def train():
    model = Transformer(words=WORDS).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    kept = []
    for step in range(STEPS):
        tokens = torch.randint(0, WORDS, (BATCH, LENGTH), device="cuda")
        loss = loss_of(model, tokens)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return kept


train()
