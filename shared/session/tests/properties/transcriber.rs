//! A recording that was written anew says the same, and nothing else.

use crate::common::{Fixture, describe, fixtures};
use format::import::Imported;
use format::recording::{Transcribed, Transcriber};
use format::{
    self, Chunk, ChunkReader, ENVELOPE_BYTES, End, EventColumns, Header, Kind, LostEvents, PRELUDE_BYTES, Writer, seal,
};
use proptest::prelude::*;
use session::preview;
use trace::event::Action;
use trace::frames::StackId;
use trace::limits::ImportLimits;
use trace::units::Address;
use trace::{Event, Loss, TagId};

/// Writes a recording anew, pushed in pieces of a length. The error is its text.
fn transcribe(recording: &[u8], piece: usize) -> Result<(Vec<u8>, Transcribed), String> {
    let (mut transcriber, mut out) = (Transcriber::new(ImportLimits::default()), Vec::new());
    for bytes in recording.chunks(piece) {
        transcriber.push(bytes, &mut out).map_err(|error| error.to_string())?;
    }
    let said = transcriber.finish(&mut out).map_err(|error| error.to_string())?;
    Ok((out, said))
}

fn import(bytes: &[u8]) -> Imported {
    crate::common::import(bytes).unwrap()
}

fn recording_of(imported: &Imported) -> Vec<u8> {
    let header = imported.header.clone().unwrap_or_default();
    format::write(&header, &imported.snapshot)
}

#[test]
fn every_fixture_says_the_same_afterwards() {
    for Fixture { name, bytes } in fixtures() {
        // Some fixtures are cut off on purpose.
        let Ok(imported) = crate::common::import(&bytes) else { continue };
        let recording = recording_of(&imported);
        for piece in [recording.len().max(1), 777] {
            let (new, said) = transcribe(&recording, piece).unwrap();
            let (before, after) = (import(&recording), import(&new));
            assert_eq!(describe(&before), describe(&after), "{name}");
            let events: usize = before.snapshot.devices.iter().map(|trace| trace.events.len()).sum();
            assert_eq!(said.events, events as u64, "{name}");
            // Once more changes nothing: it is its own form.
            assert_eq!(transcribe(&new, new.len()).unwrap().0, new, "{name}");
        }
    }
}

#[test]
fn previews_are_kept_where_they_can_be_read() {
    let imported = import(&std::fs::read("../../tests/fixtures/ring.pickle").unwrap());
    let recording = preview::write(&Header { name: "run".to_owned(), ..Header::default() }, &imported.snapshot);
    let range = format::preview_range(&recording).expect("it has a preview");
    // The places in the first preview stay right, since the same bytes are written.
    assert!(transcribe(&recording, 999).unwrap().0 == recording);
    // One that can't be read is left out.
    let other = [&recording[..range.start], &seal(14, b"stranger"), &recording[range.end..]].concat();
    let new = transcribe(&other, 999).unwrap().0;
    assert!(new.len() < recording.len() && format::preview_range(&new) != Some(range));
    assert_eq!(describe(&import(&new)), describe(&import(&recording)));
}

/// A recording with a loss at the start, one in the middle and one at the end.
fn with_losses() -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&Header { name: "run".to_owned(), ..Header::default() }, &mut out);
    let lose = |from, to| LostEvents { device: 3, from, to, by_action: [2; Action::ALL.len()] };
    let mut columns = EventColumns::default();
    let event = |time_us| Event {
        action: Action::SegmentAlloc,
        address: Address(time_us as u64 * (2 << 20)),
        size: 2 << 20,
        time_us,
        tag: TagId(0),
        stack: StackId(0),
    };
    writer.lost_events(&lose(0, 7), &mut out);
    (1..4).for_each(|time| columns.push(event(time)));
    writer.events(3, 7, &columns, &mut out);
    // One that no chunk tells of.
    columns.clear();
    columns.push(event(5));
    writer.events(3, 15, &columns, &mut out);
    writer.lost_events(&lose(16, 20), &mut out);
    writer.segments(3, 20, &[], &mut out);
    writer.end(&End { lost: 16, ..Default::default() }, &mut out);
    out
}

