"""Programs without a training step: servers, and loops over a data set."""

import torch
import torch.nn.functional as F

from job import leaking
from models import DEVICE, convnet, pictures, tokens, transformer


@leaking(share=0.096)
def finished_caches(run):
    """A server keeps the KV cache of every request in a dictionary, also when the answer is complete."""
    model, caches = transformer(width=256, layers=4).eval(), {}
    with torch.inference_mode():
        for request in run.steps(30):
            length = run.varied(16, 128)
            shape = (2, length + 8, 256)
            caches[request] = [torch.zeros(shape, dtype=torch.bfloat16, device=DEVICE) for _ in range(4)]  # leaks
            for _ in range(8):
                model(tokens(8, length)).argmax(dim=-1)


@leaking(share=0.13)
def log_of_requests(run):
    """The log of a server keeps the scores of each last word: a view, which keeps the scores of all words."""
    model, log = transformer(width=512, layers=4, words=4096).eval(), []
    head = model.head
    with torch.inference_mode():
        for request in run.steps(40):
            hidden = model.embedding(tokens(1, run.varied(8, 40), 4096))
            for block in model.blocks:
                hidden = block(hidden)
            scores = head(hidden)  # leaks
            log.append({"request": request, "scores": scores[:, -1]})


@leaking(share=0.016)
def sessions_without_end(run):
    """Every chat has a session with the embedding of its history; sessions of users who left are never dropped."""
    model, sessions = transformer(width=512, layers=3).eval(), {}
    with torch.inference_mode():
        for turn in run.steps(60):
            user = turn // 2
            hidden = model.embedding(tokens(1, run.varied(100, 400)))
            for block in model.blocks:
                hidden = block(hidden)
            history = sessions.get(user, hidden[:, :0])
            sessions[user] = torch.cat([history, hidden[:, -16:]], dim=1)  # leaks


@leaking(share=0.13)
def beams_kept(run):
    """Beam search keeps the states of the beams of every word, for all sentences that were translated."""
    model, finished = transformer(width=256, layers=2, words=2048).eval(), []
    with torch.inference_mode():
        for _ in run.steps(24):
            scores, states = torch.zeros(5, 1, device=DEVICE), []
            words = tokens(5, 12, 2048)
            for _ in range(run.varied(4, 12)):
                logits = model(words)[:, -1]
                scores, places = (scores + logits.log_softmax(-1)).flatten().topk(5)
                scores = scores[:, None]
                words = torch.cat([words, (places % 2048)[:, None]], dim=1)
                states.append(logits[places // 2048])  # leaks
            finished.append((scores.cpu(), states))


@leaking(share=0.022)
def embeddings_of_a_data_set(run):
    """A program writes the embeddings of a data set to disk, and also keeps those of every batch on the GPU."""
    model, written, names = convnet((64, 128, 256), classes=256).eval(), [], {}
    with torch.no_grad():
        for batch in run.steps(60):
            embedding = model(pictures(run.varied(16, 96), 96))
            names[batch] = F.normalize(embedding)  # leaks
            written.append(names[batch].cpu())
