//! The report of a file: one structure, printed as JSON for programs and as text for people.
#![forbid(unsafe_code)]

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Serialize, Serializer};

mod category;
mod diagnosis;
mod end;
mod file_diagnosis;
mod host_memory;
mod outside;
mod text;

pub use category::CategoryReport;
pub use diagnosis::{DiagnosisReport, FindingReport, InnerLinesReport};
pub use end::{EndReport, PoolReport};
pub use file_diagnosis::FileDiagnosis;
pub use host_memory::HostReport;
pub use outside::OutsideReport;

use analysis::actions;
use analysis::best_frames::BestFrames;
use analysis::fragmentation::Fragmentation;
use analysis::inner_lines::inner_lines;
use analysis::missing_stack::StackCoverage;
use analysis::peak::{Held, held_at};
use analysis::site::label;
use doctor::Case;
use format::import::{Compression, Encoding, Imported, Importer};
use query::diagnosis::{Diagnosis, Verdict};
use query::finding::Finding;
use query::own_rules::OwnRules;
use replay::Replayed;
use replay::index::Index;
use trace::frames::{FrameId, StackId, Symbols};
use trace::limits::ImportLimits;
use trace::{DeviceTrace, Snapshot};

/// Number of call sites that are listed; the rest is summed.
const LARGEST: usize = 20;

/// The report of a file.
#[derive(Clone, Debug, Serialize)]
pub struct FileReport {
    /// The path as given.
    pub path: String,
    /// `pickle` or `json`.
    pub format: &'static str,
    /// `gzip` or `zstd`, where the file is compressed.
    pub compression: Option<&'static str>,
    /// The pickle's protocol.
    pub protocol: Option<u8>,
    /// What is wrong with it, or worth knowing.
    pub findings: Vec<Finding>,
    /// Its devices, by number.
    pub devices: Vec<DeviceReport>,
    /// Pinned host memory, if the file has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_memory: Option<HostReport>,
}

/// The report of a device.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceReport {
    /// The device's number.
    pub device: i64,
    /// Events by action as written.
    #[serde(serialize_with = "as_map")]
    pub events: Vec<(String, u32)>,
    /// Distinct stacks of its events, segments and blocks, without the empty one.
    pub unique_stacks: u32,
    /// Distinct frames of these stacks.
    pub unique_frames: u32,
    /// The state at the end, from the segments alone.
    pub end: EndReport,
    /// The state at the start, as rebuilt.
    pub start: StartReport,
    /// The moment when most bytes were requested.
    pub peak: PeakReport,
    /// The largest call sites at the peak.
    pub peak_stacks: Vec<StackReport>,
    /// Bytes of all other call sites at the peak; together with the largest, exactly the peak.
    pub other_bytes: u64,
    /// What the memory was used for at the peak, the largest first. What no rule fits is `unknown`.
    pub peak_categories: Vec<CategoryReport>,
    /// The memory outside the allocator, if it was sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outside: Option<OutsideReport>,
    /// Why allocations at the peak have no stack, by bytes; empty if all have one.
    pub missing_stacks: Vec<MissingReport>,
    /// The diagnosis.
    pub diagnosis: DiagnosisReport,
    /// The fragmentation when the request failed that the verdict is about, or else at the end.
    pub fragmentation: Fragmentation,
    /// The verdict.
    #[serde(skip)]
    pub verdict: Verdict,
    /// What the line that held most of the peak called, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_inner_lines: Option<InnerLinesReport>,
    /// The lines at the peak, for people: stacks with the same line are merged.
    #[serde(skip)]
    pub peak_lines: Vec<LineReport>,
}

/// The state before a device's first event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StartReport {
    /// Bytes in allocated blocks.
    pub allocated_bytes: u64,
    /// Bytes in segments.
    pub reserved_bytes: u64,
}

/// The moment when active allocations requested most bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PeakReport {
    /// Requested bytes.
    pub requested_bytes: u64,
    /// The event after which the peak was first reached, from 1; `None` if it was at the start.
    pub event: Option<u32>,
    /// The event's time in microseconds since the epoch; `None` if the layout has no times.
    pub time_us: Option<i64>,
    /// The event's time in microseconds since the first event.
    #[serde(skip)]
    pub since_start_us: i64,
}

/// The memory of one call site at the peak.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StackReport {
    /// Requested bytes.
    pub bytes: u64,
    /// Number of allocations.
    pub count: u32,
    /// Its frames, innermost first: `file:line:function`.
    pub stack: Vec<String>,
}

/// The memory at the peak without a stack, for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissingReport {
    /// Requested bytes.
    pub bytes: u64,
    /// Number of allocations.
    pub count: u32,
    /// The reason, as sentences.
    pub reason: &'static str,
    /// How to get a stack next time, as sentences.
    pub remedy: &'static str,
}

