"""Evaluations that keep something, once or again and again."""

import torch
import torch.nn.functional as F
from torch import nn

from job import leaking
from models import DEVICE, convnet, labels, mlp, pictures, tokens, transformer, language_loss, update


@leaking(share=0.15)
def evaluation_with_graph(run):
    """The evaluation forgets no_grad and keeps its loss of every epoch, so the graph of each evaluation stays."""

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.head = nn.Linear(512, 1024), nn.Linear(1024, 1024), nn.Linear(1024, 10)

        def forward(self, x):
            x = torch.tanh(self.first(x))  # leaks
            x = torch.tanh(self.second(x))  # leaks
            return self.head(x)

    model, curve = Classifier().to(DEVICE), []
    optimizer = torch.optim.AdamW(model.parameters())
    for step in run.steps(60):
        x = torch.zeros(512, 512).to(DEVICE)
        update(optimizer, F.cross_entropy(model(x), labels(512)))
        if step % 10 == 9:
            validation = 0
            for _ in range(3):
                x = torch.zeros(64, 512).to(DEVICE)  # leaks
                validation = validation + F.cross_entropy(model(x), labels(64))  # leaks
            curve.append(validation)


@leaking(share=0.0056)
def evaluation_outputs_kept(run):
    """Each evaluation adds its outputs to a list that the trainer never empties."""
    model = convnet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    class Trainer:
        predictions = []

        def train(self):
            update(optimizer, F.cross_entropy(model(pictures(96)), labels(96, 100)))

        @torch.no_grad()
        def evaluate(self):
            model.eval()
            for _ in range(4):
                scores = model(pictures(64))
                self.predictions.append(F.softmax(scores, dim=1))  # leaks
            model.train()

    trainer = Trainer()
    for step in run.steps(60):
        trainer.train()
        if step % 12 == 11:
            trainer.evaluate()


@leaking(share=0.02)
def metric_never_reset(run):
    """A metric collects predictions and targets in every step, and nobody calls its reset."""

    class Recall:
        def __init__(self):
            self.predictions, self.targets = [], []

        def update(self, scores, targets):
            self.predictions.append(scores.detach().argmax(dim=1))  # leaks
            self.targets.append(targets.to(torch.int32))  # leaks

        def reset(self):
            self.predictions.clear()
            self.targets.clear()

    model, metric = mlp(256, 512, 32), Recall()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in run.steps(60):
        x, y = torch.zeros(2048, 256).to(DEVICE), labels(2048, 32)
        scores = model(x)
        metric.update(scores, y)
        update(optimizer, F.cross_entropy(scores, y))


@leaking(share=0.0075)
def matrix_of_each_evaluation(run):
    """Every evaluation makes a new confusion matrix on the GPU, and all of them are kept for a report."""
    model, matrices = transformer(width=256, layers=2), []
    optimizer = torch.optim.AdamW(model.parameters())
    for step in run.steps(72):
        update(optimizer, language_loss(model, tokens(4, 128)))
        if step % 8 == 7:
            with torch.no_grad():
                matrix = torch.zeros(192, 192, device=DEVICE)  # leaks
                for _ in range(3):
                    words = tokens(4, 128)
                    guesses = model(words).argmax(dim=-1) % 192
                    places = (words % 192 * 192 + guesses).flatten()
                    matrix.view(-1).scatter_add_(0, places, torch.ones(512, device=DEVICE))
            matrices.append(matrix)


@leaking(share=0.024)
def after_the_training(run):
    """Training ends in the middle of the run; the test after it keeps the features of every batch."""
    model = convnet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(30):
        update(optimizer, F.cross_entropy(model(pictures(128)), labels(128, 100)))
    features = {}
    body = model[:-1].eval()
    with torch.no_grad():
        for batch in run.steps(40):
            x = pictures(128)
            features[batch] = body(x)  # leaks
            model[-1](features[batch]).argmax(dim=1).cpu()
