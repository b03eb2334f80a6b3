#!/usr/bin/env python3
"""Programs whose memory is predicted without a GPU, and measured with one.

    predicted_jobs.py NAME

Each is a function that runs a whole program of a few steps, and asks PyTorch for a few GB. Models have random weights, made on
the device. Some need `transformers`, `accelerate`, `peft`, `diffusers`, `bitsandbytes` or `torchvision`; the imports are in the
functions, so that the others run without.
"""

import os
import pathlib
import sys
import tempfile

import torch
import torch.nn.functional as F

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent.parent / "truth"), str(HERE)]

import fragmenting
import training
from jobs import models

STEPS = 4


def begin():
    """Runs the matrix product that `remedy.py` begins with, so that cuBLAS has its memory before a capacity is set."""
    torch.ones(64, 64, device="cuda").matmul(torch.ones(64, 64, device="cuda")).sum().item()
    torch.manual_seed(1)


def causal(kind, dtype=torch.bfloat16, **shape):
    """Returns a language model of `transformers`."""
    import transformers

    config = transformers.AutoConfig.for_model(kind, **{"use_cache": False, **shape})
    config._attn_implementation = "sdpa"
    with torch.device("cuda"):
        return transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)


def llama(**more):
    """Returns a model with the layers of Llama 3.2 1B, of which it has fewer unless said otherwise."""
    shape = {"hidden_size": 2048, "intermediate_size": 8192, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64}
    return causal("llama", **{**shape, "num_hidden_layers": 8, "vocab_size": 32000, "tie_word_embeddings": True, **more})


def train(model, optimizer, batch=2, length=1024, words=32000, accumulated=1, precision=None):
    """Trains on random words; with `precision` by autocast."""
    model.train()
    for _ in range(STEPS):
        for _ in range(accumulated):
            tokens = torch.randint(0, words, (batch, length), device="cuda")
            with torch.autocast("cuda", dtype=precision, enabled=precision is not None):
                loss = model(input_ids=tokens, labels=tokens).loss / accumulated
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        print(f"loss {loss.item():.4f}", flush=True)


def gpt():
    """A GPT with attention in its quadratic form, in 32 bits."""
    model = models.GPT(width=1024, layers=12, heads=16).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        models.gpt_step(model, optimizer, batch=4, length=512)


