//! Reads snapshots as JSON.

use crate::json::{JsonReader, Target};
use crate::values::Operands;
use crate::values::SnapshotBuilder;
use crate::values::{Kind, Value};
use trace::error::{Checked, ImportError};
use trace::limits::ImportLimits;

/// The format's name in messages.
pub(super) const JSON: &str = "JSON";
/// List items that are appended at once, so that a long trace never fills the stack. At least a thousand: see
/// [`SnapshotBuilder::append`].
const BATCH: usize = 1_024;

/// Reads one snapshot.
#[derive(Debug)]
pub(super) struct Json {
    reader: JsonReader<Values>,
}

impl Json {
    pub(super) fn new(limits: ImportLimits) -> Self {
        let operands = Operands::new(limits.stack_items, limits.depth);
        let values = Values { builder: SnapshotBuilder::new(limits), operands };
        Self { reader: JsonReader::new(values, limits.string_bytes) }
    }

    /// Returns the number of trace entries read so far.
    pub(super) fn events(&self) -> usize {
        self.reader.target.builder.events.len()
    }

    /// Whether the end was reached. Bytes after it are ignored.
    pub(super) fn is_done(&self) -> bool {
        self.reader.is_done()
    }

    /// Returns the offset of the first byte behind the text, once its end was reached.
    pub(super) fn ended_at(&self) -> Option<u64> {
        self.is_done().then_some(self.reader.byte())
    }

    /// Returns the approximate bytes of memory of what was read.
    pub(super) fn memory(&self) -> usize {
        let Values { builder, operands } = &self.reader.target;
        builder.memory() + operands.memory() + self.reader.memory()
    }

    /// Reads more bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), ImportError> {
        self.reader.push(bytes).map_err(|fault| fault.at(JSON, self.reader.byte()))
    }

    /// Returns what was read, the root, and where the text was truncated, if it was.
    pub(super) fn finish(self) -> Result<(SnapshotBuilder, Option<Value>, Option<u64>), ImportError> {
        let (byte, is_done) = (self.reader.byte(), self.is_done());
        let Values { mut builder, mut operands } = self.reader.target;
        let root = if is_done { operands.pop().map(Some) } else { operands.close(&mut builder) };
        let root = root.map_err(|fault| fault.at(JSON, byte))?;
        Ok((builder, root, (!is_done).then_some(byte)))
    }
}

/// The values of a snapshot, converted as soon as their parents are complete.
#[derive(Debug)]
struct Values {
    builder: SnapshotBuilder,
    operands: Operands,
}

impl Values {
    /// Removes the last mark for what handles the values above its place. If that fails, the mark is back, so that what was read
    /// before is as it was.
    fn unmarked(&mut self, handle: impl FnOnce(&mut Self, usize) -> Checked) -> Checked {
        let place = self.operands.unmark()?;
        let handled = handle(self, place);
        if handled.is_err() {
            self.operands.mark_again(place);
        }
        handled
    }

    /// Appends the items from a place on to the innermost list.
    fn append(&mut self, place: usize) -> Checked {
        let list = self.operands.below(place)?;
        self.builder.append(list, self.operands.above(place))?;
        self.operands.cut(place);
        Ok(())
    }

    /// Fills the outermost object with the values from a place on.
    fn fill(&mut self, place: usize) -> Checked {
        let root = self.operands.below(place)?;
        self.builder.set_items(root, self.operands.above(place))?;
        self.operands.cut(place);
        Ok(())
    }

    /// Puts an object of the values from a place on in their place.
    fn convert(&mut self, place: usize) -> Checked {
        let object = self.builder.whole_dict(self.operands.above(place))?;
        self.operands.cut(place);
        self.operands.pop()?;
        self.operands.push(object)
    }
}

impl Target for Values {
    const TAKES_CONTROLS: bool = true;

    fn begin(&mut self, is_object: bool, depth: usize) -> Checked {
        // An object is converted when it is complete. Only the outermost is filled entry by entry, so that it may be
        // truncated.
        let target = match (is_object, depth) {
            (true, 0) => self.builder.node(Kind::EmptyDict)?,
            (true, _) => Value::None,
            (false, _) => self.builder.node(Kind::EmptyList)?,
        };
        self.operands.push(target)?;
        self.operands.mark()
    }

    fn end(&mut self, is_object: bool, depth: usize) -> Checked {
        self.unmarked(match (is_object, depth) {
            (false, _) => Self::append,
            (true, 0) => Self::fill,
            (true, _) => Self::convert,
        })
    }

    fn string(&mut self, text: &[u8]) -> Checked {
        let value = self.builder.string(text)?;
        self.operands.push(value)
    }

    fn scalar(&mut self, value: Value) -> Checked {
        let value = if value == Value::Odd { self.builder.odd() } else { value };
        self.operands.push(value)
    }

    fn next_item(&mut self) -> Checked {
        if self.operands.above_mark() < BATCH {
            return Ok(());
        }
        self.unmarked(|values, place| {
            values.append(place)?;
            values.operands.mark()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8], piece: usize) -> Result<(Value, SnapshotBuilder), ImportError> {
        let mut json = Json::new(ImportLimits::default());
        for part in text.chunks(piece) {
            json.push(part)?;
        }
        let (builder, root, cut_at) = json.finish()?;
        assert_eq!(cut_at, None);
        Ok((root.unwrap(), builder))
    }

    #[test]
    fn scalars_are_read_whatever_the_pieces() {
        let text =
            br#"[1, -2, 18446744073709551615, 1.5e3, NaN, -Infinity, true, null, "a\u00e9\ud83d\ude00\"\n", {}]"#;
        for piece in [1, 2, 3, 7, 1000] {
            let (root, builder) = read(text, piece).unwrap();
            let Value::Node(id) = root else { panic!("{root:?}") };
            let Kind::List(place) = builder.kind(id) else { panic!() };
            let items = builder.kept.get(place);
            assert_eq!(items[..4], [Value::Int(1), Value::Int(-2), Value::Big(u64::MAX), Value::Float(1500.0)]);
            assert!(matches!(items[4], Value::Float(f) if f.is_nan()));
            assert_eq!(items[5..8], [Value::Float(f64::NEG_INFINITY), Value::Bool(true), Value::None]);
            assert_eq!(builder.symbols.unshown(items[8].str().unwrap()), "aé😀\"\n");
        }
    }

    #[test]
    fn malformed_json_is_refused() {
        for text in ["[1 2]", "{1:2}", "[}", "{\"a\" 1}", "[nul]", "[\"\\x\"]", "[--]", "]", "[1.2.3]"] {
            assert!(read(text.as_bytes(), 100).is_err(), "{text}");
        }
        let nested = "[".repeat(1_000_000);
        assert!(matches!(read(nested.as_bytes(), 4096), Err(ImportError::TooMuch { .. })));
    }
}
