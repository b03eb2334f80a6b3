//! A store whose files hold any bytes: a server starts with it, a collector goes on with its session, and whatever was there
//! before is still there, stored or set aside.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use format::{BatchEnd, Header, PRELUDE_BYTES, Writer, prelude};
use trace::limits::ServerLimits;
use wire::{Hello, Message, PROTOCOL};
use tokio::runtime::{Builder, Runtime};
use vramscope::access::{Access, Caller};
use vramscope::bus::LocalBus;
use vramscope::ingest::{Conversation, Retention, Sessions};
use vramscope::store::files::{Files, MemoryFiles};
use vramscope::store::{Hash, Label, Record, SegmentInfo, SegmentStore};

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_all().build().expect("a runtime"));

/// Returns the bytes of a whole segment of the session.
fn segment(id: &str, is_sealed: bool) -> Vec<u8> {
    let record = Record { id: id.to_owned(), key_hash: "0".repeat(64), ..Record::default() };
    let info = SegmentInfo { number: 1, first: 1, ..SegmentInfo::default() };
    let label = |is_last| Label { record: record.clone(), segment: info.clone(), is_last }.to_chunk();
    let mut header = Vec::new();
    Writer::new(&Header::default(), &mut header);
    let marks = [0, 1].map(|seq| BatchEnd { seq, sent_us: 0 }.to_chunk());
    let mut bytes = [&prelude()[..], &label(false), &marks[0], &header[PRELUDE_BYTES..], &marks[1]].concat();
    if is_sealed {
        bytes.extend(label(true));
    }
    bytes
}

fuzz_target!(|data: &[u8]| {
    let [choice, rest @ ..] = data else { return };
    let id = "s".repeat(26);
    let is_sealed = choice & 1 == 1;
    // The fuzzer's bytes alone, or a whole segment in which they change something.
    let bytes = if choice & 2 == 2 {
        rest.to_vec()
    } else {
        let mut bytes = segment(&id, is_sealed);
        for change in rest.chunks_exact(3) {
            let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len();
            bytes[at] ^= change[2];
        }
        bytes
    };
    let path = match (is_sealed, choice & 4 == 4) {
        (_, true) => "catalogue".to_owned(),
        (true, false) => format!("segments/{id}/00000001.{}.vramscope", Hash::of(&bytes)),
        (false, false) => format!("wal/{id}.00000001.vramscope"),
    };
    let files = MemoryFiles::default();
    files.create(&path).and_then(|mut file| file.append(&bytes)).expect("files in memory");
    let store: Arc<SegmentStore> = Arc::new(SegmentStore::in_folder(Arc::new(files.clone()), 1 << 22));
    let bus = Arc::new(LocalBus::new(1 << 16));
    let access = Arc::<Access>::default();
    let limits = ServerLimits { state_bytes: 1 << 20, ..ServerLimits::default() };
    let sessions = Sessions::open(Arc::clone(&store), bus, limits, Retention::default(), access);
    let sessions = Arc::new(sessions.expect("a store in memory"));
    sessions.load().expect("a store in memory");
    sessions.sweep();
    let hello = Hello { protocol: PROTOCOL, session: id.clone(), key: "k".repeat(26), ..Hello::default() };
    RUNTIME.block_on(async {
        let mut conversation = Conversation::new(Arc::clone(&sessions), Caller::default());
        // A session whose label can be read belongs to another key.
        let _ = conversation.push(&Message::Hello(hello).to_bytes(), &mut Vec::new()).await;
        conversation.finish().await;
    });
    sessions.close_all();
    if !path.starts_with("catalogue") {
        let kept = files.paths().iter().any(|path| path.starts_with("segments/") || path.starts_with("quarantine/"));
        assert!(kept, "the only file of the session is gone");
    }
});
