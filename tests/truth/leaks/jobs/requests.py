"""Clean servers, and loops over a fixed data set."""

import torch
import torch.nn.functional as F

from job import clean
from models import DEVICE, convnet, mlp, pictures, tokens, transformer


@clean
def sessions_that_end(run):
    """A session keeps the cache of its chat, which grows with each turn, and ends after six turns."""
    model, sessions = transformer(width=256, layers=2).eval(), {}
    with torch.inference_mode():
        for turn in run.steps(60):
            if turn % 2 == 0:
                sessions[turn] = [torch.zeros(1, 32, 512, device=DEVICE) for _ in model.blocks]
            for name in list(sessions):
                if turn - name >= 12:
                    del sessions[name]
                elif turn % 2 == 0:
                    new = torch.zeros(1, 24, 512, device=DEVICE)
                    sessions[name] = [torch.cat([cache, new], dim=1) for cache in sessions[name]]
            model(tokens(len(sessions), 16)).argmax(dim=-1)


@clean
def batches_of_all_sizes(run):
    """A server joins the requests that wait to a batch, each time of another size."""
    model = transformer(width=384, layers=3).eval()
    with torch.inference_mode():
        for _ in run.steps(60):
            words = tokens(run.varied(1, 24), run.varied(8, 96, of=1))
            model(words)[:, -1].softmax(dim=-1).cpu()


@clean
def graphs_of_a_warm_up(run):
    """CUDA graphs are captured one by one for 20 sizes of batches, in a warm-up that is half of the history."""
    model, graphs, pool = mlp(512, 1024, 512), {}, torch.cuda.graph_pool_handle()
    with torch.no_grad():
        model(torch.zeros(8, 512, device=DEVICE))
        for size in range(20, 0, -1):
            graph, fixed = torch.cuda.CUDAGraph(), torch.zeros(16 * size, 512, device=DEVICE)
            with torch.cuda.graph(graph, pool=pool):
                result = model(fixed)
            graphs[size] = graph, fixed, result
        for _ in run.steps(40):
            graph, fixed, result = graphs[run.varied(1, 20)]
            fixed.copy_(torch.zeros(len(fixed), 512, device=DEVICE))
            graph.replay()
            result.argmax(dim=1).cpu()


@clean
def streams_with_workspaces(run):
    """Requests run on four streams, the last of which is first used late; each has a workspace of cuBLAS."""
    model, streams = mlp(512, 1024, 512), [torch.cuda.Stream() for _ in range(4)]
    with torch.inference_mode():
        for step in run.steps(60):
            with torch.cuda.stream(streams[step % (1 + min(step // 12, 3))]):
                model(torch.zeros(run.varied(16, 256), 512, device=DEVICE)).sum()


@clean
def features_to_the_host(run):
    """Features of a data set are computed without gradients, and moved to the host batch by batch."""
    model, features = convnet((64, 128, 256), classes=512).eval(), []
    with torch.no_grad():
        for _ in run.steps(50):
            features.append(F.normalize(model(pictures(48))).cpu())
    return features
