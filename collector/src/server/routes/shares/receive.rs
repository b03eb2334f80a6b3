//! Receives the body of a request as a part of an upload.

use axum::body::{BodyDataStream, Bytes};
use axum::http::StatusCode;
use futures_util::StreamExt;

use super::super::blocking;
use crate::server::error::ApiError;
use crate::server::request_body::is_too_slow;
use crate::shares::{PartWriter, Progress};

/// Bytes that are gathered before they are written.
const GATHERED_BYTES: usize = 256 << 10;

/// Receives a part of at most so many bytes to the end of the body, or as much of it as arrives. `rest` holds bytes of the
/// body that were read before, and afterwards those that belong to the next part.
pub(super) async fn receive_up_to(
    mut part: PartWriter,
    body: &mut BodyDataStream,
    rest: &mut Bytes,
    most: u64,
) -> Result<Progress, ApiError> {
    let (mut received, mut failed) = (0, None);
    let mut gathered: Vec<u8> = Vec::new();
    loop {
        let bytes = if rest.is_empty() {
            match body.next().await {
                None => break,
                Some(Ok(bytes)) => bytes,
                Some(Err(error)) => {
                    failed = Some(is_too_slow(&error));
                    break;
                }
            }
        } else {
            std::mem::take(rest)
        };
        let room = usize::try_from(most - received).unwrap_or(usize::MAX);
        let (now, later) = bytes.split_at(bytes.len().min(room));
        gathered.extend_from_slice(now);
        received += now.len() as u64;
        *rest = bytes.slice_ref(later);
        if gathered.len() >= GATHERED_BYTES {
            let full = std::mem::take(&mut gathered);
            part = blocking(move || part.write(&full).map(|()| part)).await??;
        }
        if !rest.is_empty() {
            break;
        }
    }
    // What arrived is kept, so that the sender can go on from there.
    let progress = blocking(move || part.write(&gathered).and_then(|()| part.commit())).await??;
    match failed {
        None => Ok(progress),
        Some(true) => Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "slow", "The body did not arrive in time.")),
        Some(false) => Err(ApiError::new(StatusCode::BAD_REQUEST, "cut", "The body is incomplete.")),
    }
}
