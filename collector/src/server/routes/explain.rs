//! `/api/v1/explain`: what a pasted error means.

use axum::Json;
use axum::extract::rejection::StringRejection;
use axum::http::StatusCode;
use explain::{Explanation, WANTED};
use query::finding::Remedy;
use query::line_in_sentence;
use serde::Serialize;
use trace::limits::PASTED_BYTES;
use trace::units::Bytes;
use utoipa::ToSchema;

use super::blocking;
use crate::server::error::{ApiError, ErrorJson};

/// What a text means.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExplainedText {
    /// Whether the text could be explained.
    is_known: bool,
    /// The explanation, as lines for people: those of `vramscope doctor`. Of an unknown text, what to send instead.
    text: String,
    /// The explanation of each error, in the order of the text; empty if the text is unknown. Of many, the last 16.
    parts: Vec<ExplainedError>,
}

/// The explanation of one error.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExplainedError {
    /// Where it happened, such as `GPU 1, rank 1`; empty if the text doesn't say.
    place: String,
    /// What happened, in one sentence.
    sentence: String,
    /// The line of code that asked for the memory; empty if the text has none.
    line: String,
    /// The sums of the text.
    facts: Vec<ExplainedFact>,
    /// What to try.
    help: Vec<ExplainedHelp>,
    /// What to record to learn more; empty if nothing is needed.
    next: String,
}

/// A sum of an explained text.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExplainedFact {
    /// What it is.
    name: String,
    /// The sum with its unit, such as `512 MiB`.
    size: String,
}

/// A piece of advice.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExplainedHelp {
    /// One sentence.
    text: String,
    /// What to copy; empty if there is nothing.
    copy: String,
}

impl ExplainedError {
    fn of(explanation: &Explanation) -> Self {
        let fact = |fact: &explain::Fact| ExplainedFact {
            name: fact.name.clone().into_owned(),
            size: Bytes(fact.bytes).to_string(),
        };
        let help = |remedy: &Remedy| ExplainedHelp { text: remedy.text.clone(), copy: remedy.copy.clone() };
        Self {
            place: explanation.place(),
            sentence: explanation.sentence.clone(),
            line: explanation.line.as_deref().map(line_in_sentence).unwrap_or_default().into_owned(),
            facts: explanation.facts.iter().map(fact).collect(),
            help: explanation.remedies.iter().map(help).collect(),
            next: explanation.next.to_owned(),
        }
    }
}

/// Explains an out-of-memory error, the output of torch.cuda.memory_summary() or memory_stats(), or the table of nvidia-smi.
///
/// Nothing of the text is kept.
#[utoipa::path(
    post,
    path = "/api/v1/explain",
    operation_id = "explain_text",
    request_body(content = String, content_type = "text/plain"),
    security(("token" = [])),
    responses(
        (status = 200, description = "The explanation.", body = ExplainedText),
        (status = 400, description = "The body is no text.", body = ErrorJson),
        (status = 401, description = "The token is missing or wrong.", body = ErrorJson),
        (status = 403, description = "The request comes from a page of another origin.", body = ErrorJson),
        (status = 413, description = "The text is longer than 1 MiB.", body = ErrorJson),
    )
)]
pub(crate) async fn explain(text: Result<String, StringRejection>) -> Result<Json<ExplainedText>, ApiError> {
    let text = text.map_err(|rejection| match rejection.status() {
        status @ StatusCode::PAYLOAD_TOO_LARGE => {
            let message =
                format!("The text is longer than {}. Send the part with the error.", Bytes(PASTED_BYTES as u64));
            ApiError::new(status, "size", message)
        }
        _ => ApiError::malformed("Send the text of the error as UTF-8, as text/plain."),
    })?;
    let explained = blocking(move || explain::explain(&text)).await?;
    let is_known = !explained.is_empty();
    let text = if is_known { explain::text_of(&explained) } else { format!("This text is not known. {WANTED}") };
    let parts = explain::shown(&explained).iter().map(ExplainedError::of).collect();
    Ok(Json(ExplainedText { is_known, text, parts }))
}
