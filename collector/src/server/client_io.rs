//! A client's connection, which ends if the client reads nothing for too long or too slowly.
//!
//! This holds for everything that is sent: pages, downloads, the messages of sockets. hyper itself would wait forever.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connection_slots::{ConnectionSlot, Wait};
use super::pace::{Pace, PaceLimits};

/// A connection whose client has to read what is sent.
#[derive(Debug)]
pub(super) struct ClientIo<S> {
    stream: S,
    slot: Arc<ConnectionSlot>,
    pace: Pace,
    /// Held while the client does not read.
    wait: Option<Wait>,
}

impl<S> ClientIo<S> {
    /// Wraps a connection.
    pub(super) fn new(stream: S, slot: Arc<ConnectionSlot>, limits: PaceLimits) -> Self {
        Self { stream, slot, pace: Pace::new(limits), wait: None }
    }

    /// Passes on what a write returned, or an error if the client was too slow.
    fn check<T>(
        &mut self,
        context: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
        bytes: impl FnOnce(&T) -> usize,
    ) -> Poll<io::Result<T>> {
        match polled {
            Poll::Ready(done) => {
                self.wait = None;
                if let Ok(done) = &done {
                    self.pace.advance(bytes(done));
                }
                Poll::Ready(done)
            }
            Poll::Pending => {
                if self.wait.is_none() {
                    self.wait = Some(self.slot.wait());
                }
                self.pace.poll_too_slow(context).map(|error| Err(io::Error::new(io::ErrorKind::TimedOut, error)))
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ClientIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ClientIo<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.check(context, polled, |written| *written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.check(context, polled, |written| *written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.check(context, polled, |()| 0)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(context);
        self.check(context, polled, |()| 0)
    }
}
