//! Errors with few or no figures that also mean that memory ran out, and warnings that mean that it nearly did.

use query::diagnosis::Cause;
use query::finding::Remedy;

use crate::explanation::{Explanation, Fact, NEXT, TextKind};
use crate::size;
use trace::units::Bytes;

/// An error in other words: what a text has if it is this one, what it means, and what to try.
struct OtherError {
    /// All words of one of these groups stand in the text.
    marks: &'static [&'static [&'static str]],
    sentence: &'static str,
    /// Names of sizes, and what they follow in the text. The first one of a name counts.
    sizes: &'static [(&'static str, &'static str)],
    remedies: &'static [(&'static str, &'static str)],
    /// How PyTorch records what led to it.
    next: &'static str,
    /// A warning is none.
    is_failure: bool,
}

/// What errors of PyTorch have in common.
const OF_TORCH: OtherError =
    OtherError { marks: &[], sentence: "", sizes: &[], remedies: &[], next: NEXT, is_failure: true };
/// What errors of other programs, of the host and of releases without snapshots have in common.
const UNRECORDED: OtherError = OtherError { next: "", ..OF_TORCH };

const ASKED: &str = "asked for";
const LEAVE_ROOM: (&str, &str) = (
    "Leave room beside PyTorch's cache, so that libraries find memory.",
    "torch.cuda.set_per_process_memory_fraction(0.9)",
);
const GIVE_BACK: (&str, &str) = ("Give cached memory back before the call.", "torch.cuda.empty_cache()");
const ASK_MONITOR: (&str, &str) = ("See who holds the device's memory.", "nvidia-smi");
const SMALLER: (&str, &str) = ("Use a smaller batch, or fewer programs on this device.", "");
const GROW_TENSORFLOW: (&str, &str) = ("Let TensorFlow take what it needs.", "TF_FORCE_GPU_ALLOW_GROWTH=true");
const GROW_JAX: (&str, &str) =
    ("Let JAX take what it needs, or a smaller share.", "XLA_PYTHON_CLIENT_PREALLOCATE=false");
const CONTEXTS: (&str, &str) =
    ("Use one device a process: call this before anything else uses CUDA.", "torch.cuda.set_device(local_rank)");
const DRIVER: &str = "The driver had no memory for something that PyTorch's allocator does not serve: a context, a module of kernels, or \
                      pinned memory. Other processes or PyTorch's cache hold the device; if the device has room, the host ran out.";

/// The words are those of each program's own source. Warnings stand last, since an error counts more.
const ERRORS: &[OtherError] = &[
    OtherError {
        marks: &[&["NVML_SUCCESS == r INTERNAL ASSERT FAILED"]],
        sentence: "Out of memory in disguise: a request failed, and PyTorch failed while it composed the message, since NVML \
                   does not answer (as on MIG devices and on Jetson).",
        remedies: &[
            ("Take it as an ordinary out-of-memory error: use a smaller batch, or hold less.", ""),
            ("See what the device has free before the request.", "torch.cuda.mem_get_info()"),
        ],
        ..OF_TORCH
    },
    OtherError {
        marks: &[&["handles_.at(i) INTERNAL ASSERT FAILED"]],
        sentence: "A request ran out of memory while the pages of an expandable segment were mapped, and PyTorch's allocator was \
                   left broken: every later request of this process fails.",
        remedies: &[
            ("Start the process again; don't go on after catching the error.", ""),
            ("Hold less, so that the first request is served: look for the error before this one.", ""),
        ],
        ..OF_TORCH
    },
    OtherError {
        marks: &[&["!block->expandable_segment_ INTERNAL ASSERT FAILED"]],
        sentence: "Out of memory in disguise: near the end of memory, PyTorch's allocator up to 2.4 tried to free an expandable \
                   segment, as max_split_size_mb and garbage_collection_threshold make it do.",
        remedies: &[
            (
                "Leave both settings out, or take PyTorch 2.5 or later.",
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
            ),
            ("Hold less: memory was about to run out.", ""),
        ],
        ..OF_TORCH
    },
    OtherError {
        marks: &[
            &["DefaultCPUAllocator:"],
            &["OOM when allocating tensor", "by allocator cpu"],
            &["bytes on host: CUDA_ERROR_OUT_OF_MEMORY"],
        ],
        sentence: "The host's memory ran out, and not the device's.",
        sizes: &[(ASKED, "you tried to allocate "), (ASKED, "failed to alloc ")],
        remedies: &[
            ("Hold less on the host: a smaller batch, fewer workers that load data, or files that are mapped.", ""),
            ("See what the host has left; a container may have less.", "free -h"),
        ],
        ..UNRECORDED
    },
    OtherError {
        marks: &[
            &["ailed to create cublas handle: CUBLAS_STATUS_ALLOC_FAILED"],
            &["ould not create cudnn handle: CUDNN_STATUS_ALLOC_FAILED"],
            &["from device: CUDA_ERROR_OUT_OF_MEMORY"],
        ],
        sentence: "TensorFlow, or JAX, found no memory on the device. By default they take most of it at their start, so that other \
                   programs, and their own libraries, find little.",
        sizes: &[(ASKED, "failed to allocate ")],
        remedies: &[GROW_TENSORFLOW, GROW_JAX, ASK_MONITOR],
        ..UNRECORDED
    },
    OtherError {
        marks: &[&["OOM when allocating tensor"], &["failed to allocate memory [Op:"]],
        sentence: "TensorFlow ran out of memory. By default it takes nearly the whole device at its start, whatever it needs.",
        remedies: &[GROW_TENSORFLOW, SMALLER],
        ..UNRECORDED
    },
    OtherError {
        marks: &[&["STATUS_ALLOC_FAILED"], &["Error out of memory at line", "bitsandbytes"]],
        sentence: "A library (such as cuBLAS, cuDNN, cuSOLVER or bitsandbytes) asked the driver itself for memory and got none: \
                   PyTorch's cache, or other processes, hold the rest of the device.",
        remedies: &[LEAVE_ROOM, GIVE_BACK, ASK_MONITOR],
        ..OF_TORCH
    },
    OtherError {
        marks: &[&["Cuda failure 'out of memory'"], &["Cuda failure 2 'out of memory'"], &["NCCL", "Failed to CUDA"]],
        sentence: "NCCL asked the driver itself for its buffers and got none: PyTorch's cache, or other processes, hold the rest of \
                   the device.",
        sizes: &[
            (ASKED, "Failed to CUDA calloc "),
            (ASKED, "Failed to CUDA calloc async "),
            (ASKED, "Failed to CUDA malloc "),
        ],
        remedies: &[
            LEAVE_ROOM,
            (
                "Make the first collective before the model is on the device, or give cached memory back before it.",
                "torch.cuda.empty_cache()",
            ),
            CONTEXTS,
        ],
        ..OF_TORCH
    },
    OtherError {
        marks: &[&["out of memory occurred when warming up"]],
        sentence: "vLLM ran out of memory while it tried as many requests at once as max_num_seqs allows: its weights and KV cache had \
                   left too little room.",
        remedies: &[
            ("Serve fewer requests at once.", "--max-num-seqs 64"),
            ("Leave more of the device beside the KV cache.", "--gpu-memory-utilization 0.85"),
        ],
        ..UNRECORDED
    },
    OtherError {
        marks: &[&["Not enough memory. Please try to increase --mem-fraction-static"]],
        sentence: "SGLang had no memory left for its KV cache: the weights take all that --mem-fraction-static allows.",
        remedies: &[
            ("Allow more of the device, if nothing else uses it.", "--mem-fraction-static 0.9"),
            ("Hold weights in fewer bytes, or divide them over several devices.", "--tp 2"),
        ],
        ..OF_TORCH
    },
    OtherError {
        marks: &[&["[torch_memory_saver.cpp] CUresult error", "result=2"]],
        sentence: "torch_memory_saver, whose pools can sleep, asked the driver itself for memory and got none (CUresult 2): other \
                   pools, PyTorch's cache or other processes hold the device.",
        remedies: &[("Let the server's pool be smaller.", "--mem-fraction-static 0.8"), GIVE_BACK, ASK_MONITOR],
        ..UNRECORDED
    },
    OtherError {
        marks: &[
            &["ggml", "cudaMalloc failed: out of memory"],
            &["ggml-cuda.cu", "out of memory"],
            &["ggml_vulkan: Device memory allocation"],
            &["error loading model: unable to allocate"],
        ],
        sentence: "llama.cpp (or a program on top of it, such as ollama), and not PyTorch, found no memory on the device for layers, \
                   for the KV cache, or for computing.",
        sizes: &[
            (ASKED, "alloc_buffer: allocating "),
            (ASKED, "Device memory allocation of size "),
            (ASKED, "buffer of size "),
        ],
        remedies: &[
            ("Put fewer layers on the device (ollama: num_gpu).", "--n-gpu-layers 20"),
            (
                "Use a shorter context and smaller batches (ollama: num_ctx, num_batch).",
                "--ctx-size 8192 --ubatch-size 256",
            ),
            ("See who holds the device's memory; several devices may be divided unevenly.", ""),
        ],
        ..UNRECORDED
    },
    OtherError {
        marks: &[
            &["BFCArena::AllocateRawInternal"],
            &["Cuda Error in allocate: 2"],
            &["Out of memory error on GPU", "Cannot allocate"],
            &["OutOfMemoryError: out of memory to allocate"],
            &["std::bad_alloc: cudaErrorMemoryAllocation"],
        ],
        sentence: "A program other than PyTorch (such as ONNX Runtime, TensorRT, PaddlePaddle, CuPy or XGBoost) ran out of memory: \
                   PyTorch's settings change nothing for it, but its cache may hold what is missing.",
        sizes: &[
            (ASKED, "buffer of size "),
            (ASKED, "Cannot allocate "),
            (ASKED, "out of memory to allocate "),
            ("free on the device", "available memory is only "),
        ],
        remedies: &[SMALLER, GIVE_BACK, ASK_MONITOR],
        ..UNRECORDED
    },
    OtherError {
        marks: &[&["RuntimeError: Invalid buffer size: "], &["Exception Message: Invalid buffer size: "]],
        sentence: "Apple's Metal serves no single buffer as large as this request, however much is free.",
        sizes: &[(ASKED, "Invalid buffer size: ")],
        remedies: &[("Ask for less at once: a smaller batch or shorter sequences, or attention in slices.", "")],
        ..UNRECORDED
    },
    OtherError {
        marks: &[&["Allocation on device"]],
        sentence: "A request ran out of memory under cudaMallocAsync, and the program left the figures out that PyTorch wrote after \
                   this line.",
        remedies: &[
            ("Print the whole exception to see them.", "print(str(error))"),
            ("Try PyTorch's own allocator, whose memory can be looked into.", "PYTORCH_CUDA_ALLOC_CONF=backend:native"),
        ],
        ..OF_TORCH
    },
    OtherError {
        marks: &[&["cuda runtime error (2) : out of memory"], &["error=2 : out of memory"]],
        sentence: "A request of PyTorch ran out of memory, in the words of releases up to 0.4, which give no figures.",
        remedies: &[
            ("Use a smaller batch, or hold less.", ""),
            ASK_MONITOR,
            ("Take a later release, whose error says what was held.", ""),
        ],
        ..UNRECORDED
    },
    OtherError {
        marks: &[
            &["CUDA error: out of memory"],
            &["CUDA driver error: out of memory"],
            &["CUDA_ERROR_OUT_OF_MEMORY"],
            &["cudaErrorMemoryAllocation"],
            &["cudaGetDeviceCount()", "Error 2: out of memory"],
        ],
        sentence: DRIVER,
        remedies: &[ASK_MONITOR, LEAVE_ROOM, CONTEXTS],
        ..OF_TORCH
    },
    OtherError {
        marks: &[&["HIP error: out of memory"]],
        sentence: DRIVER,
        remedies: &[("See who holds the device's memory.", "amd-smi process"), LEAVE_ROOM, CONTEXTS],
        ..OF_TORCH
    },
    OtherError {
        marks: &[&["memory allocation failed with OOM on device"]],
        sentence: "A warning of PyTorch 2.13 and later, and no error: the driver refused a request, and PyTorch gives cached memory \
                   back and asks again. It failed only if an out-of-memory error follows.",
        sizes: &[
            (ASKED, "trying to allocate "),
            ("free on the device", "(free: "),
            ("on the device in all", "total: "),
        ],
        is_failure: false,
        ..OF_TORCH
    },
    OtherError {
        marks: &[&["ran out of memory trying to allocate", "The caller indicates that this is not a failure"]],
        sentence: "A warning of TensorFlow, and no error: it went on with less memory than it would have liked.",
        sizes: &[(ASKED, "trying to allocate ")],
        is_failure: false,
        ..UNRECORDED
    },
];

/// Explains such an error in a text; `None` if there is none.
pub(super) fn explain(text: &str) -> Option<Explanation> {
    if let Some(found) = xla(text) {
        return Some(found);
    }
    let error =
        ERRORS.iter().find(|error| error.marks.iter().any(|group| group.iter().all(|word| text.contains(word))))?;
    let mut facts: Vec<Fact> = Vec::new();
    for (name, marker) in error.sizes {
        let bytes = size::bytes_after(text, marker).filter(|_| facts.iter().all(|fact| fact.name != *name));
        facts.extend(bytes.map(|bytes| Fact { name: (*name).into(), bytes }));
    }
    let remedies = error.remedies.iter().map(|(advice, copy)| Remedy::advice(*advice).with_copy(*copy)).collect();
    let (next, is_failure) = (error.next, error.is_failure);
    Some(Explanation {
        facts,
        remedies,
        next,
        is_failure,
        device: nccl_device(text),
        ..of(Cause::None, error.sentence.to_owned())
    })
}

/// Returns the device that a warning of NCCL names before it, `host:1:2 [3] file.cc:85 NCCL WARN …`, if the text has one.
fn nccl_device(text: &str) -> Option<String> {
    let (head, _) = text.split_once(" NCCL WARN ")?;
    let (_, rest) = head.lines().next_back()?.split_once(" [")?;
    let (number, _) = rest.split_once(']')?;
    let number: u32 = number.parse().ok()?;
    Some(format!("GPU {number}"))
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
    // Up to 2021 in other letters. TensorFlow's error has the same word, and so has gRPC's, which is about messages.
    let (head, rest) =
        text.rsplit_once("RESOURCE_EXHAUSTED: ").or_else(|| text.rsplit_once("Resource exhausted: Out of"))?;
    let is_memory = [" of memory", "OUT_OF_MEMORY", "to allocate "].iter().any(|word| rest.contains(word));
    if !is_memory || rest.contains("allocating tensor") || rest.contains("[Op:") {
        return None;
    }
    // A TPU's program needs what it needs: "Used 20.00G of 15.48G hbm."
    let used = rest.split_once(" memory space ").and_then(|(_, space)| space.split_once("Used ")).map(|(_, used)| used);
    if let Some((needed, most)) = used.and_then(|used| size::at_start(used).zip(size::after(used, " of "))) {
        let sentence = format!(
            "XLA ran out of memory: a program needs {}, and this memory of the TPU has {}.",
            Bytes(needed),
            Bytes(most)
        );
        let remedies = vec![
            Remedy::advice("Use a smaller batch, or recompute in the backward pass.").with_copy("jax.checkpoint"),
            Remedy::advice("Divide weights and activations over more devices."),
        ];
        return Some(Explanation { remedies, next: "", ..of(Cause::None, sentence) });
    }
    let tried = ["to allocate ", "allocating "].iter().find_map(|marker| size::bytes_after(rest, marker));
    let tried = tried.or_else(|| size::bytes_after(head.rsplit_once("failed to allocate").map(|(_, size)| size)?, " "));
    let tried = tried.map_or(String::new(), |bytes| format!(" for {}", Bytes(bytes)));
    let sentence = format!(
        "XLA, not PyTorch, ran out of memory{tried}. By default it takes three quarters of the device at its start, so other \
         programs on it find little."
    );
    let remedies = vec![
        Remedy::advice(GROW_JAX.0).with_copy(GROW_JAX.1),
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
