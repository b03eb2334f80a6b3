"""Checks the values that a program sees where no kernel runs. Needs PyTorch, 2.4 to 2.15, over the driver without a GPU:

    FAKECUDA_LARGEST_WRITE=65536 tests/differential/environment.py 2.11 collector/python/tests/predict_values.py [WORD]

Each case is an expression and what it must give. With a WORD, only the cases that contain it. Prints what is wrong.
"""

import os
import sys
import tempfile
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
os.environ.setdefault("VRAMSCOPE_PREDICT", tempfile.mkdtemp())
os.environ.setdefault("VRAMSCOPE_PREDICT_WORLD", "4")
os.environ.setdefault("VRAMSCOPE_PREDICT_RANK", "1")
os.environ["VRAMSCOPE_PREDICT_WHOLE"] = "1"
os.environ["VRAMSCOPE_PREDICT_VALUES"] = '[{"file": "code/given.py", "line": 1, "value": 0.25}]'

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.nn.functional as F  # noqa: E402

from vramscope._predict import ranks  # noqa: E402
from vramscope._predict import start as prediction  # noqa: E402

prediction.start(torch)

D = "cuda"
nan, inf = float("nan"), float("inf")
shape = torch.Size

SMALL = [
    ("torch.full((3,), 7, device=D).tolist()", [7, 7, 7]),
    ("torch.full((1,), True, device=D).item()", True),
    ("torch.ones(3, device=D).tolist()", [1.0, 1.0, 1.0]),
    ("torch.zeros(2, dtype=torch.int64, device=D).tolist()", [0, 0]),
    ("torch.empty(4, device=D).tolist()", [0.0] * 4),
    ("torch.arange(5, device=D).tolist()", [0, 1, 2, 3, 4]),
    ("torch.linspace(0, 1, 3, device=D).tolist()", [0.0, 0.5, 1.0]),
    ("torch.eye(2, device=D).tolist()", [[1.0, 0.0], [0.0, 1.0]]),
    ("torch.tensor([1, 2], device=D).tolist()", [1, 2]),
    ("torch.tensor([1.5, 2]).to(D, torch.float16).tolist()", [1.5, 2.0]),
    ("torch.arange(6).view(2, 3).t().to(D).tolist()", [[0, 3], [1, 4], [2, 5]]),
    ("torch.arange(4, device=D).cpu().tolist()", [0, 1, 2, 3]),
    ("torch.arange(4, device=D).to('cpu', torch.float32).tolist()", [0.0, 1.0, 2.0, 3.0]),
    ("torch.arange(6, device=D).view(2, 3).t().cpu().tolist()", [[0, 3], [1, 4], [2, 5]]),
    ("torch.empty(3).copy_(torch.arange(3, device=D)).tolist()", [0.0, 1.0, 2.0]),
    ("(torch.arange(4, device=D) > 1).tolist()", [False, False, True, True]),
    ("(torch.arange(4, device=D) == 2).any().item()", True),
    ("(torch.arange(4, device=D) < 4).all().item()", True),
    ("bool(torch.isfinite(torch.ones(4, device=D)).all())", True),
    ("torch.isfinite(torch.tensor([1.0, inf, nan], device=D)).tolist()", [True, False, False]),
    ("torch.isnan(torch.tensor([1.0, nan], device=D)).any().item()", True),
    ("torch.ones(16, device=D).nonzero().shape", (16, 1)),
    ("torch.tensor([0, 3, 0, 5], device=D).nonzero().flatten().tolist()", [1, 3]),
    ("torch.where(torch.tensor([[True, False], [True, True]], device=D))[1].tolist()", [0, 0, 1]),
    ("torch.tensor([3, 1, 3], device=D).unique().tolist()", [1, 3]),
    ("torch.tensor([3, 3, 1], device=D).unique_consecutive(return_counts=True)[1].tolist()", [2, 1]),
    ("torch.arange(5, device=D)[torch.arange(5, device=D) % 2 == 0].tolist()", [0, 2, 4]),
    ("torch.arange(5, device=D)[torch.tensor([True, False, False, True, False])].tolist()", [0, 3]),
    ("torch.arange(4, device=D).masked_select(torch.arange(4, device=D) > 2).tolist()", [3]),
    ("torch.repeat_interleave(torch.tensor([2, 0, 1], device=D)).tolist()", [0, 0, 2]),
    ("torch.bincount(torch.tensor([0, 2, 2], device=D)).tolist()", [1, 0, 2]),
    ("torch.ones(4, device=D).cumsum(0).tolist()", [1.0, 2.0, 3.0, 4.0]),
    ("torch.arange(9, device=D).index_select(0, torch.tensor([8, 1], device=D)).tolist()", [8, 1]),
    ("torch.arange(9, device=D)[torch.tensor([8, 1], device=D)].tolist()", [8, 1]),
    ("torch.tensor([2, 9, 4], device=D).argmax().item()", 1),
    ("torch.tensor([2, 9, 4], device=D).sort().values.tolist()", [2, 4, 9]),
    ("torch.tensor([2, 9, 4], device=D).topk(2).indices.tolist()", [1, 2]),
    ("torch.equal(torch.ones(3, device=D), torch.zeros(3, device=D))", False),
    ("torch.allclose(torch.ones(3, device=D), torch.ones(3, device=D))", True),
    ("torch.cat([torch.ones(1, device=D), torch.zeros(1, device=D)]).tolist()", [1.0, 0.0]),
    ("torch.where(torch.arange(3, device=D) > 0, 5, -5).tolist()", [-5, 5, 5]),
    ("(torch.arange(3, device=D) * 0.5).tolist()", [0.0, 0.5, 1.0]),
    ("(torch.arange(3, device=D) * 0.5).dtype", torch.float32),
    ("torch.isin(torch.arange(3, device=D), torch.tensor([1], device=D)).tolist()", [False, True, False]),
    ("written()", [0, 7, 0, 5]),
    ("added().tolist()", [3.0, 3.0]),
    ("into().tolist()", [2.0, 3.0]),
    ("masked().tolist()", [0.0, 9.0, 9.0]),
    ("product().tolist()", [[19.0, 22.0], [43.0, 50.0]]),
    ("learnt()", True),
    ("stopped()", 64),
    ("scaled()", [(0.0, 65536.0), (1.0, 32768.0)]),
    ("kept_random()", True),
    ("0 < torch.rand(100, device=D).mean().item() < 1", True),
    ("sorted(torch.randperm(5, device=D).tolist())", [0, 1, 2, 3, 4]),
    ("F.dropout(torch.ones(1000, device=D)).sum().item() > 0", True),
    ("torch.linalg.inv(2 * torch.eye(2, device=D)).tolist()", [[0.5, 0.0], [0.0, 0.5]]),
    ("attended()", True),
    ("in_thread()", [0, 1, 2]),
    ("inferred()", [2.0, 3.0]),
    ("torch.func.vmap(lambda x: x * 2)(torch.arange(3, device=D)).tolist()", [0, 2, 4]),
    ("torch.func.grad(lambda x: (x * x).sum())(torch.ones(2, device=D)).tolist()", [2.0, 2.0]),
    ("torch.tensor([1 + 2j], device=D).conj().imag.tolist()", [-2.0]),
    ("torch.ones(2, 3, 4, 4, device=D).to(memory_format=torch.channels_last).sum().item()", 96.0),
    ("torch.tensor([1.5, 2.5], device=D).bfloat16().float().tolist()", [1.5, 2.5]),
    ("torch.jit.script(doubled)(torch.ones(2, device=D)).tolist()", [2.0, 2.0]),
    ("saved()", [0, 1, 2]),
    ("copied()", [0, 1, 2]),
    ("on_stream()", 3.0),
    ("checkpointed()", [2.0, 2.0]),
    ("captured()", True),
    ("autocast()", (torch.bfloat16, [[2.0, 2.0], [2.0, 2.0]])),
    ("fitted()", True),
    ("flag_of_made_up()", True),
    ("torch.normal(torch.ones(3, device=D), torch.zeros(3, device=D)).tolist()", [1.0, 1.0, 1.0]),
    ("torch.linalg.eig(torch.diag(torch.tensor([2.0, 3.0], device=D))).eigenvalues.real.tolist()", [2.0, 3.0]),
    ("torch.linalg.lstsq(*small_system()).solution.tolist()", [[[2.0], [3.0]]] * 2),
    ("torch.matrix_exp(torch.zeros(2, 2, 2, device=D)).tolist()", [[[1.0, 0.0], [0.0, 1.0]]] * 2),
    ("sparse().coalesce().indices().tolist()", [[0, 1], [2, 0]]),
    ("sparse().coalesce().values().tolist()", [4.0, 2.0]),
    ("sparse().cpu().to(D).coalesce().values().tolist()", [4.0, 2.0]),
    ("sparse().mul_(2).zero_()._nnz()", 0),
    ("torch.eye(2, device=D).to_sparse().indices().tolist()", [[0, 1], [0, 1]]),
    ("fake()", (2, 3)),
]