/// The memory of one line at the peak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineReport {
    /// The line.
    pub label: String,
    /// Requested bytes.
    pub bytes: u64,
    /// Number of allocations.
    pub count: u32,
}

impl FileReport {
    /// Reports a file that was imported from `path`.
    pub fn new(path: String, imported: Imported) -> Self {
        Self::with(path, imported, OwnRules::default())
    }

    /// Reports a recording that a server sent, or a file that was read as a whole. The error is a sentence for people.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let mut importer = Importer::new(ImportLimits::default());
        importer.push(bytes).map_err(|error| error.to_string())?;
        Ok(Self::new(String::new(), importer.finish().map_err(|error| error.to_string())?))
    }

    /// Reports a file by the user's own rules.
    pub fn with(path: String, imported: Imported, rules: OwnRules) -> Self {
        let Imported { format, protocol, mut snapshot, findings: mut found, header } = imported;
        let mut devices = Vec::new();
        let mut best_frames = BestFrames::with(rules.folding);
        best_frames.extend(&snapshot.symbols);
        let torch = header.as_ref().map_or("", |header| header.torch.as_str());
        let host_memory = HostReport::new(&snapshot.host, &snapshot.symbols, &best_frames);
        file_diagnosis::examine(
            &mut snapshot,
            &best_frames,
            &rules.categories,
            header.as_ref(),
            &mut found,
            &mut |snapshot, case, mut diagnosis| {
                file_diagnosis::prove(case, (torch, &snapshot.marks), &mut diagnosis);
                devices.push(DeviceReport::new(snapshot, case, diagnosis));
            },
        );
        Self {
            path,
            format: match format.encoding {
                Encoding::Pickle => "pickle",
                Encoding::Json => "json",
                Encoding::Recording => "recording",
            },
            compression: format.compression.map(|compression| match compression {
                Compression::Gzip => "gzip",
                Compression::Zstd => "zstd",
            }),
            protocol,
            findings: found,
            devices,
            host_memory,
        }
    }
}

impl DeviceReport {
    fn new(snapshot: &Snapshot, case: &Case<'_>, diagnosis: Diagnosis) -> Self {
        let Case { trace, replay, usage, best_frames, .. } = *case;
        let start = replay.state_at(0).totals;
        let start = StartReport { allocated_bytes: start.allocated, reserved_bytes: start.reserved };
        let held = held_at(replay, usage.peak_position);
        let peak_stacks = largest(&snapshot.symbols, &held);
        let reported = peak_stacks.iter().fold(0u64, |sum, stack| sum.saturating_add(stack.bytes));
        let event = Some(usage.peak_position).filter(|position| *position > 0);
        let index = usage.peak_position.checked_sub(1);
        let time_us = index.and_then(|index| trace.events.time_us.get(index as usize)).filter(|time| *time != 0);
        let (unique_stacks, unique_frames) = unique(&snapshot.symbols, trace);
        let end = EndReport::of(trace);
        // Before torch 2.1, segments have no requested sizes, so their blocks count in full at the end. The excess over
        // what the events requested is held throughout, so that the sums lead from the start to that end.
        let unsaid = end.requested_bytes.saturating_sub(replay.state_at(u32::MAX).totals.requested);
        Self {
            device: trace.device,
            events: actions::count(trace, snapshot),
            unique_stacks,
            unique_frames,
            end,
            start,
            peak: PeakReport {
                requested_bytes: usage.peak_bytes.saturating_add(unsaid),
                event,
                time_us,
                since_start_us: replay.time_at(trace, usage.peak_position),
            },
            peak_stacks,
            other_bytes: usage.peak_bytes.saturating_add(unsaid).saturating_sub(reported),
            peak_categories: peak_categories(case),
            missing_stacks: missing_stacks(case, usage.peak_position),
            fragmentation: (&replay.space_at(diagnosis.verdict.position.unwrap_or(u32::MAX))).into(),
            diagnosis: DiagnosisReport::of(case, &diagnosis),
            verdict: diagnosis.verdict,
            outside: OutsideReport::of(trace),
            peak_inner_lines: inner_lines(&snapshot.symbols, best_frames, &held).as_ref().map(InnerLinesReport::from),
            peak_lines: by_line(&snapshot.symbols, best_frames, &held),
        }
    }
}

/// Returns a frame as PyTorch's tools write it, or the function alone if there is no file.
fn frame_text(symbols: &Symbols, id: FrameId) -> String {
    let frame = symbols.frame(id);
    let (name, filename) = (symbols.text(frame.name), symbols.text(frame.filename));
    match (&*filename, frame.line) {
        ("" | "??", _) => name.into_owned(),
        (file, 0) => format!("{file}:{name}"),
        (file, line) => format!("{file}:{line}:{name}"),
    }
}

