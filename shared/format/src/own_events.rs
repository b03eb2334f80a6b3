//! Events chunks that are in this program's own form: encoding what they say gives the same bytes.
//!
//! A server that writes what it receives anew keeps such a chunk as it came. All columns are read to tell; most of them
//! without decoding a number, which is an order of magnitude faster than encoding them again.

use super::events::Parts;
use super::index::Entry;
use super::varint::{Varints, unzigzag};
use trace::event::Action;

/// The longest number that is looked at, in bytes. Longer ones are left to the decoder: only they may overflow, and only
/// they may hold a difference of addresses that has a shorter form.
const NUMBER_BYTES: usize = 8;

/// What an events chunk in its own form holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnEvents {
    /// Its entry in an index, without its place.
    pub(crate) entry: Entry,
    /// All its tags have numbers below this one.
    pub(crate) tags: usize,
    /// All its stacks have numbers below this one.
    pub(crate) stacks: usize,
}

impl OwnEvents {
    /// Reads the payload of an events chunk. Returns `None` if encoding its events might give other bytes, or if there are
    /// none.
    pub(crate) fn read(payload: &[u8]) -> Option<Self> {
        let parts = Parts::decode(payload).ok()?;
        let Parts { device, first, start_us, columns: [action, address, size, time, tag, stack] } = parts;
        let count = action.len();
        let highest = action.iter().fold(0, |highest, &code| code.max(highest));
        if count == 0 || usize::from(highest) >= Action::ALL.len() || parts.encode() != payload {
            return None;
        }
        first.checked_add(count as u64)?;
        let is_plain = |column| shortest(column) == Some(count);
        if !is_plain(address) || !is_plain(size) || !is_plain(time) || counts_bytes(address) {
            return None;
        }
        let (from_us, to_us) = span(start_us, time)?;
        let (tags, stacks) = (numbers(tag, count)?, numbers(stack, count)?);
        let entry = Entry { device, first, count: count as u64, from_us, to_us, ..Entry::default() };
        Some(Self { entry, tags, stacks })
    }
}

/// Returns how many numbers a column holds; `None` if one of them has a shorter form, is longer than [`NUMBER_BYTES`], or is
/// cut off.
fn shortest(column: &[u8]) -> Option<usize> {
    let (&last, before) = column.split_last()?;
    let after = column.get(1..)?;
    // Loops without an exit: the compiler turns each into a few instructions for every 64 bytes.
    let ends = column.iter().filter(|byte| **byte < 0x80).count();
    let has_zero_end = before.iter().zip(after).fold(false, |found, (a, b)| found | ((*a >= 0x80) & (*b == 0)));
    (last < 0x80 && !has_zero_end && !has_long(column)).then_some(ends)
}

/// Whether a column has a number of more than [`NUMBER_BYTES`].
fn has_long(column: &[u8]) -> bool {
    let is_inner = |byte: &&u8| **byte >= 0x80;
    let run = |mut bytes: &mut dyn Iterator<Item = &u8>| (&mut bytes).take(NUMBER_BYTES).take_while(is_inner).count();
    // A run of eight bytes includes four at a multiple of four.
    column.as_chunks::<4>().0.iter().enumerate().any(|(place, word)| {
        u32::from_le_bytes(*word) & 0x8080_8080 == 0x8080_8080 && {
            let (before, after) = column.split_at(place * 4);
            run(&mut before.iter().rev()) + run(&mut after.iter()) >= NUMBER_BYTES
        }
    })
}

/// Whether a column of addresses has a difference in bytes, and not in units of 512 bytes.
fn counts_bytes(address: &[u8]) -> bool {
    let starts = std::iter::once(&0).chain(address);
    let found = starts.zip(address).fold(0, |found, (before, start)| found | (u8::from(*before < 0x80) & start));
    found & 1 == 1
}

/// Returns the earliest and the latest time; `None` if the first is not the chunk's start.
fn span(start_us: i64, time: &[u8]) -> Option<(i64, i64)> {
    if time.first() != Some(&0) {
        return None;
    }
    let (mut time, mut now, mut span) = (Varints::new(time), start_us, (start_us, start_us));
    while !time.is_empty() {
        now = now.wrapping_add(unzigzag(time.fast().ok()?));
        span = (span.0.min(now), span.1.max(now));
    }
    Some(span)
}

