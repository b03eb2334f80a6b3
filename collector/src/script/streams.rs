//! The streams of a script: small numbers for the handles that a driver would have given.

use std::collections::BTreeMap;

use trace::units::Stream;

use super::op::Op;

/// Number of streams that PyTorch creates and hands out in turn.
const POOL: usize = 32;

/// Streams by number: 0 is the default one, `n > 0` the n-th that the script creates, and one more is for captures.
#[derive(Debug)]
pub(super) struct Streams {
    /// The handle of the stream for captures.
    pub(super) capture: Stream,
    /// The numbers that handles are printed as.
    numbers: BTreeMap<Stream, i64>,
}

impl Streams {
    /// Creates the streams that operations name, from 0 to the highest.
    pub(super) fn new(ops: &[Op]) -> Self {
        let number = |op: &Op| match op {
            Op::Malloc(_, _, stream) | Op::RecordStream(_, stream) | Op::Hold(stream) | Op::Release(stream) => *stream,
            _ => 0,
        };
        let top = ops.iter().map(number).max().unwrap_or(0);
        let mut numbers: BTreeMap<Stream, i64> = (0..=top).map(|n| (Self::handle(n), n as i64)).collect();
        let capture = Self::handle(top + 1);
        let next = -(numbers.len() as i64);
        numbers.entry(capture).or_insert(next);
        Self { capture, numbers }
    }

    /// Returns the handle of a stream number.
    pub(super) fn handle(number: usize) -> Stream {
        match number {
            0 => Stream(0),
            n => Stream(((n - 1) % POOL) as i64 + 1),
        }
    }

    /// Returns the number that a stream is printed as.
    pub(super) fn number(&self, stream: Stream) -> i64 {
        self.numbers.get(&stream).copied().unwrap_or(stream.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_capture_has_the_stream_after_the_last() {
        let streams = Streams::new(&[Op::Hold(2)]);
        assert_eq!((streams.capture, streams.number(streams.capture)), (Stream(3), -3));
        assert_eq!((streams.number(Stream(0)), streams.number(Stream(2))), (0, 2));
    }

    #[test]
    fn streams_are_used_again_after_the_last_of_the_pool() {
        let streams = Streams::new(&[Op::Hold(33)]);
        assert_eq!(Streams::handle(33), Streams::handle(1));
        assert_eq!((streams.number(Stream(1)), streams.number(Stream(2))), (33, 2));
        assert_eq!(streams.capture, Stream(2));
    }
}
