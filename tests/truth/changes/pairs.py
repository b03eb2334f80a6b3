"""Pairs of programs that differ in one known thing, and what a comparison must say of each."""

import dataclasses

MIB = 1 << 20
# Steps of every program. The last one is compared.
STEPS = 6


@dataclasses.dataclass
class Program:
    """The base program with some of its text replaced."""

    # Texts of its files with what takes their place.
    edits: list = dataclasses.field(default_factory=list)
    # The folder that its files are in, and other names of files.
    folder: str = "src"
    names: dict = dataclasses.field(default_factory=dict)
    release: str = "2.11"
    conf: str = ""
    # Lines that are inserted above each function and class.
    inserted: int = 0


@dataclasses.dataclass
class Pair:
    name: str
    about: str
    before: Program
    after: Program
    # What is right: "nothing", "gaps", a part of the text of the line that changed, or "category NAME".
    cause: str
    # The growth of the cause in bytes; None where only PyTorch's own count of the whole is compared.
    bytes: int | None = None
    # Conditions that must be said to differ.
    said: tuple = ()


def pair(name, about, edits, cause, bytes=None):
    """A pair of the base program and that with some text replaced."""
    return Pair(name, about, Program(), Program(edits), cause, bytes)


# Bytes of one float for each token of a batch, and of the logits: the last token has no next one.
TOKENS = 8 * 255
FLOAT = 4
WIDTH, INSIDE, LAYERS, WORDS, HEADS = 256, 1024, 4, 4096, 8
LOGITS = TOKENS * WORDS * FLOAT
PARAMETERS = FLOAT * (
    2 * WORDS * WIDTH + 2 * WIDTH + LAYERS * (4 * WIDTH + 4 * WIDTH * WIDTH + 4 * WIDTH + 2 * WIDTH * INSIDE + INSIDE + WIDTH)
)

LOSS_LINE = "loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())\n"
STEP_LINE = "        loss = loss_of(model, tokens)\n"

INPUTS = ("inputs of the step",)


def batches_from(memory):
    """Edits: each batch is made on the host, in this memory."""
    made = 'tokens = torch.randint(0, WORDS, (BATCH, LENGTH), device="cuda")'
    return [(made, f'tokens = torch.randint(0, WORDS, (BATCH, LENGTH)){memory}.to("cuda")')]


def sharded(ranks):
    """Edits: this process is one of several that share the model, without the others."""
    imported = """from torch.distributed import device_mesh, init_process_group
from torch.distributed.fsdp import fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

from model import"""
    made = f"""    init_process_group("fake", rank=0, world_size={ranks}, store=FakeStore())
    mesh = device_mesh.init_device_mesh("cuda", ({ranks},))
    model = Transformer(words=WORDS).to("cuda")
    for part in [*model.blocks, model]:
        fully_shard(part, mesh=mesh)
"""
    return [("from model import", imported), ('    model = Transformer(words=WORDS).to("cuda")\n', made)]


