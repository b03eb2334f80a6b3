//! `/api/v1/explain`: what a pasted error means.

use axum::Json;
use axum::extract::rejection::StringRejection;
use axum::http::StatusCode;
use explain::WANTED;
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
    Ok(Json(ExplainedText { is_known, text }))
}