LARGE = [
    ("convolved()", True),
    ("torch.ones(1 << 20, device=D).nonzero().shape", (1 << 20, 1)),
    ("torch.ones(512, 512, device=D)[torch.ones(512, 512, device=D) > 0].shape", (512 * 512,)),
    ("torch.ones(1024, 64, device=D)[torch.zeros(1024, 64, device=D).sum(1) > 0].shape", (0, 64)),
    ("torch.ones(1 << 17, 8, device=D)[torch.ones(1 << 17, device=D, dtype=torch.bool)].shape", (1 << 17, 8)),
    ("torch.ones(1 << 20, device=D).masked_select(torch.ones(1 << 20, device=D) > 0).shape", (1 << 20,)),
    ("torch.ones(1 << 17, 8, device=D).masked_select(torch.arange(8, device=D) > 5).shape", (1 << 18,)),
    ("torch.randint(9, (1 << 19,), device=D).unique().shape", (1 << 19,)),
    ("[t.shape[0] for t in torch.zeros(1 << 18, device=D).unique(return_inverse=True, return_counts=True)]", [1 << 18] * 3),
    ("torch.randint(9, (4096, 64), device=D).unique(dim=0).shape", (4096, 64)),
    ("torch.ones(1 << 18, device=D).unique_consecutive().shape", (1 << 18,)),
    ("torch.repeat_interleave(torch.ones(1 << 18, dtype=torch.int64, device=D)).shape", (1 << 18,)),
    ("torch.bincount(torch.ones(1 << 18, dtype=torch.int64, device=D), minlength=7).shape", (7,)),
    ("bool(torch.isfinite(torch.randn(1 << 20, device=D)).all())", True),
    ("bool(torch.isnan(torch.randn(1 << 20, device=D)).any())", False),
    ("torch.randn(1 << 20, device=D).sum().item()", 0.0),
    ("torch.randn(1 << 20, device=D)[5].item()", 0.0),
    ("(torch.randn(1 << 20, device=D).sum() / torch.randn(1 << 20, device=D).sum()).item()", 0.0),
    ("torch.equal(torch.ones(1 << 20, device=D), torch.ones(1 << 20, device=D))", True),
    ("torch.randn(1 << 20, device=D).cpu().shape", (1 << 20,)),
    ("torch.randn(1 << 20, device=D).argmax().item()", 0),
    ("bool((torch.randn(1 << 20, device=D).view(1 << 6, -1)[:, -1] == 0).all())", True),
    ("packed(12, 1000)", True),
    ("packed(12, 200_000)", True),
    ("torch.ones(1 << 18, dtype=torch.int64, device=D).cpu().sum().item()", 1 << 18),
    ("torch.arange(1 << 18, device=D).to(D, torch.int32)[-1].item()", (1 << 18) - 1),
    ("put_by_mask().shape", (1 << 20,)),
    ("gradient_of_mask().shape", (1 << 20,)),
    ("stopped(vocabulary=40000)", 64),
    ("blank()", (True, True, True)),
    ("after_stale()", 16),
    ("routed(1 << 15)", ([8192] * 8, [8192] * 8, [8192] * 8, 8192, 8192, 8192, 65536)),
    ("routed(1 << 10)", ([256] * 8, [256] * 8, [256] * 8, 256, 256, 256, 2048)),
    ("torch.normal(torch.randn(1 << 20, device=D), torch.rand(1 << 20, device=D)).shape", (1 << 20,)),
    ("torch.normal(0.0, torch.randn(1 << 20, device=D)).shape", (1 << 20,)),
    ("torch.normal(torch.randn(8, 1 << 18, device=D), torch.ones(1, device=D)).shape", (8, 1 << 18)),
    ("[tuple(one.shape) for one in torch.linalg.eig(torch.randn(2, 200, 200, device=D))]", [(2, 200), (2, 200, 200)]),
    ("[one.dtype for one in torch.linalg.eig(torch.randn(512, 512, device=D))]", [torch.complex64] * 2),
    ("[tuple(torch.linalg.lstsq(*taller(n, k)).solution.shape) for n, k in ((64, 256), (64, 64), (256, 64))]", [(64, k, 8) for k in (256, 64, 64)]),
    ("torch.matrix_exp(torch.randn(64, 64, 64, device=D)).shape", (64, 64, 64)),
    ("needed(lambda: torch.matrix_exp(torch.empty(512, 512, device=D))) >= 8 << 20", True),
    ("made_sparse(1 << 20).coalesce()._nnz()", 1 << 20),
    ("made_sparse(1 << 20, size=100).coalesce()._nnz()", 100 * 100),
    ("made_sparse(1 << 20).coalesce().is_coalesced()", True),
    ("needed(lambda: made_sparse(1 << 20).coalesce()) >= 64 << 20", True),
    ("torch.sparse.mm(made_sparse(1 << 20), torch.randn(5000, 8, device=D)).shape", (5000, 8)),
    ("torch.sparse_coo_tensor(pairs(), torch.randn(3, 1 << 17, device=D)).coalesce().values().shape", (2, 1 << 17)),
    ("torch.randn(512, 512, device=D).to_sparse()._nnz()", 512 * 512),
    ("torch.randn(1 << 20, device=D).topk(3).indices.tolist()", [0, 0, 0]),
    ("gradient_of_scattered(1 << 20).shape", shape((1000,))),
]

