//! Reads values.

use serde::Deserializer;
use serde::de::value::U32Deserializer;
use serde::de::{DeserializeSeed, EnumAccess, IntoDeserializer as _, SeqAccess, VariantAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::never::{Never, unsupported};

/// What is left of some bytes. Past the end, and once something can't be read, everything is empty or zero.
pub(super) struct Reader<'de> {
    left: &'de [u8],
    is_wrong: bool,
}

/// Reads numbers, seven bits of them in each byte.
macro_rules! read_number {
    ($($name:ident: $type:ty),*) => {$(
        fn $name(&mut self) -> $type {
            let mut number = 0;
            for shift in (0..<$type>::BITS).step_by(7) {
                let byte = self.byte();
                let bits = <$type>::from(byte & 0x7f);
                if bits << shift >> shift != bits {
                    break;
                }
                number |= bits << shift;
                if byte < 0x80 {
                    return number;
                }
            }
            self.give_up()
        }
    )*};
}

impl<'de> Reader<'de> {
    read_number!(number: u64, wide_number: u128);

    pub(super) fn new(bytes: &'de [u8]) -> Self {
        Self { left: bytes, is_wrong: false }
    }

    /// Returns what was not read; `None` if what was read is wrong.
    pub(super) fn rest(self) -> Option<&'de [u8]> {
        (!self.is_wrong).then_some(self.left)
    }

    /// Notes that nothing read from here on, nor what is being read, means anything.
    #[cold]
    fn give_up<T: Default>(&mut self) -> T {
        self.left = &[];
        self.is_wrong = true;
        T::default()
    }

    /// Returns `found`, or gives up.
    fn expect<T: Default>(&mut self, found: Option<T>) -> T {
        match found {
            Some(found) => found,
            None => self.give_up(),
        }
    }

    fn byte(&mut self) -> u8 {
        let byte = self.left.split_off_first().copied();
        self.expect(byte)
    }

    fn bytes(&mut self, count: usize) -> &'de [u8] {
        let bytes = self.left.split_off(..count);
        self.expect(bytes)
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        self.bytes(N).try_into().unwrap_or([0; N])
    }

    /// Reads a number that must fit into a type.
    fn narrow<T: TryFrom<u64> + Default>(&mut self) -> T {
        let number = self.number();
        self.expect(T::try_from(number).ok())
    }

    /// Reads a number with a sign, which is its last bit, and must fit into a type.
    fn signed<T: TryFrom<i64> + Default>(&mut self) -> T {
        let number = self.number();
        self.expect(T::try_from((number >> 1).cast_signed() ^ -(number & 1).cast_signed()).ok())
    }

    /// Reads a number below `count`.
    fn choice(&mut self, count: usize) -> u32 {
        let choice = self.narrow();
        self.expect(Some(choice).filter(|choice| (*choice as usize) < count))
    }

    fn counted_bytes(&mut self) -> &'de [u8] {
        let count = self.narrow();
        self.bytes(count)
    }

    fn text(&mut self) -> &'de str {
        let bytes = self.counted_bytes();
        self.expect(str::from_utf8(bytes).ok())
    }
}

/// Reads with one of the methods above, which is handed to one of the visitor's.
macro_rules! read {
    ($($name:ident: $visit:ident($read:expr)),* $(,)?) => {$(
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Never> {
            visitor.$visit($read(self))
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Never;

    read! {
        deserialize_bool: visit_bool(|reader: Self| reader.choice(2) == 1),
        deserialize_u8: visit_u8(Reader::byte),
        deserialize_u16: visit_u16(Reader::narrow),
        deserialize_u32: visit_u32(Reader::narrow),
        deserialize_u64: visit_u64(Reader::number),
        deserialize_u128: visit_u128(Reader::wide_number),
        deserialize_i8: visit_i8(|reader: Self| reader.byte().cast_signed()),
        deserialize_i16: visit_i16(Reader::signed),
        deserialize_i32: visit_i32(Reader::signed),
        deserialize_i64: visit_i64(Reader::signed),
        deserialize_f32: visit_f32(|reader: Self| f32::from_le_bytes(reader.array())),
        deserialize_f64: visit_f64(|reader: Self| f64::from_le_bytes(reader.array())),
        deserialize_str: visit_borrowed_str(Reader::text),
        deserialize_string: visit_borrowed_str(Reader::text),
        deserialize_bytes: visit_borrowed_bytes(Reader::counted_bytes),
        deserialize_byte_buf: visit_borrowed_bytes(Reader::counted_bytes),
        deserialize_seq: visit_seq(|reader: Self| {
            let left = reader.narrow();
            Elements { reader, left }
        }),
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Never> {
        if self.choice(2) == 1 { visitor.visit_some(self) } else { visitor.visit_none() }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Never> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Never> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Never> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Never> {
        visitor.visit_seq(Fields(self))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Never> {
        visitor.visit_seq(Fields(self))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Never> {
        visitor.visit_seq(Fields(self))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Never> {
        visitor.visit_enum(Variants { reader: self, count: variants.len() })
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Never> {
        unsupported()
    }

    forward_to_deserialize_any! { i128 char map identifier ignored_any }
}

/// The fields of a type, of which a visitor asks for as many as there are.
struct Fields<'a, 'de>(&'a mut Reader<'de>);

impl<'de> SeqAccess<'de> for Fields<'_, 'de> {
    type Error = Never;

    #[inline(always)]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Never> {
        seed.deserialize(&mut *self.0).map(Some)
    }
}

/// The elements of a sequence.
struct Elements<'a, 'de> {
    reader: &'a mut Reader<'de>,
    left: usize,
}

impl<'de> SeqAccess<'de> for Elements<'_, 'de> {
    type Error = Never;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Never> {
        if self.left == 0 || self.reader.is_wrong {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(&mut *self.reader).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        // Whatever the bytes say, no more elements than bytes: nothing is reserved for those that don't come.
        Some(self.left.min(self.reader.left.len()))
    }
}

/// One of the variants of a type.
struct Variants<'a, 'de> {
    reader: &'a mut Reader<'de>,
    count: usize,
}

impl<'a, 'de> EnumAccess<'de> for Variants<'a, 'de> {
    type Error = Never;
    type Variant = Fields<'a, 'de>;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Fields<'a, 'de>), Never> {
        let variant: U32Deserializer<Never> = self.reader.choice(self.count).into_deserializer();
        Ok((seed.deserialize(variant)?, Fields(self.reader)))
    }
}

impl<'de> VariantAccess<'de> for Fields<'_, 'de> {
    type Error = Never;

    fn unit_variant(self) -> Result<(), Never> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Never> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Never> {
        visitor.visit_seq(self)
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, Never> {
        visitor.visit_seq(self)
    }
}
