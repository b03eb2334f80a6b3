//! Errors without figures that also mean that memory ran out.

use query::diagnosis::Cause;
use query::finding::Remedy;

use super::explanation::{Explanation, NEXT, TextKind};
use super::size;
use trace::units::Bytes;

/// An error in other words: what a text has if it is this one, what it means, and what to try.
struct OtherError {
    /// All words of one of these groups stand in the text.
    marks: &'static [&'static [&'static str]],
    sentence: &'static str,
    remedies: &'static [(&'static str, &'static str)],
}

const LEAVE_ROOM: (&str, &str) = (
    "Leave room beside PyTorch's cache, so that libraries find memory.",
    "torch.cuda.set_per_process_memory_fraction(0.9)",
);
const GIVE_BACK: (&str, &str) = ("Give cached memory back before the call.", "torch.cuda.empty_cache()");
const ASK_MONITOR: (&str, &str) = ("See who holds the device's memory.", "nvidia-smi");

const ERRORS: &[OtherError] = &[
    OtherError {
        marks: &[&["NVML_SUCCESS == r INTERNAL ASSERT FAILED"]],
        sentence: "Out of memory in disguise: a request failed, and PyTorch failed while it composed the message, since NVML \
                   does not answer (as on MIG devices and on Jetson).",
        remedies: &[
            ("Take it as an ordinary out-of-memory error: use a smaller batch, or hold less.", ""),
            ("See what the device has free before the request.", "torch.cuda.mem_get_info()"),
        ],
    },
    OtherError {
        marks: &[&["handles_.at(i) INTERNAL ASSERT FAILED"]],
        sentence: "A request ran out of memory while the pages of an expandable segment were mapped, and PyTorch's allocator was \
                   left broken: every later request of this process fails.",
        remedies: &[
            ("Start the process again; don't go on after catching the error.", ""),
            ("Hold less, so that the first request is served: look for the error before this one.", ""),
        ],
    },
    OtherError {
        marks: &[&["STATUS_ALLOC_FAILED"]],
        sentence: "A library (cuBLAS, cuDNN, cuSOLVER or cuSPARSE) asked the driver itself for memory and got none: PyTorch's \
                   cache, or other processes, hold the rest of the device.",
        remedies: &[LEAVE_ROOM, GIVE_BACK, ASK_MONITOR],
    },
    OtherError {
        marks: &[&["NCCL", "out of memory"]],
        sentence: "NCCL asked the driver itself for its buffers and got none: PyTorch's cache, or other processes, hold the rest of \
                   the device.",
        remedies: &[
            LEAVE_ROOM,
            (
                "Make the first collective before the model is on the device, or give cached memory back before it.",
                "torch.cuda.empty_cache()",
            ),
            (
                "Use one device a process: call this before anything else uses CUDA.",
                "torch.cuda.set_device(local_rank)",
            ),
        ],
    },
    OtherError {
        marks: &[&["NCCL", "Failed to CUDA"]],
        sentence: "NCCL asked the driver itself for its buffers and got none: PyTorch's cache, or other processes, hold the rest of \
                   the device.",
        remedies: &[LEAVE_ROOM, GIVE_BACK, ASK_MONITOR],
    },
    OtherError {
        marks: &[&["Not enough memory. Please try to increase --mem-fraction-static"]],
        sentence: "SGLang had no memory left for its KV cache: the weights take all that --mem-fraction-static allows.",
        remedies: &[
            ("Allow more of the device, if nothing else uses it.", "--mem-fraction-static 0.9"),
            ("Hold weights in fewer bytes, or divide them over several devices.", "--tp 2"),
        ],
    },
    OtherError {
        marks: &[&["Allocation on device"]],
        sentence: "A request ran out of memory under cudaMallocAsync, and the program left the figures out that PyTorch wrote after \
                   this line.",
        remedies: &[
            ("Print the whole exception to see them.", "print(str(error))"),
            ("Try PyTorch's own allocator, whose memory can be looked into.", "PYTORCH_CUDA_ALLOC_CONF=backend:native"),
        ],
    },
    OtherError {
        marks: &[&["OOM when allocating tensor"]],
        sentence: "TensorFlow ran out of memory. By default it takes nearly the whole device at its start, whatever it needs.",
        remedies: &[
            ("Let it take what it needs.", "TF_FORCE_GPU_ALLOW_GROWTH=true"),
            ("Use a smaller batch, or fewer programs on this device.", ""),
        ],
    },
    OtherError {
        marks: &[
            &["CUDA error: out of memory"],
            &["CUDA driver error: out of memory"],
            &["CUDA_ERROR_OUT_OF_MEMORY"],
            &["cudaErrorMemoryAllocation"],
        ],
        sentence: DRIVER,
        remedies: &[ASK_MONITOR, LEAVE_ROOM, CONTEXTS],
    },
    OtherError {
        marks: &[&["HIP error: out of memory"]],
        sentence: DRIVER,
        remedies: &[("See who holds the device's memory.", "amd-smi process"), LEAVE_ROOM, CONTEXTS],
    },
];

const DRIVER: &str = "The driver had no memory for something that PyTorch's allocator does not serve: a context, a module of kernels, or \
                      pinned memory. Other processes or PyTorch's cache hold the device; if the device has room, the host ran out.";
const CONTEXTS: (&str, &str) =
    ("Use one device a process: call this before anything else uses CUDA.", "torch.cuda.set_device(local_rank)");

/// Explains such an error in a text; `None` if there is none.
pub(super) fn explain(text: &str) -> Option<Explanation> {
    if let Some(found) = xla(text) {
        return Some(found);
    }
    let error =
        ERRORS.iter().find(|error| error.marks.iter().any(|group| group.iter().all(|word| text.contains(word))))?;
    let remedies = error.remedies.iter().map(|(advice, copy)| Remedy::advice(*advice).with_copy(*copy)).collect();
    Some(Explanation { remedies, ..of(Cause::None, error.sentence.to_owned()) })
}

/// Explains the error of Apple's Metal: all figures are in its parentheses.
pub(super) fn metal(text: &str) -> Option<Explanation> {
    let (_, rest) = text.rsplit_once("MPS backend out of memory")?;
    let own = size::after(rest, "MPS allocated:")?;
    let others = size::after(rest, "other allocations:")?;
    let most = size::after(rest, "max allowed:")?;
    let tried = size::after(rest, "Tried to allocate")?;
    let sentence = format!(
        "A limit: PyTorch may use {} on this Mac. {} is in its tensors and cache and {} in other memory of Metal, so the request \
         of {} did not fit.",
        Bytes(most),
        Bytes(own),
        Bytes(others),
        Bytes(tried)
    );
    let remedies = vec![
        Remedy::advice("Give cached memory back before the request.").with_copy("torch.mps.empty_cache()"),
        Remedy::advice("Use a smaller batch or shorter sequences, or close programs that use the GPU."),
        Remedy::advice("As a last resort, lift the limit: the system may then run out of memory.")
            .with_copy("PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0"),
    ];
    Some(Explanation { remedies, next: "", ..of(Cause::Limit, sentence) })
}

/// Explains the error of JAX and XLA.
fn xla(text: &str) -> Option<Explanation> {
    // TensorFlow's error has the same word.
    let (_, rest) = text.rsplit_once("RESOURCE_EXHAUSTED").filter(|(_, rest)| !rest.contains("allocating tensor"))?;
    let tried = size::after(rest, "allocate").map_or(String::new(), |bytes| format!(" for {}", Bytes(bytes)));
    let sentence = format!(
        "XLA, not PyTorch, ran out of memory{tried}. By default it takes three quarters of the device at its start, so other \
         programs on it find little."
    );
    let remedies = vec![
        Remedy::advice("Let it take what it needs, or a smaller share.")
            .with_copy("XLA_PYTHON_CLIENT_PREALLOCATE=false"),
        Remedy::advice("Use a smaller batch, or recompute in the backward pass.").with_copy("jax.checkpoint"),
    ];
    Some(Explanation { remedies, next: "", ..of(Cause::None, sentence) })
}

fn of(cause: Cause, sentence: String) -> Explanation {
    Explanation {
        kind: TextKind::OutOfMemory,
        is_failure: true,
        device: None,
        rank: None,
        cause,
        sentence,
        line: None,
        facts: Vec::new(),
        remedies: Vec::new(),
        next: NEXT,
    }
}
