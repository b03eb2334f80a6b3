//! Traces of arbitrary events, which no allocator made.

use allocator::{AllocatorConfig, Profile};
use replay::Replay;
use trace::event::Action;
use trace::frames::{StackId, Symbols};
use trace::units::{Address, PoolId, Stream};
use trace::{DeviceTrace, Event, Settings, Tag, Tags};
use whatif::{Requests, Terms};

/// The bytes that each event is made of.
const EVENT: usize = 5;

/// Settings that bytes choose from.
const CONFS: [&str; 4] = ["", "expandable_segments:True", "max_split_size_mb:32", "roundup_power2_divisions:4"];

/// Reads a trace from bytes, repeats it under settings and on a device that the first bytes choose, and checks what holds
/// for any trace. Nothing panics, and whatever is asked comes to an end.
pub(crate) fn repeat(data: &[u8]) {
    let Some((&[release, conf, capacity, start], rest)) = data.split_first_chunk() else { return };
    let profile = Profile::ALL[usize::from(release) % Profile::ALL.len()];
    let conf = CONFS[usize::from(conf) % CONFS.len()];
    let (mut tags, mut trace) = (Tags::default(), DeviceTrace::default());
    for (time, bytes) in (0..).zip(rest.chunks_exact(EVENT)) {
        let &[action, address, size, unit, tag] = bytes else { continue };
        let pool = (tag & 4 != 0).then_some(PoolId(1, 0));
        let tag = tags.intern(Tag { stream: Stream((tag & 3).into()), pool, ..Tag::default() });
        trace.events.push(Event {
            action: Action::ALL[usize::from(action) % Action::ALL.len()],
            address: Address(u64::from(address) << 20),
            size: u64::from(size) << (unit % 64),
            time_us: time,
            tag,
            stack: StackId(0),
        });
    }
    let config = AllocatorConfig::from_conf(conf, profile).unwrap();
    let settings = Settings {
        conf: conf.to_owned(),
        expandable_segments: config.expandable_segments,
        max_split_size: (config.max_split_size != u64::MAX).then_some(config.max_split_size),
        garbage_collection_threshold: if start & 1 == 0 { 0.0 } else { 0.5 },
        ..Settings::default()
    };
    let replay = Replay::build(&trace, &mut tags, &settings);
    let requests = Requests::of(&trace, (&Symbols::default(), &tags), &replay, &settings);
    assert_eq!(Requests::from_bytes(&requests.to_bytes()).as_ref(), Some(&requests));
    let terms = Terms::ample(profile, config);
    if let Ok(check) = requests.check(&terms) {
        assert!(check.equal <= check.requests && check.requests == requests.len() as u64);
    }
    let small = terms.on(u64::from(capacity) << 21);
    if let Ok((outcome, course)) = requests.run_with_curve(&small) {
        assert_eq!(requests.run(&small).unwrap(), outcome);
        assert!(course.events.is_sorted() && course.events.len() == course.reserved.len());
    }
    if let Ok(bytes) = requests.smallest_capacity(&terms) {
        assert!(bytes >= requests.bounds().exact_fit.min(bytes));
    }
}