RANKS = [
    ("dist.get_world_size(), dist.get_rank(), dist.get_backend()", (4, 1, "nccl")),
    ("[dist.get_backend(dist.new_group([0, 1], backend=b)) for b in ('gloo', None)]", ["gloo", "nccl"]),
    ("gathered_objects()", [{"a": 1}] * 4),
    ("gathered_into_rows().shape", (1, 8)),
    ("gathered_with_gradient()", [[1.0, 2.0]] * 4),
    ("sent_objects()", [{"shape": (2, 3)}, 5]),
    ("[said(backend='nccl', **given) for given in ({'rank': 2, 'world_size': 4}, {'rank': 4, 'world_size': 4}, {})]", [(2, 4), None, None]),
    ("said(init_method='tcp://127.0.0.1:1?rank=1&world_size=2')", (1, 2)),
    ("reduced(dist.ReduceOp.SUM)", [4.0, 8.0]),
    ("reduced(dist.ReduceOp.MAX)", [1.0, 2.0]),
    ("reduced(dist.ReduceOp.AVG)", [1.0, 2.0]),
    ("reduced_on_cpu()", [12]),
    ("gathered()", [[5, 6]] * 4),
    ("scattered()", [12.0]),
    ("sent_as_list()", ["mine"]),
    ("dist.barrier()", None),
    ("dist.get_world_size(dist.new_group([0, 1], backend='nccl'))", 2),
    ("mesh()", (2, 2)),
    ("parallel()", True),
    ("sharded()", True),
]


