//! Servers of models that run PyTorch: they take nearly the whole device by settings of their own.

use query::diagnosis::Cause;
use query::finding::Remedy;

use crate::explanation::Explanation;
use doctor::remedies::RECOMPUTE;

/// What a server's log has, and its settings, by vLLM's and SGLang's documentation of out-of-memory errors.
const SERVERS: [(&[&str], &str); 2] = [
    (&["VllmWorker", "EngineCore", "/vllm/v1/", "/vllm/worker/"], "--gpu-memory-utilization 0.85 --max-num-seqs 64"),
    (&["/sglang/srt/", "--mem-fraction-static"], "--mem-fraction-static 0.8 --max-running-requests 64"),
];

/// Adds what the server of a text can do where memory was full, and leaves out what only training can do.
pub(super) fn advise(text: &str, mut explanation: Explanation) -> Explanation {
    let server = SERVERS.iter().find(|(marks, _)| marks.iter().any(|mark| text.contains(mark)));
    let is_full = explanation.cause == Cause::Full || explanation.remedies.is_empty();
    if let Some((_, settings)) = server.filter(|_| is_full) {
        explanation.remedies.retain(|remedy| remedy.copy != RECOMPUTE);
        let text = "Leave more room beside the KV cache, or serve fewer requests at once.";
        explanation.remedies.insert(0, Remedy::advice(text).with_copy(*settings));
        explanation.remedies.truncate(3);
    }
    explanation
}
