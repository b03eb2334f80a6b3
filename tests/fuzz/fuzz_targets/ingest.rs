//! Bodies of a collector's requests: a conversation with a server, of any messages, whose batches hold any chunks. Then a
//! server that starts with what was stored.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use format::{Header, PRELUDE_BYTES, Writer, seal};
use trace::limits::ServerLimits;
use wire::{Batch, Goodbye, Hello, Message, PROTOCOL};
use tokio::runtime::{Builder, Runtime};
use vramscope::access::Caller;
use vramscope::bus::LocalBus;
use vramscope::ingest::{Conversation, Retention, Sessions};
use vramscope::store::SegmentStore;

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_all().build().expect("a runtime"));

/// Low limits, so that the fuzzer reaches each of them.
fn limits() -> ServerLimits {
    ServerLimits {
        devices: 8,
        segment_bytes: 1 << 12,
        symbols_bytes: 1 << 14,
        state_bytes: 1 << 19,
        batch_plain_bytes: 1 << 18,
        ..ServerLimits::default()
    }
}

/// Returns a server's sessions over a store.
fn open(store: &Arc<SegmentStore>) -> Arc<Sessions> {
    let bus = Arc::new(LocalBus::new(1 << 16));
    let sessions = Sessions::open(Arc::clone(store), bus, limits(), Retention::default(), Arc::default());
    Arc::new(sessions.expect("a store in memory"))
}

/// Returns the body of a request: a hello and a header, and then for each message its kind, a length, and so many bytes.
fn body(mut rest: &[u8]) -> Vec<u8> {
    let mut chunks = Vec::new();
    Writer::new(&Header::default(), &mut chunks);
    let hello = Hello { protocol: PROTOCOL, session: "s".repeat(26), key: "k".repeat(26), ..Hello::default() };
    let mut bytes = Message::Hello(hello).to_bytes();
    Message::Batch(Batch { seq: 1, sent_us: 0, chunks: &chunks[PRELUDE_BYTES..] }).encode(&mut bytes);
    let mut seq = 1;
    while let [kind, length, after @ ..] = rest {
        let (part, more) = after.split_at(usize::from(*length).min(after.len()));
        match kind % 8 {
            0 => bytes.extend(part),
            1 => Message::Goodbye(Goodbye { seq }).encode(&mut bytes),
            2 => {
                seq += 1;
                Message::Batch(Batch { seq, sent_us: 0, chunks: part }).encode(&mut bytes);
            }
            _ => {
                seq += 1;
                let chunks = seal(kind / 16, &part.repeat(1 << (kind / 2 % 8)));
                Message::Batch(Batch { seq, sent_us: 0, chunks: &chunks }).encode(&mut bytes);
            }
        }
        rest = more;
    }
    bytes
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, rest)) = data.split_first() else { return };
    let bytes = if choice % 8 == 0 { rest.to_vec() } else { body(rest) };
    let store: Arc<SegmentStore> = Arc::new(SegmentStore::in_memory(1 << 22));
    let first = open(&store);
    RUNTIME.block_on(async {
        let mut conversation = Conversation::new(Arc::clone(&first), Caller::default());
        for piece in bytes.chunks(1 + usize::from(choice) * 16) {
            if conversation.push(piece, &mut Vec::new()).await.is_err() {
                break;
            }
        }
        conversation.finish().await;
    });
    let again = open(&store);
    again.load().expect("a store in memory");
    assert!(again.all().len() <= first.all().len());
});
