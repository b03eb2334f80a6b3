//! Budgets: what is planned equals what is simulated, and the largest batch of a card is proven.

use super::*;

/// The most that a plan may differ from what PyTorch's allocator counted.
const MOST: f64 = 0.03;

/// The jobs of `collector/budget/TRUTH.md`, which `tests/differential/budget.py` measured.
#[test]
fn a_plan_is_within_three_percent_of_what_pytorch_counted() -> Result<()> {
    let folder = Folder::new("counted")?;
    let path = folder.join("config.json");
    let path = path.to_str().context("no path")?;
    let jobs: Value = serde_json::from_slice(&fs::read(workspace("collector/budget/truth.json"))?)?;
    let jobs = jobs.as_object().context("no jobs")?;
    assert!(jobs.len() >= 12);
    for (name, job) in jobs {
        fs::write(path, job["config"].to_string())?;
        let options = job["arguments"].as_array().context("no arguments")?;
        let options: Vec<&str> = options.iter().filter_map(Value::as_str).collect();
        let plan = printed(&[&["budget", "--config", path], &options[..]].concat())?;
        let planned = plan["plan"]["peak_bytes"].as_f64().context("no plan")?;
        let counted = job["measured"]["peak"].as_f64().context("nothing was counted")?;
        assert!((planned / counted - 1.0).abs() < MOST, "{name}: {planned} planned, {counted} counted");
    }
    Ok(())
}

#[test]
fn a_model_has_a_name() -> Result<()> {
    let plan = printed(&["budget", "qwen3-30b-a3b", "--optimizer", "none", "--seq", "8k"])?;
    assert_eq!((&plan["plan"]["params"], &plan["model"]["seq"]), (&30_532_122_624_u64.into(), &8_192.into()));
    assert_eq!(plan["config"]["file"], "Qwen/Qwen3-30B-A3B");
    // What has no name gets a suggestion, or the list.
    for (name, want) in [("lama-3-8b", "Did you mean llama-3-8b? For any other,"), ("x", "Name one of gpt2, ")] {
        let refused = program::run(&["budget", name])?;
        assert!(String::from_utf8_lossy(&refused.stderr).contains(want), "{refused:?}");
    }
    Ok(())
}

#[test]
fn the_cache_grows_with_the_batch() -> Result<()> {
    let llama = ["budget", "llama-3-8b", "--optimizer", "none", "--precision", "bf16", "--card", "H100-80GB"];
    let fit = &printed(&llama)?["fit"]["largest"];
    // 128 KiB of keys and values and 116 KiB of activations for each of 2,048 tokens: 488 MiB a sequence, beside 15 GiB of weights.
    let batch = fit["batch"].as_u64().context("no batch")?;
    assert!((130..136).contains(&batch), "{fit}");
    let batch = batch.to_string();
    assert_eq!(printed(&[&llama[..], &["--batch", &batch]].concat())?["plan"]["peak_bytes"], fit["peak_bytes"]);
    // A window keeps no more than its tokens, with kernels made for it.
    let cache = |more: &[&str]| -> Result<u64> {
        let plan = printed(&[&["budget", "--optimizer", "none"], more].concat())?;
        let parts = plan["plan"]["parts"].as_array().context("no parts")?;
        let part = parts.iter().find(|part| part["part"] == "kv_cache").context("no cache")?;
        part["bytes"].as_u64().context("no bytes")
    };
    let fused = |seq| cache(&["mistral-7b", "--implementation", "fused", "--seq", seq]);
    assert_eq!(fused("16k")?, fused("4k")?);
    // Transformers keeps the whole prompt until a token follows.
    assert_eq!(cache(&["mistral-7b", "--seq", "16k"])?, 4 * cache(&["mistral-7b", "--seq", "4k"])?);
    assert_eq!(cache(&["llama-3-8b", "--seq", "16k"])?, 4 * cache(&["llama-3-8b", "--seq", "4k"])?);
    Ok(())
}

