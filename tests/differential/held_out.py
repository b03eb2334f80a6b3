"""Jobs for `categories.py` that no rule was tuned on: each has something that the other jobs don't have."""

import copy

# Job: what the table says about it.
JOBS = {
    "unet": "U-Net with skip connections, bf16 autocast, AdamW, an averaged copy of the weights",
    "vit": "vision transformer of PyTorch's own layers, data loader, 3 micro-batches a step, NAdam",
    "translate": "encoder and decoder, Adagrad (its state is made at once), an evaluation after every step",
    "distill": "a student learns from a frozen teacher, RMSprop with momentum",
    "lora": "a frozen model with low-rank adapters, fp16 weights, AdamW",
    "dlrm": "embedding tables and interactions, Adam with AMSGrad, `set_to_none=False`",
}


def update(truth, optimizer):
    """Updates the weights, as the end of a step does."""
    truth.phase("optimizer")
    optimizer.step()
    truth.stepped(optimizer)


def run_unet(torch, truth):
    nn, F = torch.nn, torch.nn.functional

    class Stage(nn.Module):
        def __init__(self, inside, outside):
            super().__init__()
            self.conv1, self.norm1 = nn.Conv2d(inside, outside, 3, padding=1), nn.GroupNorm(8, outside)
            self.conv2, self.norm2 = nn.Conv2d(outside, outside, 3, padding=1), nn.GroupNorm(8, outside)

        def forward(self, x):
            x = F.silu(self.norm1(self.conv1(x)))
            return F.silu(self.norm2(self.conv2(x)))

    class UNet(nn.Module):
        def __init__(self, widths=(64, 128, 256)):
            super().__init__()
            self.down = nn.ModuleList(Stage(i, o) for i, o in zip((3,) + widths, widths))
            self.middle = Stage(widths[-1], widths[-1])
            self.up = nn.ModuleList(Stage(2 * o, i) for i, o in zip((widths[0],) + widths, widths))
            self.out = nn.Conv2d(widths[0], 3, 1)

        def forward(self, x):
            kept = []
            for stage in self.down:
                x = stage(x)
                kept.append(x)
                x = F.avg_pool2d(x, 2)
            x = self.middle(x)
            for stage, skip in zip(reversed(self.up), reversed(kept)):
                x = F.interpolate(x, size=skip.shape[-2:], mode="nearest")
                x = stage(torch.cat([x, skip], 1))
            return self.out(x)

    model = UNet().to("cuda")
    average = copy.deepcopy(model).requires_grad_(False)
    truth.watch(model)
    truth.role("parameters", *average.parameters())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(4):
        images = torch.zeros(16, 3, 64, 64).to("cuda")
        truth.role("inputs", images)
        truth.phase("forward")
        noise = torch.randn_like(images)
        with truth.saved(), torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.mse_loss(model(images + noise), noise)
        truth.phase("backward")
        optimizer.zero_grad()
        loss.backward()
        update(truth, optimizer)
        with torch.no_grad():
            for mean, new in zip(average.parameters(), model.parameters()):
                mean.lerp_(new, 0.01)


def run_vit(torch, truth):
    nn, F = torch.nn, torch.nn.functional

    class VisionTransformer(nn.Module):
        def __init__(self, width=512):
            super().__init__()
            self.patches = nn.Conv2d(3, width, 16, 16)
            self.token, self.places = nn.Parameter(torch.zeros(1, 1, width)), nn.Parameter(torch.zeros(1, 65, width))
            layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.1, batch_first=True, norm_first=True)
            self.encoder = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
            self.head = nn.Linear(width, 1000)

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
            return self.head(self.encoder(x)[:, 0])

    class Images(torch.utils.data.Dataset):
        def __len__(self):
            return 12 * 32

        def __getitem__(self, i):
            return torch.zeros(3, 128, 128), i % 1000

    model = VisionTransformer().to("cuda")
    truth.watch(model)
    optimizer = torch.optim.NAdam(model.parameters(), lr=1e-3)
    loader = torch.utils.data.DataLoader(Images(), batch_size=32)
    for number, (images, labels) in enumerate(loader, 1):
        images, labels = images.cuda(non_blocking=True), labels.cuda(non_blocking=True)
        truth.role("inputs", images, labels)
        truth.phase("forward")
        with truth.saved():
            loss = F.cross_entropy(model(images), labels, label_smoothing=0.1) / 3
        truth.role("activations", loss)
        truth.phase("backward")
        loss.backward()
        if number % 3 == 0:
            update(truth, optimizer)
            optimizer.zero_grad()


