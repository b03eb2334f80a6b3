"""Jobs in other libraries: `integration_jobs.py NAME FOLDER`. Each prints JSON as its last line."""

import json
import os
import pickle
import sys
import time


def data(torch, count=12):
    return torch.utils.data.TensorDataset(torch.zeros(count, 8), torch.zeros(count, 1))


def lightning(folder):
    """Fits with accumulation and validation, then tests, then fails, then trains in a recording of its own."""
    import lightning.pytorch as pl
    import torch

    import vramscope
    from vramscope.integrations.lightning import VramscopeCallback
    from vramscope.integrations.scalars import Scalars

    class Model(pl.LightningModule):
        fails = False

        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(8, 1)

        def training_step(self, batch, _):
            if self.fails:
                raise KeyError("mine")
            return self.layer(batch[0]).sum()

        def validation_step(self, batch, _):
            self.layer(batch[0])

        test_step = validation_step

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    seen = []
    callback = VramscopeCallback(
        scalars=Scalars(lambda values, step: seen.append((step, values["vramscope/peak_gib"] > 0))),
        out=os.path.join(folder, "run.vramscope"),
    )

    def trainer():
        return pl.Trainer(
            max_epochs=2, accumulate_grad_batches=2, callbacks=[callback], accelerator="gpu", devices=1, logger=False,
            enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=1,
            default_root_dir=folder,
        )

    loader = torch.utils.data.DataLoader(data(torch), batch_size=3)
    model = Model()
    trainer().fit(model, loader, loader)
    after = [repr(vramscope.detach())]
    trainer().test(model, loader, verbose=False)
    model.fails = True
    try:
        trainer().fit(model, loader)
    except KeyError:
        after.append("KeyError")
    with vramscope.attach(out=os.path.join(folder, "own.vramscope")) as agent:
        model.fails = False
        trainer().fit(model, loader)
        after.append(agent.state)
    after.append(pickle.loads(pickle.dumps(VramscopeCallback(out="x.vramscope", stacks=None)))._options)
    return {"seen": seen, "after": after, "files": sorted(of for of in os.listdir(folder) if of.endswith("vramscope"))}


def transformers(folder):
    """Trains a small model with evaluations by step, and evaluates and trains again."""
    import torch
    from transformers import Trainer, TrainingArguments

    from vramscope.integrations.scalars import Scalars
    from vramscope.integrations.transformers import VramscopeCallback

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(1024, 1024)

        def forward(self, inputs, labels=None):
            outputs = self.layer(inputs)
            return {"loss": outputs.mean(), "logits": outputs}

    items = [{"inputs": torch.zeros(1024), "labels": torch.zeros(1)} for _ in range(8)]
    model, steps = Model(), []
    callback = VramscopeCallback(Scalars(lambda _, step: steps.append(step), every=2), out=os.path.join(folder, "run.vramscope"))
    trainer = Trainer(
        model,
        TrainingArguments(
            output_dir=folder, num_train_epochs=2, per_device_train_batch_size=2, gradient_accumulation_steps=2,
            eval_strategy="steps", eval_steps=2, report_to="none", save_strategy="no", disable_tqdm=True,
        ),
        train_dataset=items, eval_dataset=items[:4], callbacks=[callback],
    )
    copied = pickle.loads(pickle.dumps(VramscopeCallback(out="x.vramscope")))._training
    trainer.train()
    trainer.evaluate()
    trainer.train()
    return {"steps": steps, "copied": copied._agent, "files": sorted(of for of in os.listdir(folder) if of.endswith("vramscope"))}


def wandb(folder):
    """Logs to a run that is kept on the disk, beside the program's own values, and after the run has ended."""
    import torch
    import wandb

    from vramscope.integrations.scalars import Scalars, wandb_sink

    run = wandb.init(mode="offline", dir=folder, project="p")
    scalars, kept = Scalars(wandb_sink()), []
    for step in range(3):
        kept.append(torch.empty(64 << 20, dtype=torch.uint8, device="cuda"))
        scalars.step(step)
        run.log({"loss": 1.0}, step=step)
    steps, until = run.step, time.monotonic() + 20
    while dict(run.summary).get("vramscope/step") != 2 and time.monotonic() < until:
        time.sleep(0.05)  # Another process keeps the summary.
    last = dict(run.summary)
    run.finish()
    scalars.step(3)
    scalars.step(4)
    return {"steps": steps, "last": {name: last[name] for name in last if not name.startswith("_")}, "sinks": len(scalars._sinks)}


def tensorboard(folder):
    """Logs to a file of events, and reads it."""
    import torch
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    from vramscope.integrations.scalars import Scalars, readings, tensorboard_sink

    before = readings()
    writer = SummaryWriter(folder)
    scalars, kept = Scalars(tensorboard_sink(writer), every=2), []
    for step in range(5):
        scalars.step(step)
        kept.append(torch.empty(64 << 20, dtype=torch.uint8, device="cuda"))
    writer.close()
    found = EventAccumulator(folder)
    found.Reload()
    return {
        "before": before,
        "names": found.Tags()["scalars"],
        "allocated": [(of.step, of.value) for of in found.Scalars("vramscope/allocated_gib")],
    }


CELLS = [
    "%load_ext vramscope",
    "import torch\n"
    "def work(mebibytes):\n"
    "    kept = [torch.empty(mebibytes << 20, dtype=torch.uint8, device='cuda') for _ in range(10)]\n"
    "    return len(kept)",
    "%%vramscope SERVER OPTIONS\nwork(7)",
    "%%vramscope SERVER\n1 + 1",
    "import vramscope\nagent = vramscope.attach(out='own.vramscope')",
    "%%vramscope SERVER\nwork(3)",
    "agent.detach()['events']",
    "%%vramscope SERVER\nwork(1)\n{}['missing']",
]


def notebook(folder):
    """Runs a notebook in a kernel of its own. Returns each cell's outputs: texts, and HTML."""
    import nbformat
    from nbclient import NotebookClient

    given = {name: os.environ.get(name, "") for name in ("SERVER", "OPTIONS")}
    cells = [cell.replace("SERVER", given["SERVER"]).replace("OPTIONS", given["OPTIONS"]) for cell in CELLS]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    # The kernel starts as this process did, over the same driver.
    NotebookClient(book, timeout=120, allow_errors=True, resources={"metadata": {"path": folder}}).execute()
    nbformat.write(book, os.path.join(folder, "book.ipynb"))
    found = []
    for cell in book.cells:
        outputs = []
        for of in cell.outputs:
            data = of.get("data", {})
            text = of.get("text") or data.get("text/plain") or of.get("ename", "")
            outputs.append([of.output_type, text, data.get("text/html", "")])
        found.append(outputs)
    return found


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](sys.argv[2])), flush=True)
