//! The operations of a script, checked before anything runs.

use allocator::sim::Placement;
use serde_json::Value;

/// Why a script is invalid, in one line.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The text is not JSON.
    #[error("not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A part of the script is missing or has the wrong type.
    #[error("{0}")]
    Shape(&'static str),
    /// An operation is wrong.
    #[error("operation {index} is {text}, but {expected}")]
    Op {
        /// The number of the operation, from 0.
        index: usize,
        /// The operation as written, truncated.
        text: String,
        /// What was expected.
        expected: &'static str,
    },
    /// The settings string would keep the program from starting.
    #[error("the settings are invalid: {0}")]
    Config(#[from] allocator::ConfigError),
}

/// A name that the script gives an allocation, a pool or a graph, as Python prints it.
pub(super) type Name = String;

/// A size as written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// A number of bytes.
    Bytes(u64),
    /// A negative number, which no tensor can have.
    Negative(i64),
    /// 2^63 or more, which PyTorch cannot read.
    Unreadable,
}

/// An operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Allocates bytes with this stream current.
    Malloc(Name, Size, usize),
    /// Frees an allocation.
    Free(Name),
    /// Records that a stream uses an allocation.
    RecordStream(Name, usize),
    /// Holds a stream.
    Hold(usize),
    /// Lets a held stream proceed.
    Release(usize),
    /// Waits for all streams.
    Synchronize,
    /// Releases all cached memory.
    EmptyCache,
    /// Limits the memory to a fraction. `None` is a whole number, which PyTorch does not accept.
    Fraction(Option<f64>),
    /// Changes the settings.
    Config(String),
    /// Changes the device's memory.
    Capacity(u64),
    /// Makes the next `n` allocations of the driver fail.
    FailNext(u64),
    /// Creates a pool.
    PoolNew {
        /// Its name.
        name: Name,
        /// `use_on_oom`, if given.
        use_on_oom: Option<bool>,
        /// `no_split`, if given.
        no_split: Option<bool>,
    },
    /// Begins to send requests to a pool.
    PoolBegin(Name),
    /// Stops sending requests to a pool.
    PoolEnd(Name),
    /// Deletes a pool.
    PoolDel(Name),
    /// Begins the capture of a graph.
    GraphBegin(Name),
    /// Ends the capture.
    GraphEnd(Name),
    /// Deletes a graph.
    GraphDel(Name),
    /// Resets the peaks.
    ResetPeak,
    /// Takes a snapshot of the state.
    Snapshot,
}

/// A script.
#[derive(Debug)]
pub struct Script {
    /// Settings string at the start.
    pub config: String,
    /// The device's memory in bytes.
    pub capacity: u64,
    /// Which addresses the device gives out.
    pub placement: Placement,
    /// The operations.
    pub ops: Vec<Op>,
    /// Everything but the operations, as written.
    pub rest: serde_json::Map<String, Value>,
}

/// The default capacity: 80 GiB.
const CAPACITY: u64 = 80 << 30;
/// Number of streams that a script may name. PyTorch has 32 and reuses them in turn.
const STREAMS: u64 = 1 << 16;

impl Script {
    /// Parses a script.
    pub fn parse(text: &[u8]) -> Result<Self, ScriptError> {
        let Value::Object(mut rest) = serde_json::from_slice(text)? else {
            return Err(ScriptError::Shape("a script is a JSON object with \"ops\""));
        };
        let Some(Value::Array(ops)) = rest.remove("ops") else {
            return Err(ScriptError::Shape("a script has a list \"ops\""));
        };
        let ops = ops.iter().enumerate().map(|(index, value)| op(index, value)).collect::<Result<_, _>>()?;
        let config = match rest.get("config") {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(_) => return Err(ScriptError::Shape("\"config\" is a settings string")),
        };
        let capacity = match rest.get("capacity_bytes") {
            None => CAPACITY,
            Some(value) => value.as_u64().ok_or(ScriptError::Shape("\"capacity_bytes\" is a whole number of bytes"))?,
        };
        let placement = match rest.get("va").map(Value::as_str) {
            None | Some(Some("firstfit")) => Placement::FirstFit,
            Some(Some("bump")) => Placement::Bump,
            Some(_) => return Err(ScriptError::Shape("\"va\" has to be \"firstfit\" or \"bump\"")),
        };
        if rest.get("devices").is_some_and(|devices| devices.as_u64() != Some(1)) {
            return Err(ScriptError::Shape("a script has exactly one device"));
        }
        Ok(Self { config, capacity, placement, ops, rest })
    }
}

/// Parses an operation.
fn op(index: usize, value: &Value) -> Result<Op, ScriptError> {
    known(value).ok_or_else(|| {
        let text: String = value.to_string().chars().take(80).collect();
        ScriptError::Op { index, text, expected: expectation(value) }
    })
}

