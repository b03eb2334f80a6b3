//! A body that is made piece by piece on a thread that may wait for the disk.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::Frame;
use tokio::sync::mpsc;

/// Pieces on their way.
const PIECES: usize = 4;

/// The reader went away, or the disk failed in the middle.
#[derive(Debug, thiserror::Error)]
#[error("the body could not be made to its end")]
pub(super) struct Broken;

/// Where the pieces go.
#[derive(Debug)]
pub(super) struct Sink(mpsc::Sender<Result<Bytes, Broken>>);

impl Sink {
    /// Sends a piece; waits while the reader is slow. An error where the reader has gone.
    pub(super) fn send(&self, bytes: Vec<u8>) -> Result<(), Broken> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.0.blocking_send(Ok(bytes.into())).map_err(|_| Broken)
    }
}

/// Makes a body on a thread of its own. What it can't finish is broken off, so that no reader takes it for whole.
pub(super) fn body(make: impl FnOnce(&Sink) -> Result<(), Broken> + Send + 'static) -> Body {
    let (sender, receiver) = mpsc::channel(PIECES);
    tokio::task::spawn_blocking(move || {
        let sink = Sink(sender);
        if make(&sink).is_err() {
            // Nobody may be there to hear it.
            let _ = sink.0.blocking_send(Err(Broken));
        }
    });
    Body::new(Stream(receiver))
}

struct Stream(mpsc::Receiver<Result<Bytes, Broken>>);

impl HttpBody for Stream {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