#[test]
fn missing_events_stay_missing() {
    let recording = with_losses();
    let losses = |bytes: &[u8]| -> Vec<Loss> { import(bytes).snapshot.devices[0].losses.clone() };
    let want = losses(&recording);
    assert_eq!(want.iter().map(|loss| (loss.position, loss.events)).collect::<Vec<_>>(), [(0, 7), (3, 5), (4, 4)]);
    let (new, said) = transcribe(&recording, 50).unwrap();
    assert_eq!((losses(&new), said.devices, said.name), (want.clone(), vec![3], "run".to_owned()));
    // Writing a snapshot as a whole keeps them, too.
    assert_eq!(losses(&recording_of(&import(&recording))), want);
}

#[test]
fn events_in_their_own_form_stay_as_they_were_packed() {
    let imported = import(&std::fs::read("../../tests/fixtures/ring.pickle").unwrap());
    let recording = recording_of(&imported);
    // Every chunk of events, stored without packing it.
    let (mut unpacked, mut kept) = (recording[..PRELUDE_BYTES].to_vec(), 0);
    let mut reader = ChunkReader::at_start(&ImportLimits::default());
    let visit = &mut |chunk: Chunk<'_>| {
        let packed = seal(chunk.kind, chunk.payload);
        assert!(packed == chunk.packed);
        if chunk.known_kind() != Some(Kind::Events) {
            return unpacked.extend(packed);
        }
        let from = unpacked.len();
        unpacked.extend([&chunk.packed[..ENVELOPE_BYTES], chunk.payload].concat());
        set_stored(&mut unpacked[from..]);
        kept += 1;
    };
    reader.push(&recording, visit).unwrap();
    assert!(kept > 0 && unpacked.len() > recording.len());
    // All but the offsets in the index is the same.
    let new = transcribe(&unpacked, 100).unwrap().0;
    assert_eq!(new.len(), unpacked.len());
    assert_eq!(describe(&import(&new)), describe(&imported));
    assert!(transcribe(&new, new.len()).unwrap().0 == new);
}

/// Marks a chunk as not packed.
fn set_stored(chunk: &mut [u8]) {
    let plain = chunk.len() as u32 - ENVELOPE_BYTES as u32;
    let sum = crc32fast::hash(&chunk[ENVELOPE_BYTES..]);
    chunk[5] = 0;
    for (at, field) in [(8, plain), (12, plain), (16, sum)] {
        chunk[at..at + 4].copy_from_slice(&field.to_le_bytes());
    }
    let check = crc32fast::hash(&[&chunk[..6], &chunk[8..ENVELOPE_BYTES]].concat()) as u16;
    chunk[6..8].copy_from_slice(&check.to_le_bytes());
}

#[test]
fn nothing_of_a_stranger_passes_unread() {
    let recording = with_losses();
    let clean = transcribe(&recording, recording.len()).unwrap().0;
    // The chunk after the header begins where an empty recording has its first one.
    let mut header = Vec::new();
    let _ = Writer::new(&Header { name: "run".to_owned(), ..Header::default() }, &mut header);
    let at = header.len();
    let with = |bytes: &[u8]| [&recording[..at], bytes, &recording[at..]].concat();
    // A kind of a later version, and a known one with a key that nobody reads.
    for chunk in [seal(200, b"<script>stranger</script>"), seal(13, b"\x81\xa8stranger\xa8stranger")] {
        let new = transcribe(&with(&chunk), 1000).unwrap().0;
        assert_eq!(new, clean);
    }
    for (bytes, word) in [
        (with(b"stranger between the chunks"), "changed on the way"),
        (with(&seal(3, b"stranger")), "contents of a chunk"),
        (with(&header[PRELUDE_BYTES..]), "second header"),
        (recording[..recording.len() - 1].to_vec(), "cut off"),
        (recording[..PRELUDE_BYTES].to_vec(), "no header"),
        (b"not a recording at all".to_vec(), "recording"),
        ([&recording[..PRELUDE_BYTES], &recording[at..]].concat(), "does not begin with a header"),
        (Vec::new(), "no header"),
    ] {
        let error = transcribe(&bytes, 1000).map(|(_, said)| said).unwrap_err();
        assert!(error.contains(word), "{word}: {error}");
    }
}

proptest! {
    #[test]
    fn a_changed_byte_is_refused_or_harmless(place in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let mut recording = with_losses();
        let place = place.index(recording.len());
        recording[place] ^= 1 << bit;
        if let Ok((new, _)) = transcribe(&recording, 64) {
            prop_assert!(crate::common::import(&new).is_ok());
        }
    }
}
