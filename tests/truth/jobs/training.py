"""Training: fixed and variable lengths, sweeps, checkpointing on and off, two models in turn."""

import random

import torch

from . import Job
from .models import DEVICE, GPT, ResNet, gpt_step, resnet_step


def gpt(**options):
    model = GPT(**options).to(DEVICE)
    return model, torch.optim.AdamW(model.parameters())


def resnet():
    model = ResNet().to(DEVICE)
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def transformer_fixed(_):
    training = gpt()
    for _ in range(5):
        gpt_step(*training, batch=8, length=384)


def transformer_variable(_):
    training, r = gpt(), random.Random(3)
    for _ in range(14):
        gpt_step(*training, batch=6, length=r.randrange(48, 900))


def resnet_batches(_):
    training = resnet()
    for batch in (8, 16, 24, 32, 48, 64, 96, 40):
        resnet_step(*training, batch, side=128)


def resnet_pictures(_):
    training, r = resnet(), random.Random(5)
    for _ in range(12):
        resnet_step(*training, batch=24, side=32 * r.randrange(3, 10))


def checkpointing_on(_):
    training = gpt(layers=6, recompute=True)
    for length in (256, 512, 384, 512):
        gpt_step(*training, batch=8, length=length)


def checkpointing_off(_):
    training = gpt(layers=6)
    for length in (256, 512, 384, 512):
        gpt_step(*training, batch=8, length=length)


def two_models(_):
    first, second = gpt(layers=2), resnet()
    for turn in range(4):
        gpt_step(*first, batch=4 + turn, length=320)
        gpt_step(*first, batch=4, length=256)
        resnet_step(*second, batch=16, side=160)
        torch.cuda.empty_cache()
        resnet_step(*second, batch=12 + turn, side=192)


def late(recording):
    training, r = gpt(), random.Random(11)
    for step in range(12):
        if step == 4:
            recording.begin()
        gpt_step(*training, batch=6, length=r.randrange(48, 700))


JOBS = {
    "transformer_fixed": Job(transformer_fixed),
    "transformer_variable": Job(transformer_variable),
    "resnet_batches": Job(resnet_batches),
    "resnet_pictures": Job(resnet_pictures),
    "checkpointing_on": Job(checkpointing_on),
    "checkpointing_off": Job(checkpointing_off),
    "two_models": Job(two_models),
    "late": Job(late, begins_late=True),
}
