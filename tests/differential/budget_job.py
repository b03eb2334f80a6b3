"""Trains or runs one model of `budget.py`, inside the environment, and prints what PyTorch's allocator counted."""

import json
import sys

import torch
import transformers
import transformers.masking_utils


def peak():
    return torch.cuda.memory_stats()["allocated_bytes.all.peak"]


def now():
    return torch.cuda.memory_stats()["allocated_bytes.all.current"]


def made(job):
    config = transformers.AutoConfig.for_model(**job["config"])
    config._attn_implementation = "sdpa"
    dtype = torch.float32 if job["precision"] in ("fp32", "autocast") else torch.bfloat16
    torch.set_default_dtype(dtype)
    with torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)
    torch.set_default_dtype(torch.float32)
    return model


def adapted(model, rank):
    import peft

    lora = peft.LoraConfig(r=rank, lora_alpha=rank, lora_dropout=0.0, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    return peft.get_peft_model(model, lora)


def optimizer(name, parameters):
    if name == "adam":
        return torch.optim.AdamW(parameters, lr=1e-5, foreach=True)
    if name == "adam-fused":
        return torch.optim.AdamW(parameters, lr=1e-5, fused=True)
    return torch.optim.SGD(parameters, lr=1e-5, momentum=0.9 if name == "momentum" else 0.0)


def train(job, model):
    if job.get("lora-rank"):
        model = adapted(model, job["lora-rank"])
    model.train()
    model.config.use_cache = False
    if job.get("checkpoint") == "full":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    result = {"weights": now()}
    steps = optimizer(job["optimizer"], [p for p in model.parameters() if p.requires_grad])
    tokens = torch.zeros((job["batch"], job["seq"]), dtype=torch.long, device="cuda")
    for _ in range(3):
        start = now()
        torch.cuda.reset_peak_memory_stats()
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=job["precision"] == "autocast"):
            loss = model(input_ids=tokens, labels=tokens).loss
        result["kept"] = now() - start
        result["forward"] = peak()
        torch.cuda.reset_peak_memory_stats()
        loss.backward()
        result["backward"] = peak()
        result["gradients"] = now() - start
        del loss
        torch.cuda.reset_peak_memory_stats()
        steps.step()
        result["step"] = peak()
        steps.zero_grad()
    result["always"] = now()
    result["peak"] = max(result[moment] for moment in ("forward", "backward", "step"))
    return result


def infer(job, model):
    model.eval()
    result = {"weights": now()}
    tokens = torch.zeros((job["batch"], job["seq"]), dtype=torch.long, device="cuda")
    torch.cuda.reset_peak_memory_stats()
    with torch.inference_mode():
        out = model(input_ids=tokens, use_cache=True, logits_to_keep=1)
    result["kept"] = now() - result["weights"]
    del out
    result["peak"] = peak()
    return result


def main():
    # It asks the device whether positions follow each other, and no kernel runs. They do.
    transformers.masking_utils.find_packed_sequence_indices = lambda positions: None
    job = json.loads(sys.argv[1])
    torch.backends.cuda.enable_cudnn_sdp(False)
    model = made(job)
    result = infer(job, model) if job["optimizer"] == "none" else train(job, model)
    result["params"] = sum(p.numel() for p in model.parameters())
    print(json.dumps(result))


if __name__ == "__main__":
    main()
