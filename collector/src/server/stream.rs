//! Response bodies that are written piece by piece on a thread that may wait for the disk.

use axum::body::{Body, Bytes};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tracing::Span;

use super::error::chain;
use crate::store::StoreError;

/// Pieces that may wait for the connection.
const PIECES: usize = 2;

/// Why a body ends early.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    /// The client disconnected.
    #[error("the client disconnected")]
    ClientGone,
    /// The store could not be read.
    #[error("the store could not be read: {0}")]
    Store(#[from] StoreError),
    /// The store holds something else than a recording.
    #[error("the stored recording is damaged: {0}")]
    Damaged(String),
}

/// The writing end of a body.
#[derive(Debug)]
pub(super) struct BodyWriter(mpsc::Sender<Result<Bytes, BodyError>>);

impl BodyWriter {
    /// Fails if the client has disconnected, for work that sends nothing for some time.
    pub(super) fn check(&self) -> Result<(), BodyError> {
        if self.0.is_closed() { Err(BodyError::ClientGone) } else { Ok(()) }
    }

    /// Sends a piece. Waits while the client is slow.
    pub(super) fn send(&self, bytes: Vec<u8>) -> Result<(), BodyError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.0.blocking_send(Ok(bytes.into())).map_err(|_| BodyError::ClientGone)
    }
}

/// Returns a body that `write` fills on a thread of its own. If `write` fails, the connection is aborted, so that no client
/// mistakes the body for a complete one.
pub(super) fn body(write: impl FnOnce(&BodyWriter) -> Result<(), BodyError> + Send + 'static) -> Body {
    let (sender, receiver) = mpsc::channel(PIECES);
    let span = Span::current();
    tokio::task::spawn_blocking(move || {
        let writer = BodyWriter(sender);
        if let Err(error) = write(&writer) {
            if !matches!(error, BodyError::ClientGone) {
                span.in_scope(|| tracing::error!(error = chain(&error), "response aborted"));
            }
            // Fails if the client has gone.
            let _ = writer.0.blocking_send(Err(error));
        }
    });
    Body::from_stream(ReceiverStream::new(receiver))
}
