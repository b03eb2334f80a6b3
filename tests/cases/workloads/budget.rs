//! Budgets: what is planned equals what is simulated, and the largest batch of a card is proven.

use super::*;

/// The options of a model as llama is built.
const LLAMA: [&str; 8] = ["--mlp", "gated", "--norm", "rms", "--embeddings", "untied", "--ffn", "1408"];
/// The options of a mixture of experts, without their number.
const MIXTURE: [&str; 4] = ["--active-experts", "2", "--kv-heads", "2"];

#[test]
fn a_plan_agrees_with_its_simulation() -> Result<()> {
    let small =
        ["budget", "--layers", "4", "--hidden", "512", "--heads", "8", "--seq", "256", "--batch", "2", "--simulate"];
    let cases: &[&[&str]] = &[
        &[],
        &["--precision", "fp32", "--optimizer", "sgd"],
        &["--precision", "bf16", "--attention", "plain", "--dropout"],
        &["--checkpoint", "full"],
        &["--checkpoint", "every-3", "--kv-heads", "2", "--ffn", "1000"],
        // Like llama, Qwen 2, GPT-NeoX, Phi and Mixtral.
        &[&LLAMA[..], &["--bias", "none"]].concat(),
        &[&LLAMA[..], &["--bias", "qkv", "--kv-heads", "2", "--head-dim", "96", "--checkpoint", "every-2"]].concat(),
        &["--block", "parallel", "--embeddings", "untied", "--positions", "256"],
        &["--block", "parallel-one-norm", "--attention", "plain", "--dropout", "--kv-heads", "1"],
        &[&LLAMA[..], &["--bias", "none"], &MIXTURE, &["--experts", "8"]].concat(),
        &[&LLAMA[..], &MIXTURE, &["--experts", "6", "--shared-experts", "2", "--checkpoint", "full"]].concat(),
        // Adapters and quantised weights.
        &[&LLAMA[..], &["--lora-rank", "16"]].concat(),
        &[&LLAMA[..], &["--lora-rank", "8", "--lora-targets", "all", "--precision", "bf16", "--dropout"]].concat(),
        &["--lora-rank", "8", "--lora-targets", "qkv,down", "--block", "parallel-one-norm", "--quantize", "int8"],
        &["--lora-rank", "8", "--lora-targets", "o", "--block", "parallel-one-norm", "--quantize", "nf4"],
        &[&LLAMA[..], &MIXTURE, &["--experts", "4", "--shared-experts", "1", "--lora-rank", "4"]].concat(),
        &[
            &LLAMA[..],
            &MIXTURE,
            &["--experts", "4", "--lora-rank", "4", "--lora-targets", "up,down", "--checkpoint", "full"],
        ]
        .concat(),
        // Devices.
        &["--micro-batches", "3"],
        &["--optimizer", "adam-fused"],
        &["--tensor", "4"],
        &[&LLAMA[..], &["--tensor", "2", "--kv-heads", "2"]].concat(),
        &["--tensor", "2", "--sequence-parallel", "--dropout", "--attention", "plain", "--checkpoint", "every-2"],
        &["--pipeline", "2"],
        &["--pipeline", "4", "--micro-batches", "9", "--embeddings", "untied", "--checkpoint", "full"],
        &["--data", "4"],
        &["--data", "4", "--zero", "1", "--precision", "fp32"],
        &["--data", "4", "--zero", "2", "--micro-batches", "2"],
        &["--data", "3", "--zero", "3"],
        &[&LLAMA[..], &["--data", "4", "--zero", "3", "--checkpoint", "full", "--tensor", "2"]].concat(),
        &[&LLAMA[..], &["--data", "4", "--zero", "3", "--lora-rank", "8", "--quantize", "nf4-double"]].concat(),
        &[&LLAMA[..], &MIXTURE, &["--experts", "8", "--data", "4", "--expert-parallel", "4", "--zero", "2"]].concat(),
        &[&LLAMA[..], &MIXTURE, &["--experts", "8", "--data", "4", "--expert-parallel", "2", "--zero", "3"]].concat(),
    ];
    for more in cases {
        let printed = printed(&[&small, *more].concat())?;
        let parts = printed["simulation"]["parts"].as_array().context("no parts")?;
        for part in parts.iter().filter(|part| part["planned_bytes"].as_u64() > Some(0)) {
            // Formulas leave out the norms' statistics, and the last norm is freed before a segment is recomputed.
            let ratio = part["ratio"].as_f64().context("no ratio")?;
            assert!((0.95..1.05).contains(&ratio), "{more:?} {part}");
        }
        assert!(parts.iter().any(|part| part["part"] == "gradients"), "{more:?}");
        let ratio = printed["simulation"]["ratio"].as_f64().context("no ratio")?;
        assert!((0.95..1.3).contains(&ratio), "{more:?} {ratio}");
    }
    // The text names every formula with its source.
    let text = String::from_utf8(program::run(&["budget", "--explain", "--params", "7e9", "--kv", "4096"])?.stdout)?;
    for word in ["P = 7,000,000,000", "ZeRO", "Korthikanti", "KV cache", "<- peak", "16h + 4f"] {
        assert!(text.contains(word), "{word} is not in {text}");
    }
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
    assert!(String::from_utf8_lossy(&refused.stderr).contains("the formulas know bitsandbytes"));
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
        "s = 8,000 tokens per sequence",
        "Shazeer 2020",
        "Mixtral of Experts",
        "embeddings untied",
    ] {
        assert!(text.contains(word), "{word} is not in {text}");
    }
    Ok(())
}

