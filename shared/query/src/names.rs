//! Names of lines, streams and pools. Traces have handles of streams, which are long and say nothing, so a stream has a number in the
//! order of first use instead.

use std::borrow::Cow;

use trace::units::{PoolId, Stream};

/// The label of an allocation without a stack.
pub const NO_STACK: &str = "no stack recorded";
/// The label of allocations that were there when recording began.
pub const FROM_BEFORE: &str = "there when recording began";
/// The label of an allocation whose stack was recorded, and lost with a damaged part of the file.
pub const LOST_STACK: &str = "stack lost to damage";

/// What separates function and location in the label of a line: `forward  models/gpt.py:54`.
const BETWEEN: &str = "  ";

/// Returns the location in the label of a line; all of a label that has none, as of a function without a file.
pub fn location_of(label: &str) -> &str {
    label.rsplit_once(BETWEEN).map_or(label, |(_, location)| location)
}

/// Returns the function in the label of a line; empty for a label that has no location.
pub fn function_of(label: &str) -> &str {
    label.rsplit_once(BETWEEN).map_or("", |(function, _)| function)
}

/// Returns the label of a line as a sentence has it: `models/gpt.py:54 (forward)`. With the function first, `append` would read as
/// the verb of that sentence.
pub fn line_in_sentence(label: &str) -> Cow<'_, str> {
    match label.rsplit_once(BETWEEN) {
        Some((function, location)) => format!("{location} ({function})").into(),
        None => label.into(),
    }
}

/// Stream numbers below this are not handles, and are shown as recorded.
const SHORT: i64 = 1000;

/// Returns the short name of a stream among `all` streams of its device: `default stream`, `stream 3`. Handles are numbered
/// from 1 in the order of first use.
pub fn stream_name(stream: Stream, all: &[Stream]) -> String {
    if stream == Stream::default() {
        return "default stream".to_owned();
    }
    let others = || all.iter().filter(|other| **other != Stream::default());
    let are_short = others().all(|other| (0..SHORT).contains(&other.0));
    let number = others().position(|other| *other == stream).filter(|_| !are_short);
    format!("stream {}", number.map_or(stream.0, |place| place as i64 + 1))
}

/// Returns the name of a pool: `default pool`, or `pool (0, 2)` with the two numbers that the trace has, which PyTorch and its tools
/// show and the search takes.
pub fn pool_name(pool: PoolId) -> String {
    if pool.is_private() { format!("pool {pool}") } else { "default pool".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_in_a_sentence_begins_with_its_location() {
        let cases = [
            ("append  gpt/evaluate.py:33", "gpt/evaluate.py:33 (append)", "gpt/evaluate.py:33"),
            ("operator  ()  a.cpp:1", "a.cpp:1 (operator  ())", "a.cpp:1"),
            ("cudaMalloc", "cudaMalloc", "cudaMalloc"),
            (NO_STACK, NO_STACK, NO_STACK),
            ("", "", ""),
        ];
        for (label, sentence, location) in cases {
            assert_eq!((&*line_in_sentence(label), location_of(label)), (sentence, location));
            assert!(location == label || format!("{}  {location}", function_of(label)) == label);
        }
    }

    #[test]
    fn handles_are_numbered_and_small_numbers_stay() {
        let small = [Stream(0), Stream(7), Stream(3)];
        let handles = [Stream(0), Stream(94_534_543), Stream(-3)];
        let names = |all: &[Stream]| all.iter().map(|stream| stream_name(*stream, all)).collect::<Vec<_>>();
        assert_eq!(names(&small), ["default stream", "stream 7", "stream 3"]);
        assert_eq!(names(&handles), ["default stream", "stream 1", "stream 2"]);
        assert_eq!(stream_name(Stream(5_000), &handles), "stream 5000");
    }

    /// Numbers in the order of first use were the reverse of the file's own.
    #[test]
    fn pools_have_the_numbers_of_the_trace() {
        assert_eq!(
            [PoolId(0, 0), PoolId(0, 2), PoolId(2, 0)].map(pool_name),
            ["default pool", "pool (0, 2)", "pool (2, 0)"]
        );
    }
}
