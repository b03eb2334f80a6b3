//! vLLM's errors about its start and its KV cache, whose arithmetic stands in the text.

use query::diagnosis::Cause;
use query::finding::Remedy;
use trace::units::{Bytes, Count};

use crate::backend::Backend;
use crate::explanation::{Explanation, Fact, TextKind};
use crate::size::{after, at_start};

/// What the errors say.
const MARKS: [&str; 3] = [
    "No available memory for the cache blocks",
    "larger than the maximum number of tokens that can be stored in KV cache",
    "larger than the available KV cache memory",
];

/// Explains that less was free at the start than vLLM may take:
/// `Free memory on device (60.00/80.00 GiB) on startup is less than desired GPU memory utilization (0.9, 72.00 GiB).`
fn startup(text: &str) -> Option<Explanation> {
    let (head, wanted) = text.rsplit_once("is less than desired GPU memory utilization (")?;
    let (device, figures) = head.rsplit_once("Free memory on device")?.1.split_once('(')?;
    let (free, total) = figures.split_once('/')?;
    let total = at_start(total)?;
    let free = at_start(&[free, " GiB"].concat())?;
    let (share, wanted) = wanted.split_once(',')?;
    let wanted = at_start(wanted)?;
    if free > total || free > wanted {
        return None;
    }
    let sentence = format!(
        "vLLM may take {} of {} (gpu_memory_utilization {share}), and only {} was free when it started: other processes, or an earlier \
         run that has not ended, hold {}.",
        Bytes(wanted),
        Bytes(total),
        Bytes(free),
        Bytes(total.saturating_sub(free))
    );
    // Rounded down, so that it fits.
    let percent = (u128::from(free) * 100).checked_div(u128::from(total)).filter(|percent| (1..100).contains(percent));
    let less = percent.map(|percent| {
        Remedy::advice("Or take what is free.").with_copy(format!("--gpu-memory-utilization 0.{percent:02}"))
    });
    let backend = if device.contains("xpu") { Backend::Xpu } else { Backend::Cuda };
    let monitor =
        Remedy::advice("See who holds the device's memory, and end what is not needed.").with_copy("nvidia-smi");
    let facts = [("allowed to vLLM", wanted), ("free on the device", free), ("on the device in all", total)];
    Some(Explanation {
        cause: Cause::OtherProcess,
        ..of(
            sentence,
            facts.map(|(name, bytes)| (name, Some(bytes))),
            [backend.advise(monitor)].into_iter().chain(less).collect(),
        )
    })
}

