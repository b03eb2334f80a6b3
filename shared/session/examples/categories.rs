//! Tells the categories at the peak of a snapshot, and compares them with the truth if it is given.
//!
//! ```text
//! categories SNAPSHOT [TRUTH]
//! ```
//! `tests/differential/categories.py` makes both. The truth is JSON: `records` has the roles of tensors (time in
//! microseconds, address, category), `phases` what the job did from a time on. Of what has no record, the phase decides.

use std::error::Error;

use analysis::category::{Categories, Category};
use analysis::stack_traits::StackTraits;
use analysis::steps::Steps;
use analysis::usage::Usage;
use format::import::Importer;
use query::own_rules::UserRules;
use replay::index::Index;
use replay::{Allocation, Replay, Replayed};
use serde_json::{Value, json};
use trace::DeviceTrace;
use trace::limits::ImportLimits;

/// How far the clock of the job may differ from that of the allocator, in microseconds.
const SLACK_US: i64 = 30;

fn main() -> Result<(), Box<dyn Error>> {
    let mut paths = std::env::args().skip(1);
    let path = paths.next().ok_or("usage: categories SNAPSHOT [TRUTH]")?;
    let mut importer = Importer::new(ImportLimits::default());
    importer.push(&std::fs::read(&path)?)?;
    let mut snapshot = importer.finish()?.snapshot;
    let truth = paths.next().map(std::fs::read).transpose()?;
    let truth: Option<Value> = truth.map(|bytes| serde_json::from_slice(&bytes)).transpose()?;
    let truth = truth.map(|value| Truth::read(&value));
    for trace in std::mem::take(&mut snapshot.devices) {
        let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
        let input = Replayed { trace: &trace, tags: &snapshot.tags, replay: &replay };
        let traits = StackTraits::build(&snapshot.symbols);
        let steps = Steps::of(input, &snapshot.symbols, &traits);
        let told = Categories::of(input, &snapshot.symbols, &traits, steps.as_ref(), &UserRules::default());
        let usage = Usage::build(input);
        let live = replay.active_at(usage.peak_position);
        let sums = told.sums(input, live.iter().copied());
        let share = |bytes: u64| bytes as f64 / usage.peak_bytes.max(1) as f64;
        let by_category: Vec<Value> = (Category::ALL.iter().zip(sums))
            .map(|(category, bytes)| json!({ "category": category.code(), "bytes": bytes }))
            .collect();
        let mut right = 0;
        let (mut wrong, mut roles): (Vec<(u64, String)>, Vec<Value>) = (Vec::new(), Vec::new());
        for (id, a) in live.iter().filter_map(|id| Some((*id, replay.allocations.get(*id)?))) {
            let Some(truth) = &truth else { break };
            let want = truth.role(&trace, &a);
            roles.push(json!([a.address.0, want]));
            if want == told.get(id).code() && want != Category::Unknown.code() {
                right += a.requested;
                continue;
            }
            let rule = told.rule(id).map_or("user", |rule| rule.name());
            let frame = snapshot.symbols.stack(a.stack).first().map(|frame| snapshot.symbols.frame(*frame));
            let line = frame.map(|f| format!("{}:{}", snapshot.symbols.text(f.filename), f.line)).unwrap_or_default();
            let text = format!(
                "{} is {want}, told {} ({rule}) {}-{} {line}",
                a.requested,
                told.get(id).code(),
                a.begin,
                a.end
            );
            wrong.push((a.requested, text));
        }
        wrong.sort_by(|a, b| b.cmp(a));
        let wrong: Vec<String> = wrong.into_iter().take(20).map(|(_, text)| text).collect();
        let unknown = sums.last().copied().unwrap_or(0);
        let steps = steps.map(|steps| (steps.source.to_string(), steps.steps.len()));
        println!(
            "{}",
            json!({
                "device": trace.device, "peak": usage.peak_bytes, "position": usage.peak_position, "right": share(right),
                "unknown": share(unknown), "steps": steps, "categories": by_category, "wrong": wrong, "roles": roles,
            })
        );
    }
    Ok(())
}

/// The roles of a job's tensors.
struct Truth {
    records: Vec<(i64, u64, String)>,
    phases: Vec<(i64, String)>,
}

impl Truth {
    fn read(value: &Value) -> Self {
        let list = |name: &str| value[name].as_array().cloned().unwrap_or_default();
        let time = |item: &Value| item[0].as_i64().unwrap_or(0);
        let text = |item: &Value| item.as_str().unwrap_or("").to_owned();
        let records = list("records").iter().map(|r| (time(r), r[1].as_u64().unwrap_or(0), text(&r[2]))).collect();
        Self { records, phases: list("phases").iter().map(|p| (time(p), text(&p[1]))).collect() }
    }

    /// Returns the role of an allocation: the first one that it was seen in, or else that of its phase.
    fn role(&self, trace: &DeviceTrace, a: &Allocation) -> &str {
        let time = |position: u32| trace.events.time_us.get(position as usize - 1).unwrap_or(i64::MAX - SLACK_US);
        let from = if a.begin == 0 { i64::MIN + SLACK_US } else { time(a.begin) };
        let to = if a.freed == Allocation::NEVER { i64::MAX - SLACK_US } else { time(a.freed) };
        let inside = self.records.iter().filter(|(at, address, _)| {
            (a.address.0..a.address.0 + a.size).contains(address)
                && *at >= from.saturating_sub(SLACK_US)
                && *at <= to + SLACK_US
        });
        // Of an older allocation, its latest role before the recording counts.
        if a.begin == 0 {
            let before = inside.filter(|(at, ..)| *at <= trace.start_us());
            return before.max_by_key(|(at, ..)| *at).map_or("unknown", |(.., role)| role);
        }
        // The clocks differ a little: a record well inside is better than one at an edge.
        let distance = |at: i64| from.saturating_sub(at).max(at - to).max(0);
        if let Some((.., role)) = inside.min_by_key(|(at, ..)| distance(*at)) {
            return role;
        }
        let phase = self.phases.iter().rev().find(|(at, _)| *at <= from).map_or("setup", |(_, phase)| phase);
        match phase {
            "setup" => "unknown",
            // Nothing in Python knows it, and it is never freed.
            _ if a.freed == Allocation::NEVER => "workspace",
            "inference" => "activations",
            _ => "temporary",
        }
    }
}