#[test]
fn a_config_gives_the_shape_and_options_override_it() -> Result<()> {
    let folder = Folder::new("config")?;
    let path = folder.join("config.json");
    let mixtral = r#"{"model_type": "mixtral", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000, "num_local_experts": 8,
        "num_experts_per_tok": 2}"#;
    fs::write(&path, mixtral)?;
    let path = path.to_str().context("no path")?;
    let plan = printed(&["budget", "--config", path])?;
    assert_eq!(plan["plan"]["params"], 46_702_792_704_u64);
    assert_eq!(plan["plan"]["active_params"], 12_879_925_248_u64);
    assert_eq!(plan["config"]["model_type"], "mixtral");
    assert_eq!(plan["model"]["experts"]["count"], 8);

    // Quantised weights in the file count, and can be overridden.
    let quantized = folder.join("quantized.json");
    let format = r#""quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "nf4"},"#;
    fs::write(&quantized, mixtral.replacen('{', &format!("{{{format}"), 1))?;
    let quantized = quantized.to_str().context("no path")?;
    let plan = printed(&["budget", "--config", quantized, "--optimizer", "none"])?;
    assert_eq!(plan["plan"]["quantized"], 46_440_382_464_u64);
    let taken = plan["config"]["taken"].as_array().context("nothing was taken")?;
    assert!(taken.iter().any(|taken| taken["option"] == "quantize" && taken["value"] == "nf4"), "{taken:?}");
    let refused = program::run(&["budget", "--config", quantized])?;
    assert!(String::from_utf8_lossy(&refused.stderr).contains("quantised weights can't be trained"));
    let plan = printed(&["budget", "--config", quantized, "--quantize", "none"])?;
    assert_eq!(plan["plan"]["quantized"], 0);
    fs::write(
        folder.join("gptq.json"),
        mixtral.replacen('{', r#"{"quantization_config": {"quant_method": "gptq", "bits": 4},"#, 1),
    )?;
    let gptq = folder.join("gptq.json").to_string_lossy().into_owned();
    let refused = program::run(&["budget", "--config", &gptq])?;
    assert!(String::from_utf8_lossy(&refused.stderr).contains("the formulas know bitsandbytes, mxfp4 and fp8"));
    assert!(
        printed(&["budget", "--config", &gptq, "--quantize", "int8", "--lora-rank", "8"])?["plan"]["quantized"]
            .as_u64()
            > Some(0)
    );

    // Without experts it is a Mistral 7B.
    let plan = printed(&["budget", "--config", path, "--experts", "0", "--vocab", "32k"])?;
    assert_eq!(plan["plan"]["params"], 7_241_732_096_u64);
    assert_eq!(plan["config"]["overridden"], serde_json::json!(["vocab", "experts", "active-experts"]));

    let text = String::from_utf8(program::run(&["budget", "--explain", "--config", path, "--seq", "8k"])?.stdout)?;
    for word in [
        "experts 8, active-experts 2",
        "P = 46,702,792,704 weights = L (2h² + 2hkd + 2h + 3Ehf + Eh) + 2vh + h",
        "Active for each token: 12,879,925,248",
        "s = 8,192 tokens per sequence",
        "Shazeer 2020",
        "Mixtral of Experts",
        "embeddings untied",
    ] {
        assert!(text.contains(word), "{word} is not in {text}");
    }
    Ok(())
}

#[test]
fn a_card_has_a_largest_batch() -> Result<()> {
    let small = ["budget", "--layers", "8", "--hidden", "2048", "--heads", "16", "--seq", "1024", "--card", "t4-16gb"];
    let cases: &[&[&str]] = &[
        &[],
        &["--checkpoint", "full"],
        &["--lora-rank", "8", "--quantize", "nf4"],
        &["--tensor", "2", "--pipeline", "2"],
        &["--data", "8", "--zero", "3"],
        &["--implementation", "fused"],
    ];
    for more in cases {
        let fit = &printed(&[&small, *more].concat())?["fit"];
        assert_eq!((&fit["card"], &fit["fits"]), (&"T4-16GB".into(), &true.into()), "{more:?}");
        let batch = fit["largest"]["batch"].as_u64().context("no batch")?;
        for (batch, fits) in [(batch, true), (batch + 1, false)] {
            let own = printed(&[&small, *more, &["--batch", &batch.to_string()]].concat())?;
            assert_eq!(own["fit"]["fits"], fits, "{more:?} {batch}");
        }
    }
    // What is too large.
    let llama = ["budget", "--layers", "80", "--hidden", "8192", "--heads", "64", "--card", "H100"];
    let fit = &printed(&llama)?["fit"];
    assert_eq!((&fit["fits"], &fit["largest"]["batch"]), (&false.into(), &0.into()));
    let text = String::from_utf8(program::run(&llama)?.stdout)?;
    for part in ["DOES NOT FIT on H100-80GB: needs ", "not even a batch of 1 fits: it needs "] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    Ok(())
}

