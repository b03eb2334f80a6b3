//! MessagePack maps from short keys to numbers, text and bytes: the contents of chunks and of wire messages.
//!
//! Columns are single `bin` values. Readers skip unknown keys, so that later versions can add to a map.

use rmp::Marker;
use rmp::decode::{self, Bytes};
use rmp::encode::{self, ByteBuf};

use trace::error::{Checked, damaged};
use trace::narrow::number32;

/// Writes one map.
#[derive(Default)]
pub struct MapWriter {
    bytes: ByteBuf,
}

// Writing to a growing buffer can't fail: its error type has no value, and every result is dropped as such.
impl MapWriter {
    /// Begins a map of `entries` entries.
    pub fn map(entries: u32) -> Self {
        let mut new = Self::default();
        new.begin_map(entries);
        new
    }

    /// Begins a map of `entries` entries inside the map.
    pub fn begin_map(&mut self, entries: u32) {
        let _ = encode::write_map_len(&mut self.bytes, entries);
    }

    /// Begins an array of `items` items.
    pub fn begin_array(&mut self, items: usize) {
        let _ = encode::write_array_len(&mut self.bytes, number32(items));
    }

    /// Writes a text.
    pub fn text(&mut self, text: &str) {
        let _ = encode::write_str(&mut self.bytes, text);
    }

    /// Writes a number.
    pub fn number(&mut self, number: u64) {
        let _ = encode::write_uint(&mut self.bytes, number);
    }

    /// Writes a number with a fraction.
    pub fn float(&mut self, number: f64) {
        let _ = encode::write_f64(&mut self.bytes, number);
    }

    /// Writes a key. Its value must follow.
    pub fn key(&mut self, key: &str) -> &mut Self {
        self.text(key);
        self
    }

    /// Writes a number that is not negative.
    pub fn unsigned(&mut self, key: &str, number: u64) {
        self.key(key).number(number);
    }

    /// Writes a number.
    pub fn signed(&mut self, key: &str, number: i64) {
        self.text(key);
        let _ = encode::write_sint(&mut self.bytes, number);
    }

    /// Writes a text.
    pub fn string(&mut self, key: &str, text: &str) {
        self.key(key).text(text);
    }

    /// Writes `true` or `false`.
    pub fn flag(&mut self, key: &str, value: bool) {
        self.text(key);
        let _ = encode::write_bool(&mut self.bytes, value);
    }

    /// Writes a number that always takes nine bytes.
    pub fn wide(&mut self, key: &str, number: u64) {
        self.text(key);
        let _ = encode::write_u64(&mut self.bytes, number);
    }

    /// Writes a column as one `bin` value.
    pub fn column(&mut self, key: &str, bytes: &[u8]) {
        self.text(key);
        let _ = encode::write_bin(&mut self.bytes, bytes);
    }

    /// Returns what was written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes.into_vec()
    }
}

/// Reads values in order.
#[derive(Clone, Copy)]
pub struct MapReader<'a> {
    rest: &'a [u8],
}

