//! What the command says, from its arguments to its text.

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    budget: BudgetCommand,
}

/// Returns the command of some words.
pub(super) fn command(words: &str) -> BudgetCommand {
    Program::try_parse_from(["budget"].into_iter().chain(words.split_whitespace())).unwrap().budget
}

/// Returns what the command prints, or why it refuses.
fn said(words: &str) -> String {
    command(words).plan().map_or_else(|error| error, |printed| text::of(&printed, false))
}

#[test]
fn each_assumption_is_said() {
    let nf4 = "llama-3-8b --quantize nf4 --lora-rank 8";
    let cases = [
        ("llama-3.1-8b --seq 16k".to_owned(), "no dropout, rope scaling (llama3 × 8) beyond 8,192 tokens"),
        ("llama-3-8b --optimizer none".to_owned(), "Transformers without torch.compile, 16 bits, no training"),
        (
            "gpt-oss-20b --quantize mxfp4 --optimizer none".to_owned(),
            "experts' matrices in MXFP4 (4 bits, and a scale of 8 bits for each 32 weights), the rest in 16 bits, no training",
        ),
        (
            "deepseek-v3 --quantize fp8 --optimizer none".to_owned(),
            "matrices of the layers but routers in FP8 (8 bits, and a 32-bit scale for each 128 × 128 weights), the rest in 16 bits",
        ),
        (nf4.to_owned(), "the rest in 16 bits, without prepare_model_for_kbit_training (--kbit-training), Adam"),
        (format!("{nf4} --precision fp32"), "32-bit constant for each 64 weights, the rest in 32 bits, Adam"),
        (format!("{nf4} --precision autocast"), "the rest in 32 bits with torch.autocast, Adam"),
        (
            format!("{nf4} --kbit-training"),
            "the rest and all results in 32 bits, as prepare_model_for_kbit_training leaves it, Adam",
        ),
        (format!("{nf4} --kbit-training"), "attention in tiles, recomputation, no dropout"),
        (format!("{nf4} --kbit-training --checkpoint none"), "attention in tiles, no recomputation"),
        (
            format!("{nf4} --kbit-training --precision autocast"),
            "the rest in 32 bits as prepare_model_for_kbit_training leaves it, with torch.autocast",
        ),
    ];
    for (words, want) in cases {
        let said = said(&words);
        assert!(said.lines().any(|line| line.starts_with("assumes: ") && line.contains(want)), "{words}: {said}");
    }
}

#[test]
fn a_place_is_a_card_or_an_amount() {
    // Weights of 15.0 GiB, and little else.
    let llama = "llama-3-8b --optimizer none --seq 512";
    let cases = [
        ("--card RTX_3090", "FITS on RTX3090-24GB: needs 15.1 GiB of 23.1 GiB", false),
        ("--card a10g", "FITS on A10G-24GB: needs 15.1 GiB of 21.5 GiB", false),
        ("--capacity 22GiB", "FITS in 22.0 GiB: needs 15.1 GiB of 22.0 GiB, 6.92 GiB to spare", false),
        ("--capacity 12GiB", "DOES NOT FIT in 12.0 GiB: needs 15.1 GiB, but only 12.0 GiB is available", true),
        ("--card T4", "DOES NOT FIT on T4-16GB: needs 15.1 GiB", true),
        // What may fit trips no gate.
        ("--capacity 15GiB", "MAY FIT in 15.0 GiB: needs 15.1 GiB of 15.0 GiB", false),
        ("--capacity 22", "--capacity: \"22\" is a number of bytes. Write it with a unit, like 22GiB.", false),
        ("", "--fail-on oom says nothing without a place to fit. Give --card H100-80GB or --capacity 22GiB.", false),
    ];
    for (place, want, is_tripped) in cases {
        let words = format!("{llama} {place} --fail-on oom");
        let text = said(&words);
        assert!(text.starts_with(want), "{place}: {text}");
        let trips = |words: &str| {
            let command = command(words);
            command.plan().is_ok_and(|printed| command.place.is_tripped(printed.fit.as_ref()))
        };
        assert_eq!(trips(&words), is_tripped, "{place}");
        assert!(!trips(&format!("{llama} {place}")), "{place}");
    }
}

#[test]
fn a_number_of_weights_must_be_that_of_the_shape() {
    let refused = "Leave out --params, or give the options of another shape.";
    let shape = "--layers 12 --hidden 768 --heads 12";
    let cases = [
        ("llama-3-8b --params 8B".to_owned(), None),
        // What it is called.
        ("qwen2.5-7b --params 7B".to_owned(), None),
        // Nothing but the number is given, or not the whole shape.
        ("--params 70B".to_owned(), None),
        ("--params 70B --layers 80".to_owned(), None),
        (
            "llama-3-8b --params 70B".to_owned(),
            Some("70,000,000,000 weights, and the model's shape has 8,030,261,248."),
        ),
        (
            "llama-3-8b --params 8B --layers 16".to_owned(),
            Some("8,000,000,000 weights, and the model's shape has 4,540,469,248."),
        ),
        (format!("{shape} --params 7B"), Some("7,000,000,000 weights, and the shape of the options has 109,632,000.")),
        (format!("{shape} --params 110M"), None),
    ];
    for (words, want) in cases {
        let said = said(&words);
        match want {
            None => assert!(said.starts_with("NEEDS "), "{words}: {said}"),
            Some(want) => assert_eq!(said, format!("--params says {want} {refused}"), "{words}"),
        }
    }
}

#[test]
fn a_sequence_beyond_the_positions_gets_a_warning() {
    let cases = [
        ("llama-3-8b --seq 8k", None),
        ("llama-3-8b --seq 16k", Some("! --seq is 16,384, and the model reads 8,192 tokens without rope scaling.")),
        ("llama-3.1-8b --seq 128k", None),
        (
            "llama-3.1-8b --seq 256k",
            Some(
                "! --seq is 262,144, and the model reads 131,072 tokens with its rope scaling (llama3 × 8 of 8,192 tokens).",
            ),
        ),
        ("gpt2 --seq 2k", Some("! --seq is 2,048, and the model has 1,024 positions. Give --seq 1024.")),
    ];
    for (words, want) in cases {
        let said = said(words);
        match want {
            None => assert!(!said.contains("! --seq"), "{said}"),
            Some(want) => assert!(said.contains(want), "{said}"),
        }
    }
}
