//! Recordings in which a chunk of names is damaged: its names are missed, the events are there, and nothing is guessed.

use crate::common::import;
use analysis::category::Category;
use format::import::Imported;
use format::recording::Transcriber;
use format::redaction::Redaction;
use format::{ChunkReader, Device, End, EventColumns, Header, Kind, PRELUDE_BYTES, Writer};
use query::copy::Named;
use query::finding::FindingCode;
use query::{AllocationQuery, Answer, Query};
use report::FileReport;
use session::Session;
use trace::event::Action;
use trace::frames::{Frame, FrameId, StackId, StackRecord, Symbols};
use trace::limits::ImportLimits;
use trace::units::Address;
use trace::{Event, Tag, TagId, Tags};

const MIB: u64 = 1 << 20;

fn stack(symbols: &mut Symbols, frames: &[&str]) -> StackId {
    let ids: Vec<FrameId> = (frames.iter())
        .map(|text| {
            let (name, file) = text.split_once('@').unwrap();
            let (name, filename) = (symbols.intern(name.as_bytes()), symbols.intern(file.as_bytes()));
            symbols.intern_frame(Frame { name, filename, line: 7 })
        })
        .collect();
    symbols.intern_stack(&ids)
}

/// Writes a training job of six steps as a recorder does: new names come right before the events that have them.
struct Job {
    symbols: Symbols,
    tags: Tags,
    writer: Writer,
    columns: EventColumns,
    next: u64,
    out: Vec<u8>,
}

impl Job {
    fn event(&mut self, action: Action, address: u64, size: u64, frames: &[&str]) {
        let stack = stack(&mut self.symbols, frames);
        let time_us = 1_700_000_000_000_000 + self.next as i64;
        self.columns.push(Event { action, address: Address(address), size, time_us, tag: TagId(0), stack });
        self.writer.symbols(&self.symbols, &self.tags, &mut self.out);
        self.writer.events(0, self.next, &self.columns, &mut self.out);
        self.columns.clear();
        self.next += 1;
    }

    fn free(&mut self, address: u64, size: u64) {
        self.event(Action::FreeRequested, address, size, &[]);
        self.event(Action::FreeCompleted, address, size, &[]);
    }
}

const MAIN: &str = "main@train.py";
const MODULE: [&str; 2] = ["convert@/v/site-packages/torch/nn/modules/module.py", MAIN];
const FORWARD: [&str; 2] = ["forward@model.py", MAIN];
const BACKWARD: [&str; 2] = ["backward@/v/site-packages/torch/_tensor.py", MAIN];
const OPTIMIZER: [&str; 2] = ["step@/v/site-packages/torch/optim/adam.py", MAIN];

fn recording() -> Vec<u8> {
    let header = Header { devices: vec![Device::default()], torch: "2.11".to_owned(), ..Header::default() };
    let mut out = Vec::new();
    let mut tags = Tags::default();
    tags.intern(Tag::default());
    let writer = Writer::new(&header, &mut out);
    let mut job = Job { symbols: Symbols::default(), tags, writer, columns: EventColumns::default(), next: 0, out };
    let at = |place: u64| (1 << 40) + place * 16 * MIB;
    job.event(Action::SegmentAlloc, at(0), 256 * MIB, &MODULE);
    job.event(Action::Alloc, at(0), 4 * MIB, &MODULE);
    for step in 0..6 {
        job.event(Action::Alloc, at(1), MIB, &[MAIN]);
        job.event(Action::Alloc, at(2), 12 * MIB, &FORWARD);
        job.event(Action::Alloc, at(3), 2 * MIB, &BACKWARD);
        // A thread of the backward pass runs no Python.
        job.event(Action::Alloc, at(4), 4 * MIB, &[]);
        job.free(at(2), 12 * MIB);
        job.free(at(3), 2 * MIB);
        if step == 0 {
            job.event(Action::Alloc, at(5), 4 * MIB, &OPTIMIZER);
        }
        job.event(Action::Alloc, at(6), MIB, &OPTIMIZER);
        job.free(at(6), MIB);
        job.free(at(4), 4 * MIB);
        job.free(at(1), MIB);
    }
    let end = End { events: job.next, ..End::default() };
    job.writer.end(&end, &mut job.out);
    job.out
}