/// The formats that models are published in, and the bytes of their files' weights.
#[test]
fn published_formats_are_read() -> Result<()> {
    let folder = Folder::new("formats")?;
    let path = folder.join("config.json");
    let path = path.to_str().context("no path")?;
    let gpt_oss = r#"{"model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 24,
        "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 201088, "num_local_experts": 32,
        "num_experts_per_tok": 4, "sliding_window": 128, "quantization_config": {"quant_method": "mxfp4",
        "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}}"#;
    let deepseek = r#"{"model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
        "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128, "vocab_size": 129280,
        "first_k_dense_replace": 3, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "q_lora_rank": 1536,
        "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "quantization_config":
        {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128]}}"#;
    let cases = [
        (gpt_oss, "mxfp4", 19_110_297_600_u64, 13_761_264_768_u64),
        (deepseek, "fp8", 669_065_609_216, 673_150_552_416),
    ];
    for (config, format, quantized, bytes) in cases {
        fs::write(path, config)?;
        let plan = printed(&["budget", "--config", path, "--optimizer", "none"])?;
        let taken = plan["config"]["taken"].as_array().context("nothing was taken")?;
        assert!(taken.iter().any(|taken| taken["option"] == "quantize" && taken["value"] == format), "{taken:?}");
        assert_eq!(plan["plan"]["quantized"], quantized, "{format}");
        let parts = plan["plan"]["parts"].as_array().context("no parts")?;
        assert!(parts.iter().any(|part| part["part"] == "weights" && part["bytes"] == bytes), "{format}: {parts:?}");
    }
    Ok(())
}

#[test]
fn a_plan_that_does_not_fit_trips_the_gate_if_asked() -> Result<()> {
    let llama = ["budget", "llama-3-8b", "--optimizer", "none"];
    let cases: [(&[&str], i32); 5] = [
        (&["--card", "T4"], 0),
        (&["--card", "T4", "--fail-on", "oom"], 1),
        (&["--card", "T4", "--fail-on", "never"], 0),
        (&["--capacity", "22GiB", "--fail-on", "oom"], 0),
        (&["--capacity", "12GiB", "--fail-on", "oom", "--json"], 1),
    ];
    for (more, want) in cases {
        let output = program::run(&[&llama[..], more].concat())?;
        assert_eq!(output.status.code(), Some(want), "{more:?}: {output:?}");
    }
    Ok(())
}

#[test]
fn the_answer_comes_first_and_then_what_it_assumes() -> Result<()> {
    let text = |more: &[&str]| -> Result<String> {
        Ok(String::from_utf8(program::run(&[&["budget"], more].concat())?.stdout)?)
    };
    let plain = text(&["--layers", "12", "--hidden", "768", "--heads", "12"])?;
    assert!(plain.starts_with("NEEDS ") && plain.contains("(loss of the backward pass): T4-16GB\n"), "{plain}");
    assert!(
        plain.contains("assumes: ") && plain.contains("--optimizer adam-fused") && !plain.contains("ZeRO"),
        "{plain}"
    );
    assert!(plain.ends_with("add --explain\n"), "{plain}");
    let small = ["--layers", "12", "--hidden", "768", "--heads", "12", "--positions", "1024"];
    assert!(!text(&small)?.contains("! --seq"));
    let short = text(&[&small[..], &["--seq", "2k"]].concat())?;
    assert!(short.contains("! --seq is 2,048, and the model has 1,024 positions. Give --seq 1024."), "{short}");
    let card = text(&["--layers", "2", "--hidden", "512", "--heads", "8", "--card", "H100"])?;
    assert!(card.starts_with("FITS on H100-80GB: needs "), "{card}");
    Ok(())
}

#[test]
fn a_divided_model_says_what_a_device_has() -> Result<()> {
    let text = String::from_utf8(
        program::run(&[
            "budget",
            "--explain",
            "--data",
            "2",
            "--tensor",
            "4",
            "--pipeline",
            "2",
            "--micro-batches",
            "8",
            "--zero",
            "1",
        ])?
        .stdout,
    )?;
    for part in [
        "16 devices (2 data-parallel, 4 tensor-parallel, 2 stages); each step has 16 sequences",
        "A device of the first of 2 stages, which needs most, has W = ",
        "W = 838,582,272 weights = L (4had + 3ad + 6h + 2hf + f) + vh, where",
        "L = 16 layers, a = 8 heads",
        "2 × 4W/2",
        "2 × (L (sb (",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let text =
        String::from_utf8(program::run(&["budget", "--explain", "--lora-rank", "8", "--quantize", "nf4"])?.stdout)?;
    for part in [
        "T = 4,194,304 weights of adapters = L (4rh), 0.064 % of P",
        "Q = 6,442,450,944 quantised weights",
        "2 (P - Q) + Q/2 + 4Q/64",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    Ok(())
}
