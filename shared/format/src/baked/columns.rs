//! The columns of numbers in an answer, as varints of differences. Neighbouring columns of pixels are alike, so that they
//! take half of what LZ4 makes of the plain numbers. Nothing is rounded.

use crate::varint::{Varints, push, zigzag};
use query::{Answer, Overview, Packed, Quads};
use trace::decimal::Decimal;
use trace::error::{Checked, damaged};

/// Takes the columns out of an answer.
pub(super) fn take(answer: &mut Answer) -> Vec<Vec<u8>> {
    match answer {
        Answer::Timeline(timeline) => {
            let mut columns = of_quads(&std::mem::take(&mut timeline.quads));
            let position = std::mem::take(&mut timeline.position).0;
            columns.push(differences(position.iter().map(|&position| position.into())));
            columns.extend([&mut timeline.top, &mut timeline.active, &mut timeline.reserved].map(take_column));
            columns
        }
        Answer::Overview(overview) => {
            let Overview { reserved, active, allocated, least, .. } = overview;
            [reserved, active, allocated, least].map(take_column).into()
        }
        _ => Vec::new(),
    }
}

/// Puts the columns that [`take`] returned back into an answer. Fails if they can't be its columns.
pub(super) fn restore<T: AsRef<[u8]>>(answer: &mut Answer, columns: &[T]) -> Checked {
    let mut columns = columns.iter().map(AsRef::as_ref);
    let mut next = || columns.next().ok_or_else(|| damaged("an answer has too few columns"));
    match answer {
        Answer::Timeline(timeline) => {
            timeline.quads = quads([next()?, next()?, next()?, next()?, next()?, next()?])?;
            timeline.position = small(next()?)?.into();
            for column in [&mut timeline.top, &mut timeline.active, &mut timeline.reserved] {
                *column = sums(next()?)?.into();
            }
        }
        Answer::Overview(overview) => {
            let Overview { reserved, active, allocated, least, .. } = overview;
            for column in [reserved, active, allocated, least] {
                *column = sums(next()?)?.into();
            }
        }
        _ => {}
    }
    Ok(())
}

fn take_column(column: &mut Packed<u64>) -> Vec<u8> {
    differences(std::mem::take(column).0.into_iter())
}

/// Encodes the difference of each number from the one before.
fn differences(numbers: impl Iterator<Item = u64>) -> Vec<u8> {
    let (mut column, mut last) = (Vec::new(), 0_u64);
    for number in numbers {
        push(&mut column, zigzag(number.wrapping_sub(last) as i64));
        last = number;
    }
    column
}

/// Decodes what [`differences`] encoded.
fn sums(column: &[u8]) -> Checked<Vec<u64>> {
    let (mut column, mut numbers, mut last) = (Varints::new(column), Vec::new(), 0_u64);
    while !column.is_empty() {
        last = last.wrapping_add(column.signed()? as u64);
        numbers.push(last);
    }
    Ok(numbers)
}

/// Decodes numbers of 32 bits.
fn small(column: &[u8]) -> Checked<Vec<u32>> {
    let narrow = |number: u64| u32::try_from(number).map_err(|_| damaged("a number is too large for its field"));
    sums(column)?.into_iter().map(narrow).collect()
}

/// Returns a whole number of pixel columns; 0 for a negative one.
fn whole(columns: f32) -> u64 {
    u64::try_from(Decimal::of(columns.into(), 0).scaled()).unwrap_or(0)
}

/// Encodes rectangles in six columns: left edges and widths, which are whole numbers of pixel columns; lower edges, which
/// mostly are the upper edge of the rectangle before, and heights, both as differences of the numbers' bits; colours and ids.
fn of_quads(quads: &Quads) -> Vec<Vec<u8>> {
    let (mut widths, mut bottoms, mut heights) = (Vec::new(), Vec::new(), Vec::new());
    let mut last = 0_u32;
    let rows = quads.x0.iter().zip(quads.x1.iter()).zip(quads.y0.iter().zip(quads.y1.iter()));
    for ((&x0, &x1), (&y0, &y1)) in rows {
        let (bottom, top) = (y0.to_bits(), y1.to_bits());
        push(&mut widths, whole(x1 - x0));
        push(&mut bottoms, zigzag(i64::from(bottom) - i64::from(last)));
        push(&mut heights, zigzag(i64::from(top) - i64::from(bottom)));
        last = top;
    }
    let lefts = differences(quads.x0.iter().map(|&x| whole(x)));
    let paints = differences(quads.paint.iter().map(|&paint| paint.into()));
    let ids = differences(quads.id.iter().map(|&id| id.into()));
    vec![lefts, widths, bottoms, heights, paints, ids]
}

/// Decodes what [`of_quads`] encoded.
fn quads([lefts, widths, bottoms, heights, paints, ids]: [&[u8]; 6]) -> Checked<Quads> {
    let mut made = Quads { id: small(ids)?.into(), ..Quads::default() };
    let narrow = |number: u64| u16::try_from(number).map_err(|_| damaged("a colour is too large for its field"));
    made.paint = sums(paints)?.into_iter().map(narrow).collect::<Checked<Vec<u16>>>()?.into();
    let bits = |number: i64| u32::try_from(number).map_err(|_| damaged("an edge is too large for its field"));
    let (mut widths, mut bottoms, mut heights) = (Varints::new(widths), Varints::new(bottoms), Varints::new(heights));
    let mut last = 0_i64;
    for left in sums(lefts)? {
        let bottom = last.wrapping_add(bottoms.signed()?);
        last = bottom.wrapping_add(heights.signed()?);
        made.x0.push(left as f32);
        made.x1.push(left.saturating_add(widths.next()?) as f32);
        made.y0.push(f32::from_bits(bits(bottom)?));
        made.y1.push(f32::from_bits(bits(last)?));
    }
    let is_full = [made.paint.len(), made.id.len()] == [made.len(); 2] && widths.is_empty();
    let is_real = made.y0.iter().chain(made.y1.iter()).all(|y| y.is_finite());
    if is_full && is_real { Ok(made) } else { Err(damaged("the columns of a picture don't fit together")) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use query::Paint;

    proptest! {
        #[test]
        fn rectangles_are_restored_bit_by_bit(
            rows in prop::collection::vec((0_u32..16_384, 0_u32..16_384, 0_u64..1 << 40, 0_u64..1 << 40, any::<u16>(), any::<u32>()), 0..60),
        ) {
            let mut quads = Quads::default();
            for &(left, width, bottom, height, paint, id) in &rows {
                let x = (left as f32, (left + width) as f32);
                quads.push(x, (bottom as f32, (bottom + height) as f32), Paint(paint), id);
            }
            let columns = of_quads(&quads);
            let columns = std::array::from_fn(|i| columns[i].as_slice());
            prop_assert_eq!(super::quads(columns).unwrap(), quads);
        }

        #[test]
        fn damaged_columns_are_errors(columns in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 6)) {
            let columns = std::array::from_fn(|i| columns[i].as_slice());
            if let Ok(quads) = quads(columns) {
                prop_assert_eq!([quads.x1.len(), quads.y0.len(), quads.y1.len()], [quads.len(); 3]);
                prop_assert_eq!([quads.paint.len(), quads.id.len()], [quads.len(); 2]);
            }
        }
    }
}