/// Returns the place of the last byte of each chunk of a kind.
fn chunks_of(wanted: Kind, bytes: &[u8]) -> Vec<usize> {
    let mut places = Vec::new();
    let mut reader = ChunkReader::at_chunk(&ImportLimits::default(), PRELUDE_BYTES as u64);
    let visit = &mut |chunk: format::Chunk<'_>| {
        if chunk.known_kind() == Some(wanted) {
            places.push(chunk.end() as usize - 1);
        }
    };
    reader.push(&bytes[PRELUDE_BYTES..], visit).unwrap();
    places
}

fn damaged(bytes: &[u8], place: usize) -> Imported {
    let mut damaged = bytes.to_vec();
    damaged[place] ^= 1;
    import(&damaged).unwrap()
}

/// The category of each allocation.
fn categories(imported: Imported) -> Vec<String> {
    let mut session = Session::build(imported, &mut |_| {});
    let of = |session: &mut Session, id| match session.answer(0, &Query::Allocation(AllocationQuery { id })) {
        Answer::Allocation(detail) => Some(detail.contexts[0].1.split(':').next().unwrap().to_owned()),
        _ => None,
    };
    (0..).map_while(|id| of(&mut session, id)).collect()
}

/// One flipped bit in a chunk of names made activations into gradients, counted 58.7 % of the peak as "no stack recorded",
/// and advised to record more stacks.
#[test]
fn a_damaged_chunk_of_names_costs_names_and_nothing_else() {
    let bytes = recording();
    let whole = categories(import(&bytes).unwrap());
    let name = |category: Category| category.name().to_owned();
    for category in [Category::Parameters, Category::Gradients, Category::Activations, Category::OptimizerState] {
        assert!(whole.contains(&name(category)), "{category:?} is not in {whole:?}");
    }
    let places = chunks_of(Kind::Symbols, &bytes);
    assert!(places.len() >= 5, "{places:?}");
    for place in places {
        let got = damaged(&bytes, place);
        let codes: Vec<FindingCode> = got.findings.iter().map(|finding| finding.code).collect();
        assert!(codes.contains(&FindingCode::NamesLost) && !codes.contains(&FindingCode::EventsLost), "{codes:?}");
        assert_eq!(got.snapshot.devices[0].events.len(), import(&bytes).unwrap().snapshot.devices[0].events.len());
        for (told, whole) in categories(damaged(&bytes, place)).iter().zip(&whole) {
            assert!(told == whole || *told == name(Category::Unknown), "{whole} became {told}");
        }
        let text = FileReport::new("a".to_owned(), got).to_string();
        assert!(!text.contains("stack_share") && !text.contains("stacks=\"all\""), "{text}");
    }
}

#[test]
fn what_was_lost_is_counted_and_named() {
    let bytes = recording();
    // The names of the forward pass come third, after those of the set-up and of the program itself.
    let got = damaged(&bytes, chunks_of(Kind::Symbols, &bytes)[2]);
    let text: Vec<&str> = got.findings.iter().map(|finding| finding.message.as_str()).collect();
    let want = "The names of 1 stack were in the damaged part, so where the memory of 6 events comes from, and what it is used \
                for, is unknown. If the file that it was copied from is whole, copy it again.";
    assert!(text.contains(&want), "{text:#?}");
    let symbols = &got.snapshot.symbols;
    let told: Vec<StackRecord> =
        got.snapshot.devices[0].events.stack.iter().map(|id| symbols.recorded(StackId(id))).collect();
    assert_eq!(told.iter().filter(|told| **told == StackRecord::Lost).count(), 6);
    let whole = import(&bytes).unwrap();
    let none = whole.snapshot.devices[0].events.stack.iter().filter(|id| *id == 0).count();
    assert_eq!(told.iter().filter(|told| **told == StackRecord::Nothing).count(), none);
    let report = FileReport::new("a".to_owned(), got);
    let device = &report.devices[0];
    assert!(
        device.diagnosis.verdict.sentence.contains("by stacks that were lost to damage"),
        "{:?}",
        device.diagnosis.verdict
    );
    assert_eq!((device.missing_stacks[0].bytes, device.missing_stacks[0].count), (12 * MIB, 1));
    assert!(device.missing_stacks[0].reason.contains("is damaged"), "{}", device.missing_stacks[0].reason);
}