/// Explains such an error; `None` if the text has none.
pub(super) fn explain(text: &str) -> Option<Explanation> {
    if let Some(found) = startup(text) {
        return Some(found);
    }
    if !MARKS.iter().any(|mark| text.contains(mark)) {
        return None;
    }
    // "total_gpu_memory (23.64GiB) x gpu_memory_utilization (0.90) = 21.28GiB"
    let total = after(text, "total_gpu_memory (");
    let allowed = text.split_once("gpu_memory_utilization (").and_then(|(_, rest)| after(rest, "="));
    let weights = after(text, "model weights take");
    let activations = after(text, "activation peak memory takes");
    let left = ["reserved for KV Cache is", "available KV cache memory (", "kv_cache_size="];
    let left = left.iter().find_map(|marker| after(text, marker));
    let needed = text
        .split_once(" KV cache is needed")
        .and_then(|(head, _)| head.rsplit_once('('))
        .and_then(|(_, size)| after(&["=", size].concat(), "="));
    let asked = count(text, "max seq len (");
    let longest = count(text, "maximum model length is ").or_else(|| count(text, "stored in KV cache ("));

    let mut sentence = match (weights, left) {
        (Some(weights), Some(left)) => format!(
            "vLLM's KV cache is too small: weights take {}, activations {}, and {} is left for it.",
            Bytes(weights),
            activations.map_or_else(|| "their part".to_owned(), |bytes| Bytes(bytes).to_string()),
            Bytes(left)
        ),
        (_, Some(left)) => format!("vLLM's KV cache is too small: {} is left for it.", Bytes(left)),
        _ => "vLLM's KV cache is too small: weights, activations and CUDA graphs take what gpu_memory_utilization allows.".to_owned(),
    };
    if let Some(asked) = asked {
        let needs = needed.map_or_else(String::new, |bytes| format!(" needs {}", Bytes(bytes)));
        let fits = longest.map_or_else(String::new, |tokens| format!(", and {} tokens fit", Count(tokens)));
        sentence += &format!(
            " One request of {} tokens{}{fits}.",
            Count(asked),
            if needs.is_empty() { " is too long" } else { &needs }
        );
    }
    let shorter = longest.map(|tokens| {
        Remedy::advice("Bound the sequences by what fits.").with_copy(format!("--max-model-len {tokens}"))
    });
    let others = [
        ("Allow more of the device, if nothing else uses it.", "--gpu-memory-utilization 0.95"),
        ("Hold weights in fewer bytes, or divide them over several devices.", "--tensor-parallel-size 2"),
        ("Store keys and values in 8 bits.", "--kv-cache-dtype fp8"),
    ];
    let others = others.into_iter().map(|(text, copy)| Remedy::advice(text).with_copy(copy));
    let known = [
        ("in weights", weights),
        ("in activations at their peak", activations),
        ("left for the KV cache", left),
        ("needed for one request", needed),
        ("allowed to vLLM", allowed),
        ("on the device in all", total),
    ];
    Some(of(sentence, known, shorter.into_iter().chain(others).take(3).collect()))
}

fn of<const N: usize>(sentence: String, known: [(&'static str, Option<u64>); N], remedies: Vec<Remedy>) -> Explanation {
    Explanation {
        kind: TextKind::OutOfMemory,
        is_failure: true,
        device: None,
        rank: None,
        cause: Cause::None,
        sentence,
        line: None,
        facts: known.into_iter().filter_map(|(name, bytes)| Some(Fact { name: name.into(), bytes: bytes? })).collect(),
        remedies,
        next: "",
    }
}

/// Reads the whole number after a marker.
fn count(text: &str, marker: &str) -> Option<u64> {
    let (_, rest) = text.split_once(marker)?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arithmetic_of_the_text_is_told() {
        let profiled = "the current vLLM instance can use total_gpu_memory (20.00GiB) x gpu_memory_utilization (0.90) = 18.00GiB model \
                        weights take 13.00GiB; non_torch_memory takes 0.10GiB; PyTorch activation peak memory takes 1.00GiB; the rest of \
                        the memory reserved for KV Cache is 3.90GiB. ValueError: The model's max seq len (65536) is larger than the \
                        maximum number of tokens that can be stored in KV cache (31000). Try increasing `gpu_memory_utilization`";
        let found = explain(profiled).expect("an answer");
        assert_eq!(
            found.sentence,
            "vLLM's KV cache is too small: weights take 13.0 GiB, activations 1.00 GiB, and 3.90 GiB is left for it. One request of 65,536 \
             tokens is too long, and 31,000 tokens fit."
        );
        assert_eq!(found.remedies[0].copy, "--max-model-len 31000");
        assert_eq!(found.facts.len(), 5);
        let newer = "ValueError: To serve at least one request with the models's max seq len (65536), (8.00 GiB KV cache is needed, which \
                     is larger than the available KV cache memory (3.90 GiB). Based on the available memory, the estimated maximum model \
                     length is 31000.";
        let found = explain(newer).expect("an answer");
        assert!(
            found.sentence.contains(
                "3.90 GiB is left for it. One request of 65,536 tokens needs 8.00 GiB, and 31,000 tokens fit"
            )
        );
        assert_eq!(explain("ValueError"), None);
    }
}