def written():
    x = torch.zeros(4, dtype=torch.int64, device=D)
    x[1] = 7
    x[-1:] += 5
    return x.tolist()


def added():
    x = torch.ones(2, device=D)
    return x.add_(x).add(1)


def into():
    out = torch.empty(2, device=D)
    torch.add(torch.arange(2, device=D), 2.0, out=out)
    return out


def masked():
    x = torch.zeros(3, device=D)
    x[torch.tensor([False, True, True], device=D)] = torch.tensor([9.0, 9.0], device=D)
    return x


def product():
    return torch.tensor([[1.0, 2.0], [3.0, 4.0]], device=D) @ torch.tensor([[5.0, 6.0], [7.0, 8.0]], device=D)


def learnt():
    """A small model learns, so forward, backward and optimizer are all true."""
    model = torch.nn.Linear(4, 1).to(D)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x = torch.randn(32, 4, device=D)
    y = x.sum(1, keepdim=True)
    losses = []
    for _ in range(20):
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses[-1] < losses[0] / 2


def stopped(vocabulary=100):
    """The loop of transformers' `generate`: returns after how many tokens it stopped."""
    ids = torch.ones(2, 3, dtype=torch.int64, device=D)
    unfinished = torch.ones(2, dtype=torch.int64, device=D)
    end = torch.tensor([5], device=D)
    while True:
        scores = torch.zeros(2, vocabulary, device=D)
        token = torch.argmax(scores, dim=-1) * unfinished
        ids = torch.cat([ids, token[:, None]], dim=-1)
        is_done = torch.full((2,), False, device=D, dtype=torch.bool)
        is_done = is_done | torch.full((2,), ids.shape[1] >= 3 + 64, device=D, dtype=torch.bool) | torch.isin(ids[:, -1], end)
        unfinished = unfinished & ~is_done
        if unfinished.max() == 0:
            return ids.shape[1] - 3
        if ids.shape[1] > 200:
            return None


