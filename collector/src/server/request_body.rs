//! The body of a request, which fails if the client sends too slowly.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::BoxError;
use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};

use super::pace::{Pace, PaceLimits, TooSlow};
use super::place::{Place, Wait};

/// The body of a request.
#[derive(Debug)]
pub(super) struct RequestBody {
    body: Incoming,
    place: Arc<Place>,
    pace: Pace,
    /// Held while the client sends nothing.
    wait: Option<Wait>,
}

impl RequestBody {
    /// Wraps a body.
    pub(super) fn new(body: Incoming, place: Arc<Place>, limits: PaceLimits) -> Self {
        Self { body, place, pace: Pace::new(limits), wait: None }
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
                    self.wait = Some(self.place.wait());
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