/// Returns a number above all of a column of tags or stacks; `None` if it has not `count` of them, or should be empty
/// because all are 0.
fn numbers(column: &[u8], count: usize) -> Option<usize> {
    if column.is_empty() {
        return Some(1);
    }
    if shortest(column) != Some(count) {
        return None;
    }
    let (mut column, mut highest) = (Varints::new(column), 0);
    while !column.is_empty() {
        highest = column.fast().ok()?.max(highest);
    }
    let highest = u32::try_from(highest).ok().filter(|highest| (1..u32::MAX).contains(highest))?;
    Some(highest as usize + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::columns::EventColumns;
    use super::super::events::{EventsChunk, encode_events};
    use super::*;
    use trace::frames::StackId;
    use trace::units::Address;
    use trace::{Event, TagId};

    /// Decodes and encodes a payload, as who does not know its form must.
    fn anew(payload: &[u8]) -> Option<(Vec<u8>, OwnEvents)> {
        let mut chunk = EventsChunk::decode(payload).ok()?;
        let (mut columns, mut tags, mut stacks) = (EventColumns::default(), 1, 1);
        while let Some(event) = chunk.events.next_event().ok()? {
            columns.push(event);
            (tags, stacks) = (tags.max(event.tag.0 as usize + 1), stacks.max(event.stack.0 as usize + 1));
        }
        let (from_us, to_us) = columns.span_us;
        let count = columns.len() as u64;
        let entry = Entry { device: chunk.device, first: chunk.first, count, from_us, to_us, ..Entry::default() };
        Some((encode_events(chunk.device, chunk.first, &columns), OwnEvents { entry, tags, stacks }))
    }

    /// Reads a payload, and checks the result against decoding and encoding all of its events.
    fn check(payload: &[u8]) -> Option<OwnEvents> {
        let own = OwnEvents::read(payload)?;
        assert_eq!(anew(payload), Some((payload.to_vec(), own)));
        Some(own)
    }

    fn event() -> impl Strategy<Value = Event> {
        let address = prop_oneof![(0..1_u64 << 46).prop_map(|n| n << 9), any::<u64>().prop_map(|n| n >> 20)];
        let small = prop_oneof![Just(0), 0..300_u32, any::<u32>()];
        (0..Action::ALL.len() as u8, address, 0..1_u64 << 50, 0..1_i64 << 50, small.clone(), small).prop_map(
            |(code, address, size, time_us, tag, stack)| Event {
                action: Action::from_code(code),
                address: Address(address),
                size,
                time_us,
                tag: TagId(tag),
                stack: StackId(stack),
            },
        )
    }

    fn payload(events: &[Event]) -> Vec<u8> {
        let mut columns = EventColumns::default();
        events.iter().for_each(|event| columns.push(*event));
        encode_events(3, 70, &columns)
    }

    #[test]
    fn what_a_job_writes_is_in_its_own_form() {
        let event = |n: u64| Event {
            action: if n.is_multiple_of(2) { Action::Alloc } else { Action::FreeCompleted },
            address: Address(0x7f00_0000_0000 + ((n * 7919 % 4096) << 9)),
            size: 512 << (n % 20),
            time_us: 1_800_000_000_000_000 + n as i64 * 3 - (n % 5) as i64,
            tag: TagId((n % 3) as u32),
            stack: StackId((n * 31 % 70_000) as u32),
        };
        for count in [1, 2, 500, 20_000] {
            let events: Vec<Event> = (0..count).map(event).collect();
            let own = check(&payload(&events)).unwrap();
            assert_eq!(
                (own.entry.count, own.tags),
                (count, events.iter().map(|e| e.tag.0 as usize + 1).max().unwrap())
            );
        }
    }

    #[test]
    fn other_forms_of_the_same_events_are_told_apart() {
        let encoded = |columns| Parts { device: 0, first: 0, start_us: 0, columns }.encode();
        let own: [&[u8]; 6] = [&[0, 1], &[4, 0], &[2, 0], &[0, 2], &[1, 0], &[0, 3]];
        assert!(check(&encoded(own)).is_some());
        let others: [(usize, &[u8]); 14] = [
            (0, &[0, 200]),
            (0, &[]),
            (1, &[4, 0x80, 0]),
            (1, &[4, 3]),
            (1, &[4]),
            (1, &[4, 0, 0]),
            (2, &[2, 0x80]),
            (2, &[2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
            (2, &[2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
            (3, &[2, 2]),
            (4, &[0, 0]),
            (4, &[1, 0x80, 0x80, 0]),
            (5, &[0, 0x80, 0x80, 0x80, 0x80, 0x10]),
            (5, &[0, 3, 0]),
        ];
        for (place, column) in others {
            let mut changed = own;
            changed[place] = column;
            let payload = encoded(changed);
            assert_eq!(OwnEvents::read(&payload), None, "{place} {column:?}");
        }
        // A key that nobody reads.
        let mut longer = encoded(own);
        longer[0] += 1;
        longer.extend(b"\xa8stranger\xc0");
        assert!(EventsChunk::decode(&longer).is_ok());
        assert_eq!(OwnEvents::read(&longer), None);
    }

    proptest! {
        #[test]
        fn it_agrees_with_encoding_again(
            events in prop::collection::vec(event(), 1..60),
            place in any::<prop::sample::Index>(),
            with in any::<u8>(),
        ) {
            let mut payload = payload(&events);
            check(&payload);
            let place = place.index(payload.len());
            payload[place] = with;
            check(&payload);
        }
    }
}