def scaled():
    """What GradScaler does with finite gradients, and with one that is not."""
    found = []
    for value in (1.0, inf):
        parameter = torch.nn.Parameter(torch.ones(3, device=D))
        optimizer = torch.optim.SGD([parameter], 0.1)
        scaler = torch.amp.GradScaler("cuda")
        scaler.scale(parameter.sum()).backward()
        parameter.grad.mul_(value)
        scaler.unscale_(optimizer)
        found.append((sum(v.item() for v in scaler._per_optimizer_states[id(optimizer)]["found_inf_per_device"].values()),))
        scaler.step(optimizer)
        scaler.update()
        found[-1] += (scaler.get_scale(),)
    return found


def kept_random():
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    torch.rand(4, device=D)
    F.dropout(torch.ones(4, device=D))
    torch.randperm(9, device=D)
    return torch.equal(torch.rand(4), expected)


def attended():
    q, k, v = (torch.randn(1, 2, 8, 16) for _ in range(3))
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    q, k, v = (x.to(D) for x in (q, k, v))
    return torch.allclose(F.scaled_dot_product_attention(q, k, v, is_causal=True).cpu(), expected, atol=1e-5)


def in_thread():
    import threading

    found = []
    thread = threading.Thread(target=lambda: found.extend(torch.arange(3, device=D).tolist()))
    thread.start()
    thread.join()
    return found


def inferred():
    with torch.inference_mode():
        x = torch.ones(2, device=D)
        x += torch.arange(2, device=D)
        return (x + 1).tolist()


def doubled(x):
    return x * 2


def saved():
    import io

    file = io.BytesIO()
    torch.save({"x": torch.arange(3, device=D)}, file)
    file.seek(0)
    return torch.load(file, weights_only=True)["x"].tolist()


def copied():
    import copy

    return copy.deepcopy(torch.arange(3).pin_memory().to(D, non_blocking=True)).tolist()


def on_stream():
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x = torch.ones(3, device=D)
        x.record_stream(stream)
    return x.sum().item()


def checkpointed():
    from torch.utils.checkpoint import checkpoint

    x = torch.ones(2, device=D, requires_grad=True)
    checkpoint(lambda y: (y * y)[y > 0].sum(), x, use_reentrant=False).backward()
    return x.grad.tolist()


def captured():
    x = torch.ones(3, device=D)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x + 1
    graph.replay()
    return y.shape == (3,)


def autocast():
    with torch.autocast("cuda", dtype=torch.bfloat16):
        y = torch.ones(2, 2, device=D) @ torch.ones(2, 2, device=D)
    return y.dtype, y.tolist()


def fitted():
    """Every usual optimizer makes a small model better."""
    for name in ("Adam", "AdamW", "RMSprop", "Adagrad", "LBFGS", "SGD"):
        for more in ({}, {"fused": True}) if name in ("Adam", "AdamW", "SGD") else ({},):
            x = torch.full((4,), 3.0, device=D, requires_grad=True)
            optimizer = getattr(torch.optim, name)([x], lr=0.1, **more)

            def closure():
                optimizer.zero_grad()
                loss = (x * x).sum()
                loss.backward()
                return loss

            for _ in range(3):
                optimizer.step(closure)
            if not (x * x).sum().item() < 36:
                return name, more
    return True