PAIRS = [
    pair("leak", "Each step keeps a tensor of 2 MiB.",
         [(STEP_LINE, STEP_LINE + "        kept.append(torch.zeros(512, 1024, device='cuda'))\n")],
         "kept.append(", 2 * MIB * STEPS),
    pair("small_leak", "Each step keeps a row of 1 MiB.",
         [(STEP_LINE, STEP_LINE + "        kept.append(torch.ones(256, 1024, device='cuda'))\n")],
         "kept.append(", MIB * STEPS),
    pair("logits_kept", "Each step keeps its logits, for a log.",
         [("def loss_of(model, tokens):\n", "KEPT = []\n\n\ndef loss_of(model, tokens):\n"),
          ("    return loss\n\n\ndef train", "    KEPT.append(logits.detach().clone())\n    return loss\n\n\ndef train")],
         "KEPT.append(", LOGITS * STEPS),
    Pair("batch", "Twice the batch.", Program(), Program([("BATCH, LENGTH = 8, 256", "BATCH, LENGTH = 16, 256")]), "category activations", said=INPUTS),
    Pair("length", "Twice the length of sequences: the attention's weights grow with its square.",
         Program(), Program([("BATCH, LENGTH = 8, 256", "BATCH, LENGTH = 8, 512")]),
         "F.softmax(scores", LAYERS * HEADS * 8 * (511 * 511 - 255 * 255) * FLOAT, said=INPUTS),
    Pair("short", "Half the length of sequences.", Program(), Program([("BATCH, LENGTH = 8, 256", "BATCH, LENGTH = 8, 128")]),
         "category activations", said=INPUTS),
    Pair("pinned", "Batches come from pinned memory of the host.", Program(batches_from("")), Program(batches_from(".pin_memory()")), "nothing"),
    Pair("world_size", "A model in eight shards in place of four.", Program(sharded(4)), Program(sharded(8)),
         "optimizer.step()", -2 * PARAMETERS // 8),
    pair("checkpoints", "Activation checkpointing is turned on.", [("Transformer(words=WORDS)", "Transformer(words=WORDS, checkpoints=True)")],
         "category activations"),
    Pair("no_checkpoints", "Activation checkpointing is turned off.",
         Program([("Transformer(words=WORDS)", "Transformer(words=WORDS, checkpoints=True)")]), Program(), "category activations"),
    pair("dropout", "Dropout is added, whose masks are kept.", [("Transformer(words=WORDS)", "Transformer(words=WORDS, dropout=0.1)")],
         "F.dropout(y, self.dropout)"),
    pair("inside", "The inner layer is twice as wide.", [("inside=1024", "inside=2048")], "any of self.up(self.norm2(x))|F.gelu(y)"),
    pair("layers", "Twice as many layers.", [("layers=4", "layers=8")], "category activations"),
    pair("words", "Twice as many words.", [("WORDS = 4096", "WORDS = 8192")], "any of logits = model(|F.cross_entropy(|self.head(|backward()"),
    pair("ema", "An averaged copy of the weights.",
         [("    kept = []\n", "    average = copy.deepcopy(model).requires_grad_(False)\n    kept = [average]\n")],
         "copy.deepcopy(", PARAMETERS),
    pair("extra_loss", "A second term of the loss, of the probabilities.",
         [(LOSS_LINE, LOSS_LINE + "    loss = loss + 1e-4 * logits.exp().pow(2).mean()\n")],
         "logits.exp()"),
    pair("buffer", "A buffer of 48 MiB is made at the start.",
         [("    kept = []\n", "    kept = []\n    buffer = torch.zeros(48, 512, 512, device='cuda')\n    kept.append(buffer)\n")],
         "buffer = torch.zeros(", 48 * MIB),
    pair("sgd", "SGD without momentum in place of AdamW.",
         [("torch.optim.AdamW(model.parameters(), foreach=False)", "torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)")],
         "optimizer.step()", -2 * PARAMETERS),
    pair("momentum", "SGD with momentum in place of AdamW.",
         [("torch.optim.AdamW(model.parameters(), foreach=False)", "torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)")],
         "optimizer.step()", -PARAMETERS),
    pair("bf16", "The model computes in bfloat16.", [('.to("cuda")', '.to("cuda", torch.bfloat16)')], "category activations"),
    pair("accumulation", "Two halves of a batch, one after the other.",
         [("        loss = loss_of(model, tokens)\n        loss.backward()\n",
           "        for half in tokens.chunk(2):\n            loss = loss_of(model, half)\n            loss.backward()\n")],
         "category activations"),
    pair("inserted_above", "Lines are inserted at the top of a file.", [('import copy\n', 'import copy\n' + "# more\n" * 7)], "nothing"),
    Pair("inserted", "Lines are inserted above each function.", Program(), Program(inserted=5), "nothing"),
    Pair("renamed", "A file has another name.", Program(), Program([("from model import", "from network import")], names={"model.py": "network.py"}), "nothing"),
    Pair("elsewhere", "The program lies in another folder.", Program(), Program(folder="other/place/src"), "nothing"),
    Pair("settings", "Expandable segments.", Program(), Program(conf="expandable_segments:True"), "gaps", said=("settings",)),
    Pair("moved_leak", "Lines are inserted, and each step keeps 2 MiB.", Program(),
         Program([(STEP_LINE, STEP_LINE + "        kept.append(torch.zeros(512, 1024, device='cuda'))\n")], inserted=3),
         "kept.append(", 2 * MIB * STEPS),
    # What PyTorch's own matrix products keep is not known beforehand: only the whole is, by its own count.
    Pair("release", "PyTorch 2.8 and 2.11.", Program(release="2.8"), Program(), "q, k, v = "),
    Pair("newer_release", "PyTorch 2.11 and 2.15.", Program(), Program(release="2.15"), "q, k, v = "),
]