impl<'a> MapReader<'a> {
    /// Creates a reader of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn with<T, E>(&mut self, read: impl FnOnce(&mut Bytes<'a>) -> Result<T, E>) -> Checked<T> {
        let mut bytes = Bytes::new(self.rest);
        let value = read(&mut bytes).map_err(|_| damaged("a value has an unexpected type"))?;
        self.rest = bytes.remaining_slice();
        Ok(value)
    }

    fn bytes(&mut self, length: u32) -> Checked<&'a [u8]> {
        let (bytes, rest) =
            self.rest.split_at_checked(length as usize).ok_or_else(|| damaged("a value is longer than its chunk"))?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Reads a map. `visit` reads the value of each key that it knows, and returns whether it did.
    pub fn map(&mut self, visit: &mut dyn FnMut(&'a str, &mut Self) -> Checked<bool>) -> Checked {
        for _ in 0..self.with(decode::read_map_len)? {
            let key = self.str()?;
            if !visit(key, self)? {
                self.skip()?;
            }
        }
        Ok(())
    }

    /// Reads the number of items of an array; the items follow.
    pub fn array(&mut self) -> Checked<u32> {
        self.with(decode::read_array_len)
    }

    /// Reads a text. Errs, as all readers here, if the next value is of another type or out of range.
    pub fn str(&mut self) -> Checked<&'a str> {
        let length = self.with(decode::read_str_len)?;
        std::str::from_utf8(self.bytes(length)?).map_err(|_| damaged("a text is not UTF-8"))
    }

    /// Reads a text into a string of its own.
    pub fn string(&mut self) -> Checked<String> {
        self.str().map(str::to_owned)
    }

    /// Reads a column.
    pub fn column(&mut self) -> Checked<&'a [u8]> {
        let length = self.with(decode::read_bin_len)?;
        self.bytes(length)
    }

    /// Reads a number that is not negative.
    pub fn unsigned(&mut self) -> Checked<u64> {
        self.with(decode::read_int)
    }

    /// Reads a number.
    pub fn signed(&mut self) -> Checked<i64> {
        self.with(decode::read_int)
    }

    /// Reads a number of 32 bits.
    pub fn number(&mut self) -> Checked<u32> {
        u32::try_from(self.unsigned()?).map_err(|_| damaged("a number is too large for its field"))
    }

    /// Reads a number with a fraction.
    pub fn float(&mut self) -> Checked<f64> {
        self.with(decode::read_f64)
    }

    /// Reads `true` or `false`.
    pub fn flag(&mut self) -> Checked<bool> {
        self.with(decode::read_bool)
    }

    /// Reads a length of this many bytes.
    fn length(&mut self, bytes: u32) -> Checked<u64> {
        Ok(self.bytes(bytes)?.iter().fold(0, |length, &byte| length << 8 | u64::from(byte)))
    }

    /// Skips one value of any type, without recursion: values may be nested as deeply as a chunk is long. Each step
    /// consumes at least one byte, so it ends.
    fn skip(&mut self) -> Checked {
        let mut values = 1_u64;
        while values > 0 {
            values -= 1;
            let before = *self;
            let bytes = match self.with(decode::read_marker)? {
                Marker::FixPos(_) | Marker::FixNeg(_) | Marker::Null | Marker::False | Marker::True => 0,
                Marker::U8 | Marker::I8 => 1,
                Marker::U16 | Marker::I16 => 2,
                Marker::U32 | Marker::I32 | Marker::F32 => 4,
                Marker::U64 | Marker::I64 | Marker::F64 => 8,
                Marker::FixStr(length) => length.into(),
                Marker::Str8 | Marker::Bin8 => self.length(1)?,
                Marker::Str16 | Marker::Bin16 => self.length(2)?,
                Marker::Str32 | Marker::Bin32 => self.length(4)?,
                // An extension begins with a byte for its type.
                Marker::FixExt1 => 2,
                Marker::FixExt2 => 3,
                Marker::FixExt4 => 5,
                Marker::FixExt8 => 9,
                Marker::FixExt16 => 17,
                Marker::Ext8 => self.length(1)? + 1,
                Marker::Ext16 => self.length(2)? + 1,
                Marker::Ext32 => self.length(4)? + 1,
                Marker::FixArray(_) | Marker::Array16 | Marker::Array32 => {
                    *self = before;
                    values = values.saturating_add(self.array()?.into());
                    0
                }
                Marker::FixMap(_) | Marker::Map16 | Marker::Map32 => {
                    *self = before;
                    values = values.saturating_add(2 * u64::from(self.with(decode::read_map_len)?));
                    0
                }
                Marker::Reserved => return Err(damaged("a value has a reserved type")),
            };
            self.bytes(u32::try_from(bytes).unwrap_or(u32::MAX))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_read_by_name_and_unknown_keys_are_skipped() {
        let mut message = MapWriter::map(5);
        message.unsigned("new", 7);
        message.signed("a", -3);
        message.key("list").begin_array(2);
        message.begin_map(1);
        message.column("x", b"yz");
        message.float(0.5);
        message.column("b", b"bytes");
        message.string("c", "text");
        let bytes = message.into_bytes();
        let read = |bytes: &[u8]| -> Checked<(i64, Vec<u8>, String)> {
            let mut got = (0, Vec::new(), String::new());
            MapReader::new(bytes).map(&mut |key, values| {
                match key {
                    "a" => got.0 = values.signed()?,
                    "b" => got.1 = values.column()?.to_vec(),
                    "c" => got.2 = values.string()?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
            Ok(got)
        };
        assert_eq!(read(&bytes).unwrap(), (-3, b"bytes".to_vec(), "text".to_owned()));
        for cut in 0..bytes.len() {
            assert!(read(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        // A length that nothing follows, and a depth that no chunk has.
        assert!(read(&[0x81, 0xa1, b'b', 0xc6, 0xff, 0xff, 0xff, 0xff]).is_err());
        assert!(read(&[&[0x81, 0xa1, b'x'][..], &[0x91; 100_000]].concat()).is_err());
    }

    #[test]
    fn a_value_of_any_kind_can_be_skipped() {
        let cases: &[(&[u8], usize)] = &[
            (&[0x00], 0),
            (&[0xff], 0),
            (&[0xc0], 0),
            (&[0xc2], 0),
            (&[0xcc], 1),
            (&[0xd1], 2),
            (&[0xca], 4),
            (&[0xcf], 8),
            (&[0xa3], 3),
            (&[0xd9, 200], 200),
            (&[0xda, 1, 2], 258),
            (&[0xdb, 0, 0, 0, 4], 4),
            (&[0xc4, 5], 5),
            (&[0xc5, 0, 6], 6),
            (&[0xc6, 0, 0, 1, 0], 256),
            (&[0xd4], 2),
            (&[0xd8], 17),
            (&[0xc7, 3], 4),
            (&[0xc8, 0, 3], 4),
            (&[0xc9, 0, 0, 0, 3], 4),
            (&[0x92, 0x01, 0xa1], 1),
            (&[0x81, 0xa1, b'k', 0xcd], 2),
            (&[0xdc, 0, 2, 0x91, 0x01, 0xc0], 0),
            (&[0xde, 0, 1, 0xc0, 0xcd], 2),
        ];
        for &(start, more) in cases {
            let value = [start, &vec![0; more]].concat();
            let map = [&[0x82, 0xa1, b'x'][..], &value, &[0xa1, b'y', 7]].concat();
            let mut got = None;
            let visit = &mut |key: &str, values: &mut MapReader<'_>| {
                got = if key == "y" { Some(values.unsigned()?) } else { None };
                Ok(key == "y")
            };
            MapReader::new(&map).map(visit).unwrap_or_else(|fault| panic!("{start:x?}: {fault:?}"));
            assert_eq!(got, Some(7), "{start:x?}");
            if !value.is_empty() {
                let cut = [&[0x81, 0xa1, b'x'][..], &value[..value.len() - 1]].concat();
                assert!(MapReader::new(&cut).map(&mut |_, _| Ok(false)).is_err(), "{start:x?} cut");
            }
        }
        assert!(MapReader::new(&[0x81, 0xa1, b'x', 0xc1]).map(&mut |_, _| Ok(false)).is_err());
    }
}
