//! The body of a request, which fails if the client sends too slowly.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::BoxError;
use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};

use super::connection_slots::{ConnectionSlot, Wait};
use super::pace::{Pace, PaceLimits, TooSlow};

/// The body of a request.
#[derive(Debug)]
pub(super) struct RequestBody {
    body: Incoming,
    slot: Arc<ConnectionSlot>,
    pace: Pace,
    /// Held while the client sends nothing.
    wait: Option<Wait>,
}

impl RequestBody {
    /// Wraps a body.
    pub(super) fn new(body: Incoming, slot: Arc<ConnectionSlot>, limits: PaceLimits) -> Self {
        Self { body, slot, pace: Pace::new(limits), wait: None }
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(frame) => {
                self.wait = None;
                if let Some(Ok(frame)) = &frame {
                    self.pace.advance(frame.data_ref().map_or(0, Bytes::len));
                }
                Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
            }
            Poll::Pending => {
                if self.wait.is_none() {
                    self.wait = Some(self.slot.wait());
                }
                self.pace.poll_too_slow(context).map(|error| Some(Err(error.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Whether reading a body failed because the client sent too slowly.
pub(super) fn is_too_slow(error: &axum::Error) -> bool {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if error.is::<TooSlow>() {
            return true;
        }
        next = error.source();
    }
    false
}