/// Returns the largest call sites, sites of equal size by the text of their stacks. `held` is sorted by size.
pub(crate) fn largest(symbols: &Symbols, held: &[Held]) -> Vec<StackReport> {
    let least = held.get(LARGEST - 1).map_or(0, |held| held.bytes);
    let mut stacks: Vec<StackReport> = held
        .iter()
        .take_while(|held| held.bytes >= least)
        .map(|held| StackReport {
            bytes: held.bytes,
            count: held.count,
            stack: symbols.stack(held.stack).iter().map(|id| frame_text(symbols, *id)).collect(),
        })
        .collect();
    stacks.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.stack.cmp(&b.stack)));
    stacks.truncate(LARGEST);
    stacks
}

/// Sums up what is active at the peak by category.
fn peak_categories(case: &Case<'_>) -> Vec<CategoryReport> {
    let Case { trace, tags, replay, symbols, usage, roles, .. } = *case;
    let told = roles.categories(Replayed { trace, tags, replay }, symbols);
    let active = replay.active_at(usage.peak_position);
    told.held(replay, active.into_iter()).iter().map(CategoryReport::from).collect()
}

/// Sums up what is active at a position without a stack, by reason.
fn missing_stacks(case: &Case<'_>, position: u32) -> Vec<MissingReport> {
    let Case { trace, symbols, replay, integrity, .. } = *case;
    let mut coverage = StackCoverage::default();
    coverage.extend(trace, symbols, integrity);
    let sums = coverage.sums(symbols, replay, replay.active_at(position).into_iter()).into_iter();
    sums.map(|(why, bytes, count)| MissingReport { bytes, count, reason: why.reason(), remedy: why.remedy() }).collect()
}

/// Sums up what is held by line, largest first.
pub(crate) fn by_line(symbols: &Symbols, best_frames: &BestFrames, held: &[Held]) -> Vec<LineReport> {
    let mut lines: FxHashMap<String, (u64, u32)> = FxHashMap::default();
    for Held { stack, bytes, count } in held {
        let line = lines.entry(label(symbols, best_frames, *stack)).or_default();
        *line = (line.0.saturating_add(*bytes), line.1 + count);
    }
    let mut lines: Vec<LineReport> =
        lines.into_iter().map(|(label, (bytes, count))| LineReport { label, bytes, count }).collect();
    lines.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.label.cmp(&b.label)));
    lines
}

/// Returns the numbers of distinct stacks and frames of a device.
fn unique(symbols: &Symbols, trace: &DeviceTrace) -> (u32, u32) {
    let mut stacks: FxHashSet<u32> = trace.events.stack.iter().collect();
    for segment in &trace.segments {
        stacks.insert(segment.stack.0);
        stacks.extend(segment.blocks.iter().map(|block| block.stack.0));
    }
    stacks.remove(&0);
    let frames: FxHashSet<u32> =
        stacks.iter().flat_map(|&stack| symbols.stack(StackId(stack))).map(|frame| frame.0).collect();
    (stacks.len() as u32, frames.len() as u32)
}

