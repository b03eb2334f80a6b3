//! Writes values.

use serde::ser::{
    Impossible, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple, SerializeTupleStruct,
    SerializeTupleVariant,
};
use serde::{Serialize, Serializer};

use super::never::{Never, unsupported};

/// Appends values to bytes.
pub(super) struct Writer<'a>(pub(super) &'a mut Vec<u8>);

/// Writes numbers, seven bits of them in each byte.
macro_rules! write_number {
    ($($name:ident: $type:ty),*) => {$(
        #[expect(clippy::cast_possible_truncation, reason = "the lowest seven bits are what is wanted")]
        fn $name(&mut self, mut number: $type) {
            while number >= 0x80 {
                self.0.push(number as u8 | 0x80);
                number >>= 7;
            }
            self.0.push(number as u8);
        }
    )*};
}

impl Writer<'_> {
    write_number!(number: u64, wide_number: u128);

    /// Writes a number with a sign, which becomes its last bit.
    fn signed(&mut self, number: i64) {
        self.number((number << 1 ^ number >> 63).cast_unsigned());
    }

    fn counted_bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn append<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Never> {
        value.serialize(Writer(&mut *self.0))
    }
}

/// Writes simple values, each with an expression.
macro_rules! write_with {
    ($writer:ident, $value:ident: $($name:ident($type:ty) => $write:expr,)*) => {$(
        fn $name(mut self, $value: $type) -> Result<(), Never> {
            let $writer = &mut self;
            $write;
            Ok(())
        }
    )*};
}

impl Serializer for Writer<'_> {
    type Ok = ();
    type Error = Never;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Impossible<(), Never>;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    write_with! {
        writer, value:
        serialize_bool(bool) => writer.0.push(value.into()),
        serialize_u8(u8) => writer.0.push(value),
        serialize_u16(u16) => writer.number(value.into()),
        serialize_u32(u32) => writer.number(value.into()),
        serialize_u64(u64) => writer.number(value),
        serialize_u128(u128) => writer.wide_number(value),
        serialize_i8(i8) => writer.0.push(value.cast_unsigned()),
        serialize_i16(i16) => writer.signed(value.into()),
        serialize_i32(i32) => writer.signed(value.into()),
        serialize_i64(i64) => writer.signed(value),
        serialize_f32(f32) => writer.0.extend(value.to_le_bytes()),
        serialize_f64(f64) => writer.0.extend(value.to_le_bytes()),
        serialize_str(&str) => writer.counted_bytes(value.as_bytes()),
        serialize_bytes(&[u8]) => writer.counted_bytes(value),
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_char(self, _: char) -> Result<(), Never> {
        unsupported()
    }

    fn serialize_none(self) -> Result<(), Never> {
        self.serialize_u8(0)
    }

    fn serialize_some<T: Serialize + ?Sized>(mut self, value: &T) -> Result<(), Never> {
        self.0.push(1);
        self.append(value)
    }

    fn serialize_unit(self) -> Result<(), Never> {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Never> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, variant: u32, _: &'static str) -> Result<(), Never> {
        self.serialize_u32(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Never> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        mut self,
        _: &'static str,
        variant: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), Never> {
        self.number(variant.into());
        self.append(value)
    }

    fn serialize_seq(mut self, len: Option<usize>) -> Result<Self, Never> {
        let Some(len) = len else { unsupported() };
        self.number(len as u64);
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Never> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Never> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        mut self,
        _: &'static str,
        variant: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Never> {
        self.number(variant.into());
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Never> {
        unsupported()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Never> {
        Ok(self)
    }

    fn serialize_struct_variant(
        mut self,
        _: &'static str,
        variant: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Never> {
        self.number(variant.into());
        Ok(self)
    }
}

/// Writes the parts of a value one after the other.
macro_rules! write_parts {
    ($($trait:ident::$method:ident($($key:ty)?),)*) => {$(
        impl $trait for Writer<'_> {
            type Ok = ();
            type Error = Never;

            fn $method<T: Serialize + ?Sized>(&mut self, $(_: $key,)? value: &T) -> Result<(), Never> {
                self.append(value)
            }

            fn end(self) -> Result<(), Never> {
                Ok(())
            }
        }
    )*};
}

write_parts! {
    SerializeSeq::serialize_element(),
    SerializeTuple::serialize_element(),
    SerializeTupleStruct::serialize_field(),
    SerializeTupleVariant::serialize_field(),
    SerializeStruct::serialize_field(&'static str),
    SerializeStructVariant::serialize_field(&'static str),
}