#[test]
fn a_card_has_a_largest_batch_that_is_proven() -> Result<()> {
    let small = ["budget", "--layers", "8", "--hidden", "2048", "--heads", "16", "--seq", "1024", "--card", "t4-16gb"];
    let cases: &[&[&str]] = &[
        &[],
        &["--checkpoint", "full"],
        &["--lora-rank", "8", "--quantize", "nf4"],
        &["--tensor", "2", "--pipeline", "2"],
        &["--data", "8", "--zero", "3", "--conf", "expandable_segments:True"],
    ];
    for more in cases {
        let fit = &printed(&[&small, *more].concat())?["fit"];
        assert_eq!((&fit["card"], &fit["fits"]), (&"T4-16GB".into(), &true.into()), "{more:?}");
        let batch = |row: &Value| row["value"].as_str().and_then(|text| text.parse::<u64>().ok()).context("no batch");
        let simulated = &fit["simulated"];
        assert_eq!(simulated["found"], "between", "{more:?} {fit}");
        let (fits, fails) = (batch(&simulated["fits"])?, batch(&simulated["fails"])?);
        assert_eq!(fits + 1, fails, "{more:?}");
        let planned = fit["planned"]["batch"].as_u64().context("no planned batch")?;
        assert!(
            fits <= planned + planned / 10 && fits >= planned * 7 / 10,
            "{more:?}: {planned} planned, {fits} simulated"
        );
        // The same two batches, simulated one by one.
        let capacity = fit["usable_bytes"].to_string();
        let devices = if more.contains(&"--pipeline") { continue } else { more };
        for (batch, has_failed) in [(fits, false), (fails, true)] {
            let batch = batch.to_string();
            let own = printed(
                &[&small[..9], *devices, &["--simulate", "--capacity", &capacity, "--batch", &batch]].concat(),
            )?;
            assert_eq!(!own["simulation"]["error"].is_null(), has_failed, "{more:?} {batch}");
        }
    }
    // What is too large, and what is not simulated.
    let llama = ["budget", "--layers", "80", "--hidden", "8192", "--heads", "64", "--card", "H100"];
    let fit = &printed(&llama)?["fit"];
    assert_eq!((&fit["fits"], &fit["planned"]["batch"]), (&false.into(), &0.into()));
    assert_eq!(fit["simulated"]["found"], "below");
    let text = String::from_utf8(program::run(&[&llama[..], &["--optimizer", "none"]].concat())?.stdout)?;
    for part in
        ["DOES NOT FIT on H100-80GB: needs ", "not even a batch of 1 fits", "not simulated: A simulation trains"]
    {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    Ok(())
}

#[test]
fn the_answer_comes_first_and_then_what_it_assumes() -> Result<()> {
    let text = |more: &[&str]| -> Result<String> {
        Ok(String::from_utf8(program::run(&[&["budget"], more].concat())?.stdout)?)
    };
    let plain = text(&["--layers", "12", "--hidden", "768", "--heads", "12"])?;
    assert!(plain.starts_with("NEEDS ") && plain.contains("(end of the forward pass): T4-16GB\n"), "{plain}");
    assert!(
        plain.contains("assumes: ") && plain.contains("--optimizer adam-fused") && !plain.contains("ZeRO"),
        "{plain}"
    );
    assert!(plain.ends_with("add --explain\n"), "{plain}");
    let short = text(&["--layers", "12", "--hidden", "768", "--heads", "12", "--positions", "1024"])?;
    assert!(short.contains("! --seq is 2,048, and the model has 1,024 positions. Give --seq 1024."), "{short}");
    let card = text(&["--layers", "2", "--hidden", "512", "--heads", "8", "--card", "H100"])?;
    assert!(card.starts_with("FITS on H100-80GB: needs "), "{card}");
    // Llama 8B in 16 bits, trained by PyTorch with AdamW and fused=True: 59.9 GiB at the peak, on PyTorch's own allocator.
    let llama = [
        "budget",
        "--layers",
        "32",
        "--hidden",
        "4096",
        "--heads",
        "32",
        "--kv-heads",
        "8",
        "--ffn",
        "14336",
        "--vocab",
        "128256",
        "--mlp",
        "gated",
        "--norm",
        "rms",
        "--bias",
        "none",
        "--embeddings",
        "untied",
        "--seq",
        "1024",
        "--precision",
        "bf16",
        "--optimizer",
        "adam-fused",
    ];
    let peak = printed(&llama)?["plan"]["peak_bytes"].as_f64().context("no peak")? / f64::from(1 << 30);
    assert!((peak / 59.9 - 1.0).abs() < 0.03, "{peak} GiB");
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