def run_translate(torch, truth):
    nn, F = torch.nn, torch.nn.functional

    class Translator(nn.Module):
        def __init__(self, width=512, words=16384):
            super().__init__()
            self.words = nn.Embedding(words, width)
            self.transformer = nn.Transformer(width, 8, 3, 3, 4 * width, batch_first=True)
            self.head = nn.Linear(width, words)

        def forward(self, source, target):
            length = target.shape[1]
            mask = nn.Transformer.generate_square_subsequent_mask(length, device=target.device)
            return self.head(self.transformer(self.words(source), self.words(target), tgt_mask=mask))

    model = Translator().to("cuda")
    truth.watch(model)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    truth.stepped(optimizer)

    def batch(size):
        made = [torch.zeros(size, 128, dtype=torch.long).to("cuda") for _ in range(3)]
        truth.role("inputs", *made)
        return made

    for _ in range(4):
        model.train()
        source, target, wanted = batch(8)
        truth.phase("forward")
        with truth.saved():
            loss = F.cross_entropy(model(source, target).flatten(0, 1), wanted.flatten())
        truth.phase("backward")
        loss.backward()
        truth.phase("optimizer")
        optimizer.step()
        optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            source, target, wanted = batch(8)
            truth.phase("inference")
            F.cross_entropy(model(source, target).flatten(0, 1), wanted.flatten())


def run_distill(torch, truth):
    nn, F = torch.nn, torch.nn.functional

    def net(width, depth):
        layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width))]
        return nn.Sequential(nn.Linear(1024, width), *layers, nn.Linear(width, 1000))

    teacher, student = net(3072, 6).cuda().eval().requires_grad_(False), net(1024, 6).cuda()
    truth.watch(teacher)
    truth.watch(student)
    optimizer = torch.optim.RMSprop(student.parameters(), lr=1e-3, momentum=0.9)
    for _ in range(4):
        x = torch.zeros(2048, 1024).cuda()
        truth.role("inputs", x)
        truth.phase("forward")
        with torch.no_grad():
            wanted = F.softmax(teacher(x) / 2, -1)
        truth.role("activations", wanted)
        with truth.saved():
            loss = F.kl_div(F.log_softmax(student(x) / 2, -1), wanted, reduction="batchmean")
        truth.phase("backward")
        optimizer.zero_grad()
        loss.backward()
        update(truth, optimizer)


def run_lora(torch, truth):
    from categories import gpt

    nn, F = torch.nn, torch.nn.functional

    class Adapted(nn.Module):
        def __init__(self, linear, rank=16):
            super().__init__()
            self.linear = linear
            self.down = nn.Linear(linear.in_features, rank, bias=False)
            self.up = nn.Linear(rank, linear.out_features, bias=False)

        def forward(self, x):
            return self.linear(x) + self.up(self.down(x))

    model = gpt(torch).to(torch.float16).requires_grad_(False)
    for block in model.blocks:
        block.attention.qkv, block.attention.out = Adapted(block.attention.qkv), Adapted(block.attention.out)
    model = model.to("cuda", torch.float16)
    truth.watch(model)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    for _ in range(4):
        ids, wanted = (torch.zeros(4, 512, dtype=torch.long).to("cuda") for _ in range(2))
        truth.role("inputs", ids, wanted)
        truth.phase("forward")
        with truth.saved():
            loss = F.cross_entropy(model(ids).flatten(0, 1).float(), wanted.flatten())
        truth.phase("backward")
        loss.backward()
        update(truth, optimizer)
        optimizer.zero_grad()


def run_dlrm(torch, truth):
    nn, F = torch.nn, torch.nn.functional

    class Recommender(nn.Module):
        def __init__(self, width=64):
            super().__init__()
            self.tables = nn.ModuleList(nn.Embedding(rows, width) for rows in (400_000, 200_000, 50_000, 1_000))
            self.dense = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, width), nn.ReLU())
            self.top = nn.Sequential(nn.Linear(width + 25, 1024), nn.ReLU(), nn.Linear(1024, 1))

        def forward(self, numbers, ids):
            x = self.dense(numbers)
            rows = [table(ids[:, i]) for i, table in enumerate(self.tables)]
            every = torch.stack([x, *rows], 1)
            products = (every @ every.transpose(1, 2)).flatten(1)
            return self.top(torch.cat([x, products], 1)).squeeze(1)

    model = Recommender().cuda()
    truth.watch(model)
    optimizer = torch.optim.Adam(model.parameters(), amsgrad=True)
    for _ in range(4):
        numbers, ids = torch.zeros(2048, 13).cuda(), torch.zeros(2048, 4, dtype=torch.long).cuda()
        clicks = torch.zeros(2048).cuda()
        truth.role("inputs", numbers, ids, clicks)
        truth.phase("forward")
        with truth.saved():
            loss = F.binary_cross_entropy_with_logits(model(numbers, ids), clicks)
        truth.phase("backward")
        loss.backward()
        update(truth, optimizer)
        optimizer.zero_grad(set_to_none=False)
