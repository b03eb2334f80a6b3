//! Where one call ends and the next one of the same line begins.

use std::ops::Range;

/// Splits what a line called into single calls, by the stacks of their allocations: several layers that are called in a loop ask
/// with the same stacks again and again. If they don't, a call begins where the first stack comes again after others.
pub(crate) fn calls(stacks: &[u32]) -> Vec<Range<usize>> {
    let period = period(stacks);
    if period > 0 && period * 2 <= stacks.len() {
        let begins = (0..stacks.len()).step_by(period);
        return begins.map(|begin| begin..(begin + period).min(stacks.len())).collect();
    }
    let first = stacks.first();
    let is_begin = |pair: &[u32]| pair.first() != first && pair.last() == first;
    let mut begins: Vec<usize> = if stacks.is_empty() { Vec::new() } else { vec![0] };
    begins.extend(stacks.windows(2).zip(1..).filter(|(pair, _)| is_begin(pair)).map(|(_, place)| place));
    let ends = begins.iter().skip(1).copied().chain([stacks.len()]);
    begins.iter().copied().zip(ends).map(|(begin, end)| begin..end).collect()
}

/// Returns the least period of a list: the list is the beginning of its first items, repeated. 0 for an empty one.
fn period(list: &[u32]) -> usize {
    // By length of a part from the start: the longest shorter start that is also its end (Knuth, Morris and Pratt).
    let mut borders: Vec<usize> = vec![0; list.len()];
    let mut border = 0;
    for (place, item) in list.iter().enumerate().skip(1) {
        while border > 0 && list.get(border) != Some(item) {
            border = borders.get(border - 1).copied().unwrap_or_default();
        }
        border += usize::from(list.get(border) == Some(item));
        if let Some(known) = borders.get_mut(place) {
            *known = border;
        }
    }
    list.len() - borders.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_what_repeats() {
        let cases: [(&[u32], &[usize]); 8] = [
            (&[], &[]),
            (&[1], &[0]),
            (&[1, 2, 3], &[0]),
            (&[1, 1, 2, 1, 1, 2], &[0, 3]),
            // The last one was cut off.
            (&[1, 2, 3, 1, 2, 3, 1], &[0, 3, 6]),
            // The second has something of its own.
            (&[1, 2, 3, 1, 2, 9, 3, 1, 2, 3], &[0, 3, 7]),
            (&[1, 1, 2, 1, 1, 9], &[0, 3]),
            (&[5, 5, 5], &[0, 1, 2]),
        ];
        for (stacks, want) in cases {
            let begins: Vec<usize> = calls(stacks).iter().map(|call| call.start).collect();
            assert_eq!(begins, want, "{stacks:?}");
            let whole: usize = calls(stacks).iter().map(ExactSizeIterator::len).sum();
            assert_eq!(whole, stacks.len());
        }
    }
}
