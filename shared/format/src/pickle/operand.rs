//! The operands of an opcode, whose function returns `None` if they are incomplete.

/// An operand of fixed length.
macro_rules! operand {
    ($rest:ident, $next:ident, $count:literal) => {{
        let Some(&operand) = $rest.first_chunk::<$count>() else { return Ok(None) };
        $next += $count;
        operand
    }};
}

/// Bytes that follow their length.
macro_rules! counted {
    ($machine:ident, $rest:ident, $next:ident, $count:literal, $int:ty) => {{
        let Some((length, rest)) = $rest.split_first_chunk::<$count>() else { return Ok(None) };
        let length = $machine.length(<$int>::from_le_bytes(*length) as u64)?;
        let Some(text) = rest.get(..length) else { return Ok(None) };
        $next += $count + length;
        text
    }};
}

pub(super) use {counted, operand};
