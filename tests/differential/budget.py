#!/usr/bin/env python3
"""Measures what training steps of Hugging Face models need on PyTorch's allocator, beside what `vramscope budget` plans.

    budget.py [--release 2.11] [--plan PROGRAM] [JOB...]

Each job builds a model from its `config.json`, on the device, and trains it for three steps (or runs it once) with an
official PyTorch release without a GPU (see `environment.py`). What PyTorch counted is kept in `collector/budget/truth.json`,
which `tests/cases/workloads/budget.rs` compares with the plan, and the table in `collector/budget/TRUTH.md`. With `--plan`,
nothing is measured: the table is written from what was kept, with the plans of a program.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import environment

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEPT = ROOT / "collector/budget/truth.json"
TABLE = ROOT / "collector/budget/TRUTH.md"
NEEDED = ["transformers==5.24.0", "accelerate==1.15.0", "peft==0.21.2"]
MOMENTS = ("forward", "backward", "step")


def llama(model_type, hidden, ffn, layers, heads, kv_heads, vocab, **more):
    shape = {"hidden_size": hidden, "intermediate_size": ffn, "num_hidden_layers": layers, "num_attention_heads": heads}
    return {"model_type": model_type, **shape, "num_key_value_heads": kv_heads, "vocab_size": vocab, **more}


def gpt2(hidden, layers, heads):
    return {"model_type": "gpt2", "n_embd": hidden, "n_layer": layers, "n_head": heads, "n_positions": 1024, "vocab_size": 50257}


LLAMA_1B = llama("llama", 2048, 8192, 16, 32, 8, 128256, head_dim=64, tie_word_embeddings=True, max_position_embeddings=131072)
LLAMA_8B = llama("llama", 4096, 14336, 32, 32, 8, 128256, max_position_embeddings=8192)
QWEN3 = llama("qwen3", 1024, 3072, 28, 16, 8, 151936, head_dim=128, tie_word_embeddings=True, max_position_embeddings=40960)
GEMMA3 = llama("gemma3_text", 1152, 6912, 26, 4, 1, 262144, head_dim=256, sliding_window=512, tie_word_embeddings=True)
PHI3 = llama("phi3", 3072, 8192, 32, 32, 32, 32064, max_position_embeddings=4096, sliding_window=2047)
MISTRAL = llama("mistral", 4096, 14336, 32, 32, 8, 32000, sliding_window=4096, max_position_embeddings=32768)
# A few layers of models that are larger than this machine.
EXPERTS = {"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768, "head_dim": 128}
QWEN3_MOE = llama("qwen3_moe", 2048, 6144, 4, 32, 4, 151936, **EXPERTS)
MIXTRAL = llama("mixtral", 4096, 14336, 2, 32, 8, 32000, num_local_experts=8, num_experts_per_tok=2)
LATENT = {"q_lora_rank": 768, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
ROUTED = {"n_routed_experts": 32, "n_shared_experts": 1, "num_experts_per_tok": 8, "n_group": 4, "topk_group": 2}
DEEPSEEK = llama(
    "deepseek_v3", 2048, 6144, 4, 32, 32, 32000, moe_intermediate_size=1024, first_k_dense_replace=1, **LATENT, **ROUTED
)
GEMMA3_27B = llama("gemma3_text", 5376, 21504, 6, 32, 16, 262208, head_dim=128, sliding_window=1024, tie_word_embeddings=True)

# Name: configuration, precision, optimizer, batch, tokens of a sequence, and what else is set.
JOBS = {
    "GPT-2": (gpt2(768, 12, 12), "fp32", "adam", 4, 1024, {}),
    "GPT-2 XL": (gpt2(1600, 48, 25), "bf16", "adam", 1, 1024, {}),
    "GPT-2 medium": (gpt2(1024, 24, 16), "autocast", "adam-fused", 4, 1024, {}),
    "Llama 3.2 1B": (LLAMA_1B, "bf16", "adam-fused", 1, 2048, {}),
    "Llama 3.2 1B, autocast": (LLAMA_1B, "autocast", "adam-fused", 4, 1024, {}),
    "Llama 3.2 1B, autocast, recomputed": (LLAMA_1B, "autocast", "adam-fused", 4, 1024, {"checkpoint": "full"}),
    "Llama 3.2 1B, 32 bits": (LLAMA_1B, "fp32", "momentum", 2, 1024, {}),
    "Llama 3 8B, recomputed": (LLAMA_8B, "bf16", "adam-fused", 1, 2048, {"checkpoint": "full"}),
    "Llama 3 8B, LoRA": (LLAMA_8B, "bf16", "adam", 1, 2048, {"lora-rank": 16}),
    "Llama 3 8B, inference": (LLAMA_8B, "bf16", "none", 8, 2048, {}),
    "Qwen3 0.6B": (QWEN3, "bf16", "adam", 2, 2048, {}),
    "Qwen3 0.6B, autocast": (QWEN3, "autocast", "adam", 2, 1024, {}),
    "Gemma 3 1B": (GEMMA3, "bf16", "adam-fused", 2, 1024, {}),
    "Phi-3 mini, recomputed": (PHI3, "bf16", "adam", 2, 2048, {"checkpoint": "full"}),
    "Mistral 7B, LoRA, autocast": (MISTRAL, "autocast", "adam-fused", 1, 1024, {"lora-rank": 8}),
    "Mistral 7B, SGD": (MISTRAL, "bf16", "sgd", 1, 1024, {}),
    "Qwen3 30B-A3B, 4 layers": (QWEN3_MOE, "bf16", "adam-fused", 1, 2048, {}),
    "Qwen3 30B-A3B, 4 layers, inference": (QWEN3_MOE, "bf16", "none", 1, 16384, {}),
    "Mixtral, 2 layers, inference": (MIXTRAL, "bf16", "none", 1, 16384, {}),
    "like DeepSeek-V3, 4 layers": (DEEPSEEK, "bf16", "adam-fused", 1, 2048, {}),
    "like DeepSeek-V3, 4 layers, inference": (DEEPSEEK, "bf16", "none", 1, 16384, {}),
    "Gemma 3 27B, 6 layers, inference": (GEMMA3_27B, "bf16", "none", 1, 16384, {}),
}


def arguments(job):
    """The options of `vramscope budget` that say what a job does."""
    _, precision, optimizer, batch, seq, more = job
    options = {"precision": precision, "optimizer": optimizer, "batch": batch, "seq": seq, **more}
    return [str(word) for name, value in options.items() for word in (f"--{name}", value)]


def prepared(release):
    made = environment.Environment(release).make()
    stamp = made.folder / "transformers"
    if not stamp.exists() or stamp.read_text() != " ".join(NEEDED):
        pip = [made.python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-cache-dir"]
        environment.run([*pip, "--no-deps", *NEEDED], "download Transformers")
        others = ["huggingface_hub", "tokenizers", "safetensors", "pyyaml", "regex", "tqdm", "requests", "packaging", "numpy", "psutil"]
        environment.run([*pip, *others, "typer"], "download what Transformers needs")
        stamp.write_text(" ".join(NEEDED))
    return made


def measured(made, job):
    config, precision, optimizer, batch, seq, more = job
    asked = {"config": config, "precision": precision, "optimizer": optimizer, "batch": batch, "seq": seq, **more}
    variables = {**made.variables(), "FAKECUDA_CAPACITY": str(256 << 30)}
    command = made.command(pathlib.Path(__file__).with_name("budget_job.py"), json.dumps(asked))
    return json.loads(environment.run(command, "run the job", env=variables).splitlines()[-1])


def planned(program, kept):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(kept["config"], file)
        file.flush()
        command = [program, "budget", "--json", "--config", file.name, *kept["arguments"]]
        return json.loads(environment.run(command, "plan the job"))["plan"]["peak_bytes"]


def write_table(program, kept):
    lines = []
    for name, row in kept.items():
        plan, peak = planned(program, row), row["measured"]["peak"]
        options = " ".join(row["arguments"])
        lines.append(f"| {name} | `{options}` | {peak / 2**20:,.0f} | {plan / 2**20:,.0f} | {100 * (plan / peak - 1):+.1f} % |")
    text = TABLE.read_text()
    head, _, rest = text.partition("<!-- jobs -->\n")
    _, _, tail = rest.partition("<!-- end -->\n")
    rows = "| model | options | counted, MiB | planned, MiB | |\n|---|---|---|---|---|\n" + "\n".join(lines) + "\n"
    TABLE.write_text(f"{head}<!-- jobs -->\n{rows}<!-- end -->\n{tail}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--release", default="2.11")
    parser.add_argument("--plan", metavar="PROGRAM")
    parser.add_argument("jobs", nargs="*", metavar="JOB")
    options = parser.parse_args()
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    if options.plan is not None:
        write_table(options.plan, kept)
        return
    made = prepared(options.release)
    for name in options.jobs or JOBS:
        job = JOBS[name]
        result = measured(made, job)
        kept[name] = {"config": job[0], "arguments": arguments(job), "measured": result}
        print(f"{name}: {result['peak'] / 2**20:,.1f} MiB", flush=True)
    kept = {name: kept[name] for name in JOBS if name in kept}
    KEPT.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
