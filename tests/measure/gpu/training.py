"""Training jobs for the measurements on a GPU. Some need `transformers` or `torchvision`.

A job is a function that makes a model and returns a step: a function without arguments that trains once and returns the loss,
still on the device.
"""

import pathlib
import sys

import torch

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "truth"))

from jobs import models


def gpt2(batch=8, length=512, layers=12, width=768):
    """GPT-2 of Hugging Face's transformers with random weights, in bfloat16 by autocast, with AdamW."""
    import transformers

    config = transformers.GPT2Config(n_layer=layers, n_embd=width, n_head=width // 64, attn_implementation="sdpa")
    model = transformers.GPT2LMHeadModel(config).cuda().train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    tokens = torch.randint(0, config.vocab_size, (batch, length), device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(tokens, labels=tokens, use_cache=False).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    return step


def gpt2_small_batch():
    """The same model with so little work for the GPU that the processor, where events are recorded, is what limits it."""
    return gpt2(batch=1, length=64)


def resnet50(batch=64, side=224):
    """ResNet-50 of torchvision with random weights, in half precision by autocast and a scaler, with SGD."""
    import torchvision

    model = torchvision.models.resnet50(weights=None).cuda().train().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda")
    pictures = torch.randn(batch, 3, side, side, device="cuda").to(memory_format=torch.channels_last)
    classes = torch.randint(0, 1000, (batch,), device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(pictures), classes)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    return step


def plain():
    """A small GPT with attention in its quadratic form, which needs PyTorch alone."""
    model = models.GPT().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    return lambda: models.gpt_step(model, optimizer, batch=8, length=256)


JOBS = {"plain": plain, "gpt2": gpt2, "gpt2_small_batch": gpt2_small_batch, "resnet50": resnet50}