def llama_lora():
    """LoRA on a Llama of 1.2 billion parameters in bfloat16."""
    import peft

    lora = peft.LoraConfig(r=16, lora_alpha=32, lora_dropout=0.05, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    model = peft.get_peft_model(llama(num_hidden_layers=16, vocab_size=128256), lora)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
    train(model, optimizer, batch=1, words=128256)


def resnet50():
    """ResNet-50 in half precision by autocast and a scaler, channels last."""
    step = training.resnet50(batch=64)
    for _ in range(STEPS):
        step()


def vit():
    """ViT-Base in bfloat16 by autocast."""
    import transformers

    config = transformers.ViTConfig(num_labels=1000, attn_implementation="sdpa")
    with torch.device("cuda"):
        model = transformers.ViTForImageClassification(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.05)
    for _ in range(STEPS):
        pictures, labels = torch.randn(64, 3, 224, 224, device="cuda"), torch.randint(0, 1000, (64,), device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(pixel_values=pictures, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def unet():
    """A diffusion model's U-Net with attention to a text, in bfloat16 by autocast."""
    import diffusers

    with torch.device("cuda"):
        model = diffusers.UNet2DConditionModel(
            sample_size=32, block_out_channels=(160, 320, 640, 640), cross_attention_dim=768, attention_head_dim=8
        ).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    scheduler = diffusers.DDPMScheduler(num_train_timesteps=1000)
    for _ in range(STEPS):
        latents, text = torch.randn(8, 4, 32, 32, device="cuda"), torch.randn(8, 77, 768, device="cuda")
        noise, times = torch.randn_like(latents), torch.randint(0, 1000, (8,), device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            found = model(scheduler.add_noise(latents, noise, times), times, text).sample
        F.mse_loss(found.float(), noise).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def t5():
    """T5-Base in 32 bits, from 512 words to 128."""
    import transformers

    config = transformers.T5Config(
        d_model=768, d_kv=64, d_ff=3072, num_layers=12, num_heads=12, decoder_start_token_id=0, use_cache=False
    )
    with torch.device("cuda"):
        model = transformers.T5ForConditionalGeneration(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(STEPS):
        words, answer = (torch.randint(0, config.vocab_size, (4, length), device="cuda") for length in (512, 128))
        model(input_ids=words, labels=answer).loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def bert_trainer():
    """BERT-Base, trained by `transformers.Trainer` in bfloat16."""
    import transformers

    config = transformers.BertConfig(num_labels=2)
    words = torch.randint(0, config.vocab_size, (64, 256))
    rows = [{"input_ids": row, "attention_mask": torch.ones_like(row), "labels": i % 2} for i, row in enumerate(words)]
    with tempfile.TemporaryDirectory() as folder:
        options = transformers.TrainingArguments(
            folder, max_steps=STEPS, per_device_train_batch_size=16, bf16=True, report_to="none", save_strategy="no", disable_tqdm=True
        )
        transformers.Trainer(transformers.BertForSequenceClassification(config), options, train_dataset=rows).train()


def mixture():
    """A mixture of experts: a small Mixtral in bfloat16, two of eight experts for a word."""
    shape = {"hidden_size": 1024, "intermediate_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 32000}
    model = causal("mixtral", **shape, num_hidden_layers=8, num_local_experts=8, num_experts_per_tok=2)
    train(model, torch.optim.AdamW(model.parameters(), lr=1e-5), batch=4)


def checkpointing():
    """A Llama whose layers keep only their inputs for the backward pass."""
    model = llama()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    train(model, torch.optim.AdamW(model.parameters()), batch=8)


def compiled():
    """A Llama's forward and backward pass, compiled by `torch.compile`."""
    model = llama()
    train(torch.compile(model), torch.optim.AdamW(model.parameters()))


def fused():
    """A Llama in bfloat16 by autocast, with the optimizer that needs no temporary memory."""
    model = llama(dtype=torch.float32)
    train(model, torch.optim.AdamW(model.parameters(), fused=True), precision=torch.bfloat16)


def eight_bit():
    """A Llama in bfloat16, with an optimizer that keeps its states in 8 bits."""
    import bitsandbytes

    model = llama()
    train(model, bitsandbytes.optim.AdamW8bit(model.parameters(), lr=1e-5))


def attention(backend, batch=4, heads=16, length=2048):
    """Attention by one of PyTorch's kernels, forward and backward, in four layers without anything else."""
    kernel = getattr(torch.nn.attention.SDPBackend, backend)
    for _ in range(STEPS):
        x = torch.randn(batch, heads, length, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        with torch.nn.attention.sdpa_kernel(kernel):
            for _ in range(4):
                x = F.scaled_dot_product_attention(x, x * 0.5, x * 2, is_causal=True)
            x.sum().backward()


def attention_flash():
    """Attention in tiles, by FlashAttention's kernel in PyTorch."""
    attention("FLASH_ATTENTION", batch=64)


def attention_efficient():
    """Attention in tiles, by xFormers' kernel in PyTorch."""
    attention("EFFICIENT_ATTENTION", batch=64)


def attention_math():
    """Attention in its quadratic form."""
    attention("MATH")


def attention_cudnn():
    """Attention by cuDNN."""
    attention("CUDNN_ATTENTION", batch=64)


def generation():
    """Llama writes 64 words to each of 16 texts of 512, with a cache of keys and values."""
    model = llama(num_hidden_layers=16, vocab_size=128256, use_cache=True).eval()
    words = torch.randint(0, 128256, (16, 512), device="cuda")
    written = model.generate(words, attention_mask=torch.ones_like(words), max_new_tokens=64, min_new_tokens=64, do_sample=False)
    print(tuple(written.shape))


def graphs():
    """Steps of training captured in a CUDA graph, which keeps its memory in a pool of its own."""
    model = models.GPT(width=1024, layers=8, heads=16).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), capturable=True)
    tokens = torch.randint(0, model.words, (4, 513), device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()).backward()
        optimizer.step()

    # Libraries take their memory before the capture, on the stream of the capture.
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        step()
    for _ in range(STEPS):
        graph.replay()


def accumulation():
    """GPT-2 in bfloat16 by autocast; four batches make a step."""
    model = causal("gpt2", dtype=torch.float32, n_layer=12, n_embd=768, n_head=12)
    train(model, torch.optim.AdamW(model.parameters(), lr=1e-4), batch=8, words=50257, accumulated=4, precision=torch.bfloat16)


def one_rank():
    """Starts `torch.distributed` with this process as the only rank, unless a launcher has set another."""
    port = {"MASTER_ADDR": "localhost", "MASTER_PORT": "29517", "RANK": "0", "WORLD_SIZE": "1"}
    os.environ.update({name: value for name, value in port.items() if name not in os.environ})
    torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", 0))


def zero():
    """DDP, with the states of the optimizer shared between ranks, of which there is one."""
    from torch.distributed.optim import ZeroRedundancyOptimizer

    one_rank()
    model = llama()
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-5)
    train(torch.nn.parallel.DistributedDataParallel(model, device_ids=[0]), optimizer)
    torch.distributed.destroy_process_group()


def fsdp2():
    """FSDP2 in mixed precision, with one rank."""
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    one_rank()
    model = llama(dtype=torch.float32)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model.model.layers:
        fully_shard(layer, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    train(model, torch.optim.AdamW(model.parameters(), lr=1e-5))
    torch.distributed.destroy_process_group()


JOBS = {
    "lengths": fragmenting.lengths,
    "caches": fragmenting.caches,
    "gpt": gpt,
    "llama-lora": llama_lora,
    "resnet50": resnet50,
    "vit": vit,
    "unet": unet,
    "t5": t5,
    "bert-trainer": bert_trainer,
    "mixture": mixture,
    "checkpointing": checkpointing,
    "compiled": compiled,
    "fused": fused,
    "eight-bit": eight_bit,
    "attention-flash": attention_flash,
    "attention-efficient": attention_efficient,
    "attention-math": attention_math,
    "attention-cudnn": attention_cudnn,
    "generation": generation,
    "graphs": graphs,
    "accumulation": accumulation,
    "zero": zero,
    "fsdp2": fsdp2,
}


if __name__ == "__main__":
    begin()
    JOBS[sys.argv[1]]()