#[test]
fn a_copy_still_tells_what_was_lost() {
    let bytes = recording();
    let mut session = Session::build(damaged(&bytes, chunks_of(Kind::Symbols, &bytes)[2]), &mut |_| {});
    let copy = session.copy("copy", &Redaction::default(), Named { device: 0, ..Named::default() });
    let (header, snapshot) = copy.parts();
    let written = format::write(header, snapshot);
    let again = import(&written).unwrap();
    let lost = |id: u32| again.snapshot.symbols.recorded(StackId(id)) == StackRecord::Lost;
    assert_eq!(again.snapshot.devices[0].events.stack.iter().filter(|id| lost(*id)).count(), 6);
    assert!(again.findings.iter().any(|finding| finding.code == FindingCode::NamesLost), "{:#?}", again.findings);
}

/// Writes a recording anew, as a server does with what it receives.
fn transcribed(bytes: &[u8]) -> Vec<u8> {
    let (mut transcriber, mut out) = (Transcriber::new(ImportLimits::default()), Vec::new());
    transcriber.push(bytes, &mut out).unwrap();
    transcriber.finish(&mut out).unwrap();
    out
}

#[test]
fn a_server_that_writes_a_copy_anew_keeps_what_was_lost() {
    let bytes = recording();
    for place in chunks_of(Kind::Symbols, &bytes) {
        let mut session = Session::build(damaged(&bytes, place), &mut |_| {});
        let copy = session.copy("copy", &Redaction::default(), Named::default());
        let written = transcribed(&format::write(copy.parts().0, copy.parts().1));
        assert!(written == transcribed(&written), "it has another form");
        let told = |bytes: &[u8]| import(bytes).unwrap().findings;
        assert!(told(&written).iter().any(|finding| finding.code == FindingCode::NamesLost), "{:#?}", told(&written));
    }
}

#[test]
fn a_missing_header_is_said() {
    let mut bytes = recording();
    bytes[PRELUDE_BYTES + 25] ^= 1;
    let got = import(&bytes).unwrap();
    assert!(got.header.is_none());
    let said = |text: &str| got.findings.iter().any(|finding| finding.message.contains(text));
    assert!(said("The header is missing") && said("assumes those of PyTorch"), "{:#?}", got.findings);
}

/// The verdict called such a recording a snapshot without a history, and its tab "no memory problem".
#[test]
fn a_recording_that_ends_before_its_first_event_is_no_healthy_run() {
    let bytes = recording();
    let first = chunks_of(Kind::Events, &bytes)[0];
    let got = import(&bytes[..first - 2]).unwrap();
    assert!(got.findings.iter().any(|finding| finding.code == FindingCode::Truncated));
    let text = FileReport::new("a".to_owned(), got).to_string();
    assert!(!text.contains("There is no history") && !text.contains("snapshot was taken"), "{text}");
}

/// "No event was lost with them", and "Recording began late", although three quarters of the events were gone.
#[test]
fn events_before_the_first_one_that_is_left_are_missed_and_the_damage_is_blamed() {
    let mut bytes = recording();
    let events = chunks_of(Kind::Events, &bytes);
    bytes[PRELUDE_BYTES..events[20]].fill(0);
    let got = import(&bytes).unwrap();
    let said: Vec<_> = got.findings.iter().map(|finding| (finding.code, finding.message.as_str())).collect();
    let want = "Device 0: the file is damaged, and the first event that was read is number 22 of the run. Those before it may be \
                lost.";
    assert!(said.contains(&(FindingCode::EventsLost, want)), "{said:#?}");
    let text = FileReport::new("a".to_owned(), got).to_string();
    assert!(!text.contains("ecording began late") && !text.contains("max_entries"), "{text}");
    assert!(text.contains("Damaged, a part is missing"), "{text}");
}