def flag_of_made_up():
    """A flag is computed with what is made up."""
    x = torch.randn(1 << 20, device=D).sum() > 5
    return (x | torch.full((), True, device=D)).item()


def fake():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        x = torch.ones(2, 3, device=D)
        return tuple((x * 2.0 + torch.zeros(3, device=D)).shape)


def small_system():
    """Two systems of equations with the solutions 2 and 3."""
    return (2 * torch.eye(2, device=D)).expand(2, 2, 2), torch.tensor([[4.0], [6.0]], device=D).expand(2, 2, 1)


def taller(rows, columns):
    return torch.randn(64, rows, columns, device=D), torch.randn(64, rows, 8, device=D)


def pairs():
    """Indices of which two are the same."""
    return torch.tensor([[0, 1, 0], [2, 0, 2]], device=D)


def sparse():
    return torch.sparse_coo_tensor(pairs(), torch.tensor([1.0, 2.0, 3.0], device=D), (2, 3))


def made_sparse(number, size=5000):
    return torch.sparse_coo_tensor(torch.randint(size, (2, number), device=D), torch.randn(number, device=D), (size, size))


def needed(run):
    """Returns how many bytes more than before are allocated at most while something runs."""
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run()
    return torch.cuda.max_memory_allocated() - before


def put_by_mask():
    x = torch.zeros(1 << 20, device=D)
    x[x > 0] = 1
    y = torch.ones(1 << 20, device=D)
    x[y > 0] = y[y > 0]
    return x


def gradient_of_mask():
    x = torch.zeros(1 << 20, device=D, requires_grad=True)
    x[x.detach() > 0].sum().backward()
    return x.grad


def blank():
    """Large initial values are not made, and their copies stay in memory that is not written."""
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    layer = torch.nn.Linear(16384, 16384)
    torch.nn.init.trunc_normal_(layer.weight, std=0.02)
    half = layer.to(torch.bfloat16)
    copied = half.weight.clone()
    moved = half.to(D)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return grown < 200 << 10, copied.dtype is torch.bfloat16, moved.weight.is_cuda


def packed(batch, length):
    """Whether Transformers finds no packed sequences in positions, which decides between two kinds of attention."""
    positions = torch.arange(length, device=D).expand(batch, -1).contiguous()
    differences = torch.diff(positions, prepend=positions[:, :1] - 1, dim=-1)
    return bool(((differences != 1).cumsum(-1)[:, -1] == 0).all())


def routed(tokens):
    """What a mixture of experts sees of two choices among eight: each expert gets a quarter of the tokens."""
    logits = torch.zeros(tokens, 1024, device=D) @ torch.zeros(1024, 8, device=D)
    chosen = logits.softmax(-1).topk(2).indices
    mask = F.one_hot(chosen, 8).permute(2, 1, 0)
    routes = torch.zeros_like(logits).int().scatter(1, chosen, 1).bool()
    x = torch.zeros(tokens, device=D)
    return (
        mask.sum((-1, -2)).tolist(),
        torch.bincount(chosen.flatten(), minlength=8).tolist(),
        routes.sum(0).tolist(),
        torch.where(mask[5])[0].shape[0],
        torch.where(chosen == 5)[0].shape[0],
        x[(chosen == 5).any(-1)].shape[0],
        x.expand(8, -1).masked_select(routes.T).shape[0],
    )


def after_stale():
    stale = [torch.full((128,), 0x3FFFFFFF, dtype=torch.int32).to(D) for _ in range(64)]
    del stale
    return torch.ones(16, device=D, dtype=torch.int32).nonzero().shape[0]


def gathered_objects():
    found = [None] * 4
    dist.all_gather_object(found, {"a": 1})
    return found


def gathered_into_rows():
    out = torch.empty(1, 8, device=D)
    dist.all_gather_into_tensor(out, torch.ones(2, device=D))
    return out