fn known(value: &Value) -> Option<Op> {
    let list = value.as_array()?;
    let (kind, rest) = list.split_first()?;
    Some(match (kind.as_str()?, rest) {
        ("malloc", [id, bytes, stream]) => Op::Malloc(name(id)?, size(bytes)?, stream_number(stream)?),
        ("free", [id]) => Op::Free(name(id)?),
        ("record_stream", [id, stream]) => Op::RecordStream(name(id)?, stream_number(stream)?),
        ("hold", [stream]) => Op::Hold(stream_number(stream)?),
        ("release", [stream]) => Op::Release(stream_number(stream)?),
        ("synchronize", []) => Op::Synchronize,
        ("empty_cache", []) => Op::EmptyCache,
        ("fraction", [fraction]) if fraction.is_f64() => Op::Fraction(fraction.as_f64()),
        ("fraction", [fraction]) if fraction.is_number() => Op::Fraction(None),
        ("config", [text]) => Op::Config(text.as_str()?.to_owned()),
        ("capacity", [bytes]) => Op::Capacity(bytes.as_u64()?),
        ("fail_next", [n]) => Op::FailNext(n.as_u64()?),
        ("pool_new", [id]) => Op::PoolNew { name: name(id)?, use_on_oom: None, no_split: None },
        ("pool_new", [id, Value::Object(options)]) => {
            let option = |key| options.get(key).map(Value::as_bool);
            let (use_on_oom, no_split) = (option("use_on_oom"), option("no_split"));
            if options.len() != usize::from(use_on_oom.is_some()) + usize::from(no_split.is_some()) {
                return None;
            }
            // A value that is present but is not a boolean is an error.
            let checked = |option: Option<Option<bool>>| option.map_or(Some(None), |value| value.map(Some));
            Op::PoolNew { name: name(id)?, use_on_oom: checked(use_on_oom)?, no_split: checked(no_split)? }
        }
        ("pool_begin", [id]) => Op::PoolBegin(name(id)?),
        ("pool_end", [id]) => Op::PoolEnd(name(id)?),
        ("pool_del", [id]) => Op::PoolDel(name(id)?),
        ("graph_begin", [id]) => Op::GraphBegin(name(id)?),
        ("graph_end", [id]) => Op::GraphEnd(name(id)?),
        ("graph_del", [id]) => Op::GraphDel(name(id)?),
        ("reset_peak", []) => Op::ResetPeak,
        ("snapshot", []) => Op::Snapshot,
        _ => return None,
    })
}

fn expectation(value: &Value) -> &'static str {
    match value.get(0).and_then(Value::as_str) {
        Some("malloc") => "expected [\"malloc\", name, bytes, stream]",
        Some("record_stream") => "expected [\"record_stream\", name, stream]",
        Some("free" | "pool_begin" | "pool_end" | "pool_del" | "graph_begin" | "graph_end" | "graph_del") => {
            "expected one name"
        }
        Some("pool_new") => "expected a name, and perhaps {\"use_on_oom\": true, \"no_split\": true}",
        Some("hold" | "release") => "expected one stream, a small number",
        Some("fraction") => "expected a number",
        Some("config") => "expected a settings string",
        Some("capacity" | "fail_next") => "expected a whole number",
        Some("synchronize" | "empty_cache" | "reset_peak" | "snapshot") => "expected nothing after the name",
        Some(_) => "there is no operation of that name",
        None => "expected a list that begins with the operation's name",
    }
}

/// Returns a name as Python's `repr` writes it.
fn name(value: &Value) -> Option<Name> {
    match value {
        Value::String(text) => Some(format!("'{text}'")),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn size(value: &Value) -> Option<Size> {
    match (value.as_u64(), value.as_i64()) {
        (Some(bytes), Some(_)) => Some(Size::Bytes(bytes)),
        (None, Some(negative)) => Some(Size::Negative(negative)),
        // Beyond 2^63 or 2^64, where serde_json reads a float.
        _ => value.as_f64().filter(|float| *float >= 9.2e18).map(|_| Size::Unreadable),
    }
}

fn stream_number(value: &Value) -> Option<usize> {
    value.as_u64().filter(|stream| *stream < STREAMS).map(|stream| stream as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_scripts_are_refused_in_one_line() {
        let cases = [
            ("", "not JSON: EOF while parsing a value at line 1 column 0"),
            ("[]", "a script is a JSON object with \"ops\""),
            ("{\"ops\": 1}", "a script has a list \"ops\""),
            ("{\"ops\": [], \"config\": 1}", "\"config\" is a settings string"),
            ("{\"ops\": [], \"capacity_bytes\": -1}", "\"capacity_bytes\" is a whole number of bytes"),
            ("{\"ops\": [], \"va\": \"best\"}", "\"va\" has to be \"firstfit\" or \"bump\""),
            ("{\"ops\": [], \"devices\": 2}", "a script has exactly one device"),
            ("{\"ops\": [[\"melloc\", 1]]}", "operation 0 is [\"melloc\",1], but there is no operation of that name"),
            (
                "{\"ops\": [[\"snapshot\"], [\"malloc\", 1, \"2\", 0]]}",
                "operation 1 is [\"malloc\",1,\"2\",0], but expected [\"malloc\", name, bytes, stream]",
            ),
            ("{\"ops\": [[\"hold\", -1]]}", "operation 0 is [\"hold\",-1], but expected one stream, a small number"),
            ("{\"ops\": [7]}", "operation 0 is 7, but expected a list that begins with the operation's name"),
            (
                "{\"ops\": [[\"pool_new\", 1, {\"colour\": true}]]}",
                "operation 0 is [\"pool_new\",1,{\"colour\":true}], but expected a name, and perhaps {\"use_on_oom\": true, \
                 \"no_split\": true}",
            ),
        ];
        for (text, want) in cases {
            assert_eq!(Script::parse(text.as_bytes()).unwrap_err().to_string(), want, "{text}");
        }
    }

    #[test]
    fn sizes_are_read_at_every_magnitude() {
        let cases = [
            ("0", Some(Size::Bytes(0))),
            ("9223372036854775807", Some(Size::Bytes(i64::MAX as u64))),
            ("9223372036854775808", Some(Size::Unreadable)),
            ("1e30", Some(Size::Unreadable)),
            ("100000000000000000000000", Some(Size::Unreadable)),
            ("-5", Some(Size::Negative(-5))),
            ("1.5", None),
        ];
        for (text, want) in cases {
            assert_eq!(size(&serde_json::from_str(text).unwrap()), want, "{text}");
        }
    }
}
