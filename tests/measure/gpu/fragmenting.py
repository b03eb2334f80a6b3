"""Jobs whose memory fragments, with real kernels. Each is a function that runs the whole job; every run of it asks PyTorch for
the same memory in the same order, so that what is predicted from one run can be checked by another.
"""

import random

import torch


def lengths():
    """Trains a GPT-2 of 355 million parameters on sequences whose length differs in every step."""
    import transformers

    config = transformers.GPT2Config(n_layer=24, n_embd=1024, n_head=16, attn_implementation="sdpa")
    model = transformers.GPT2LMHeadModel(config).cuda().train()
    optimizer, r = torch.optim.AdamW(model.parameters(), lr=1e-4), random.Random(3)
    for _ in range(40):
        tokens = torch.randint(0, config.vocab_size, (12, r.randrange(100, 1024)), device="cuda")
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(tokens, labels=tokens, use_cache=False).loss
        loss.backward()
        optimizer.step()


def caches():
    """Serves requests that come and go; the cache of keys and values of each grows by concatenation."""
    layers, width, r, held = 24, 4096, random.Random(7), {}
    with torch.no_grad():
        for tick in range(400):
            if tick % 8 == 0:
                held[tick] = [torch.randn(2, r.randrange(100, 4000), width, device="cuda", dtype=torch.bfloat16) for _ in range(layers)]
            for name in list(held):
                word = torch.randn(2, 16, width, device="cuda", dtype=torch.bfloat16)
                held[name] = [torch.cat([layer, word], dim=1) for layer in held[name]]
                if r.random() < 0.03:
                    del held[name]


def pictures():
    """Trains a ResNet-50 on batches of pictures whose size differs in every step, and evaluates on large ones in between."""
    import torchvision

    model = torchvision.models.resnet50(weights=None).cuda().train()
    optimizer, r = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), random.Random(5)
    for step in range(40):
        side = 32 * r.randrange(4, 16)
        x = torch.randn(96, 3, side, side, device="cuda")
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(x).float().logsumexp(1).mean()
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
                model(torch.randn(32, 3, 640, 640, device="cuda"))


JOBS = {"lengths": lengths, "caches": caches, "pictures": pictures}