def gathered_with_gradient():
    found = [torch.zeros(2, device=D) for _ in range(4)]
    dist.all_gather(found, torch.tensor([1.0, 2.0], device=D, requires_grad=True))
    return [one.tolist() for one in found]


def sent_objects():
    """What rank 0 sent to this one, which is rank 1, in the run before."""
    with mock.patch.object(ranks.dist, "get_rank", return_value=0):
        dist.send_object_list([{"shape": (2, 3)}, 5], dst=1)
    ranks._letters.clear()
    found = [None, None]
    dist.recv_object_list(found, src=0)
    return found


def said(**given):
    """The rank and the number of ranks that a program gives itself."""
    with mock.patch.dict(os.environ):
        for name in ("RANK", "WORLD_SIZE"):
            os.environ.pop(name, None)
        return ranks._said(given)


def reduced(op):
    x = torch.tensor([1.0, 2.0], device=D)
    dist.all_reduce(x, op)
    return x.tolist()


def reduced_on_cpu():
    x = torch.tensor([3])
    dist.all_reduce(x)
    return x.tolist()


def gathered():
    found = [torch.empty(2, dtype=torch.int64, device=D) for _ in range(4)]
    dist.all_gather(found, torch.tensor([5, 6], device=D))
    return [x.tolist() for x in found]


def scattered():
    out = torch.empty(1, device=D)
    dist.reduce_scatter_tensor(out, torch.tensor([2.0, 3.0, 4.0, 5.0], device=D))
    return out.tolist()


def sent_as_list():
    mine = ["mine"]
    dist.broadcast_object_list(mine, src=0)
    return mine


def given(expression):
    """Evaluates an expression on the line for which a value is given."""
    return eval(compile(expression, "/code/given.py", "eval"), {**globals(), "big": torch.randn(1000, 1000, device=D)})


GIVEN = [
    ("given('big.sum().item()')", 0.25),
    ("given('bool((big > 0).any())')", True),
    ("given('big.sum().int().item()')", 0),
    ("given('big[0, :2].tolist()')", [0.25, 0.25]),
    ("given('torch.zeros(3).copy_(big[0, :3]).tolist()')", [0.25] * 3),
    ("given('big[big > 0].shape')", (250_000,)),
    ("given('(big > 0).nonzero().shape')", (250_000, 2)),
    ("given('torch.equal(big, big + 1)')", True),
    ("given('torch.ones(3, device=D).sum().item()')", 3.0),
    ("(torch.randn(1000, 1000, device=D) * 2).sum().item()", 0.0),
]
"""What is given is read where no kernel computed it, and only there."""


def convolved():
    torch.nn.Conv2d(3, 8, 3, device=D)(torch.randn(2, 3, 32, 32, device=D))
    return prediction._result._values.has_convolved


def gradient_of_scattered(size):
    values = torch.randn(1000, device=D, requires_grad=True)
    torch.zeros(size, device=D).masked_scatter(torch.randn(size, device=D) > 0, values).sum().backward()
    return values.grad


def mesh():
    made = dist.device_mesh.init_device_mesh("cuda", (2, 2), mesh_dim_names=("a", "b"))
    return made["a"].size(), made["b"].size()


def parallel():
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(256, 256).to(D), device_ids=[0])
    model(torch.ones(4, 256, device=D)).sum().backward()
    return model.module.weight.grad.shape == (256, 256)


def sharded():
    try:
        from torch.distributed.fsdp import fully_shard
    except ImportError:
        from torch.distributed._composable.fsdp import fully_shard
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Linear(256, 256)).to(D)
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(4, 256, device=D)).sum().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return True


def same(found, expected):
    if isinstance(found, torch.Size):
        return tuple(found) == expected
    return found == expected


def main():
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    dist.init_process_group("nccl")
    wrong, done = 0, 0
    for expression, expected in SMALL + LARGE + GIVEN + RANKS:
        if word not in expression:
            continue
        done += 1
        try:
            found = eval(expression)
        except Exception as error:
            found = error
            if word:
                import traceback

                traceback.print_exc()
        if not same(found, expected):
            wrong += 1
            print(f"{expression}\n    is {found!r:.300}\n    not {expected!r:.100}")
    print(f"PyTorch {torch.__version__}: {done - wrong} of {done} as they should be", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