fn as_map<S: Serializer>(pairs: &[(String, u32)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(name, count)| (name, count)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::missing_stack::MissingStack;
    use format::import::Format;

    fn report(lines: &str) -> FileReport {
        let imported = Imported {
            format: Format { encoding: Encoding::Pickle, compression: Some(Compression::Gzip) },
            protocol: Some(4),
            snapshot: trace::testing::snapshot(lines),
            findings: Vec::new(),
            header: None,
        };
        FileReport::new("a.pickle".to_owned(), imported)
    }

    const LINES: &str = "segment_alloc 0x1000000 20971520
                         alloc 0x1000000 1000 f@/home/me/m.py:7 main@/home/me/t.py:1
                         alloc 0x1100000 3000 g@??
                         free_requested 0x1000000
                         alloc 0x1200000 200
                         frobnicate 0x0";

    fn pool(values: [u64; 12]) -> serde_json::Value {
        let names = [
            "segments",
            "expandable_segments",
            "private_segments",
            "reserved_bytes",
            "allocated_blocks",
            "allocated_bytes",
            "pending_blocks",
            "pending_bytes",
            "cached_split_blocks",
            "cached_split_bytes",
            "cached_whole_segments",
            "cached_whole_bytes",
        ];
        names.into_iter().zip(values).map(|(name, value)| (name.to_owned(), serde_json::Value::from(value))).collect()
    }

    #[test]
    fn the_json_has_the_agreed_shape() {
        let got = serde_json::to_value(report(LINES)).expect("a report is JSON");
        let want = serde_json::json!({
            "path": "a.pickle",
            "format": "pickle",
            "compression": "gzip",
            "protocol": 4,
            "findings": [],
            "devices": [{
                "device": 0,
                "events": {"segment_alloc": 1, "alloc": 3, "free_requested": 1, "frobnicate": 1},
                "unique_stacks": 2,
                "unique_frames": 3,
                "end": {
                    "allocated_bytes": 3584,
                    "active_bytes": 4608,
                    "reserved_bytes": 20971520,
                    "requested_bytes": 4200,
                    "segments": 1,
                    "blocks": 6,
                    "small": pool([0; 12]),
                    "large": pool([1, 0, 0, 20971520, 2, 3584, 1, 1024, 3, 20966912, 0, 0]),
                },
                "start": {"allocated_bytes": 0, "reserved_bytes": 0},
                "peak": {"requested_bytes": 4200, "event": 5, "time_us": trace::testing::START_US + 40},
                "peak_stacks": [
                    {"bytes": 3000, "count": 1, "stack": ["g"]},
                    {"bytes": 1000, "count": 1, "stack": ["/home/me/m.py:7:f", "/home/me/t.py:1:main"]},
                    {"bytes": 200, "count": 1, "stack": []},
                ],
                "other_bytes": 0,
                "peak_categories": [
                    {"category": "unknown", "bytes": 4200, "count": 3},
                ],
                "missing_stacks": [{
                    "bytes": 200,
                    "count": 1,
                    "reason": MissingStack::Unknown.reason(),
                    "remedy": MissingStack::Unknown.remedy(),
                }],
                "diagnosis": {
                    "device": 0,
                    "verdict": {
                        "cause": "none",
                        "headline": "No request failed: 3.50 KiB allocated at the peak, 20.0 MiB reserved",
                        "sentence": "No request failed; at the peak, 3.50 KiB was allocated, 2.93 KiB of it by g, 20.0 \
                                     MiB was reserved, and 20.0 MiB was free in 3 gaps, the largest 18.0 MiB.",
                        "line": "g",
                        "event": null,
                        "remedies": [],
                    },
                    "failed": 0,
                    "ooms": [],
                    "findings": [],
                },
                "fragmentation": {
                    "cached_bytes": 20966912,
                    "whole_bytes": 0,
                    "split_bytes": 20966912,
                    "gaps": 3,
                    "largest_gap": 18873856,
                    "share": 1.0 - 18873856.0 / 20966912.0,
                },
            }],
        });
        assert_eq!(got, want);
    }

    #[test]
    fn sites_beyond_the_largest_are_summed_up() {
        let mut lines = vec!["segment_alloc 0x1000000 20971520".to_owned()];
        // Thirty sites of equal size: their text decides which are listed.
        lines.extend((0..30).map(|i| format!("alloc {} 100 f{i:02}@/m.py:1", 0x100_0000 + 512 * i)));
        let report = report(&lines.join("\n"));
        let device = &report.devices[0];
        let names: Vec<&str> = device.peak_stacks.iter().map(|s| s.stack[0].as_str()).collect();
        assert_eq!(names, (0..20).map(|i| format!("/m.py:1:f{i:02}")).collect::<Vec<_>>());
        assert_eq!((device.peak.requested_bytes, device.other_bytes), (3_000, 1_000));
        assert_eq!(device.peak_lines.len(), 30);
    }

    #[test]
    fn absurd_sizes_do_not_overflow() {
        let size = u64::MAX - 511;
        let lines = format!("alloc 0x1000 {size} f@/m.py:1\nalloc 0xffffffffffff0000 {size}\nfree 0x1000");
        let report = report(&lines);
        assert_eq!(report.devices[0].peak.requested_bytes, u64::MAX);
        assert!(report.to_string().contains("16.0 EiB requested"));
    }

    #[test]
    fn the_report_lists_the_lines_that_held_memory() {
        let want = "\
a.pickle: pickle (protocol 4), gzip

Device 0: 6 events, 2 distinct stacks
  peak   4.10 KiB requested, after event 5, 40 µs into the trace
  start  0 B allocated of 0 B reserved
  end    3.50 KiB allocated of 20.0 MiB reserved, in 1 segment with 6 blocks
    large  20.0 MiB in 1 segment; 3.50 KiB in 2 blocks live; 1.00 KiB in 1 block waiting for streams; 20.0 MiB in 3 \
blocks cached between them
  verdict  No request failed: 3.50 KiB allocated at the peak, 20.0 MiB reserved
  live at the peak, by line:
    2.93 KiB  71.4 %         1 ×  g
    0.98 KiB  23.8 %         1 ×  f  me/m.py:7
       200 B   4.8 %         1 ×  no stack recorded
  used for, at the peak (guessed): unknown 4.10 KiB (100.0 %)
  200 B without a stack: No stack was recorded, though others have Python and C++ frames. Either the unwinder failed, or \
the recorder had no time or no room for it. With vramscope.attach, raise stack_share. Otherwise the annotations around it \
are the best hint.
";
        assert_eq!(report(LINES).to_string(), want);
    }
}
