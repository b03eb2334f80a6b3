//! The comparison as JSON. Bytes are whole numbers; fields are only ever added.

use compare::gate::Checked;
use query::run_comparison::{ChangedLine, ChangedPart, Comparability, ComparedRun, ConditionDifference, RunComparison};
use query::run_profile::ProfiledMemory;
use query::{function_of, location_of};
use serde::Serialize;
use trace::totals::difference;

use super::Found;

#[derive(Serialize)]
pub(super) struct Document<'a> {
    comparable: Comparable<'a>,
    sentence: &'a str,
    at: Pair<At<'a>>,
    peak: Change,
    reserved: Change,
    /// The most of the whole runs, whatever the moment.
    most: Most,
    /// The growth of each part. All but `outside` add up to that of `reserved`.
    accounting: Accounting,
    /// Their growths add up to that of `peak`.
    lines: Vec<Line<'a>>,
    /// Those that changed; what was there when recording began is `at_start`. Their growths add up to that of `peak`.
    categories: Vec<CategoryChange>,
    /// Each stream, if there are several. What is reserved for them adds up to `reserved`.
    streams: Vec<PartChange<'a>>,
    /// Each pool, likewise.
    pools: Vec<PartChange<'a>>,
    gate: Vec<Gate<'a>>,
}

#[derive(Serialize)]
struct Pair<T> {
    a: T,
    b: T,
}

#[derive(Serialize)]
struct Comparable<'a> {
    verdict: &'static str,
    /// Whether it was compared although it can't be.
    forced: bool,
    differences: Vec<Difference<'a>>,
}

#[derive(Serialize)]
struct Difference<'a> {
    what: &'a str,
    a: &'a str,
    b: &'a str,
    consequence: &'a str,
}

#[derive(Serialize)]
struct At<'a> {
    file: &'a str,
    device: i64,
    /// The number of events before the moment.
    event: u32,
    step: Option<u64>,
    moment: &'a str,
}

#[derive(Serialize)]
struct Change {
    a: u64,
    b: u64,
    delta: i64,
}

#[derive(Serialize)]
struct Most {
    allocated: Change,
    reserved: Change,
}

#[derive(Serialize)]
struct Accounting {
    allocated: i64,
    rounding: i64,
    waiting: i64,
    gaps: i64,
    /// `None` if it was not sampled in both.
    outside: Option<i64>,
}

#[derive(Serialize)]
struct Line<'a> {
    line: String,
    function: &'a str,
    a_line: Option<&'a str>,
    b_line: Option<&'a str>,
    #[serde(rename = "match")]
    found: &'static str,
    a_bytes: u64,
    b_bytes: u64,
    a_count: u32,
    b_count: u32,
    delta: i64,
    /// The part of `delta` that is due to the number of tensors.
    delta_by_count: i64,
    /// The part of `delta` that is due to their sizes.
    delta_by_size: i64,
    category: &'static str,
}

/// A stream or a pool.
#[derive(Serialize)]
struct PartChange<'a> {
    name: &'a str,
    #[serde(rename = "match")]
    found: &'static str,
    /// In tensors.
    a_bytes: u64,
    b_bytes: u64,
    a_reserved: u64,
    b_reserved: u64,
    /// Of what is reserved.
    delta: i64,
}

#[derive(Serialize)]
struct CategoryChange {
    category: &'static str,
    a_bytes: u64,
    b_bytes: u64,
    delta: i64,
}

#[derive(Serialize)]
struct Gate<'a> {
    rule: &'a str,
    tripped: bool,
    /// In bytes, or in the rule's percent or percentage points.
    value: f64,
    bytes: i64,
    line: Option<&'a str>,
}

/// Returns the document of a comparison.
pub(super) fn document(found: &Found) -> Document<'_> {
    let compared = &found.compared;
    let [a, b] = &compared.runs;
    let verdict = match compared.comparability {
        Comparability::Yes => "yes",
        Comparability::WithCare => "with_care",
        Comparability::No => "no",
    };
    Document {
        comparable: Comparable {
            verdict,
            forced: found.is_forced,
            differences: compared.differences.iter().map(condition).collect(),
        },
        sentence: &compared.sentence,
        at: Pair { a: at(a), b: at(b) },
        peak: change(a, b, |run| run.memory.allocated),
        reserved: change(a, b, |run| run.memory.reserved),
        most: Most {
            allocated: change(a, b, |run| run.most.allocated),
            reserved: change(a, b, |run| run.most.reserved),
        },
        accounting: Accounting {
            allocated: compared.growth(|memory| memory.allocated),
            rounding: compared.signed_growth(ProfiledMemory::rounding),
            waiting: compared.signed_growth(ProfiledMemory::waiting),
            gaps: compared.signed_growth(ProfiledMemory::gaps),
            outside: a.memory.outside.zip(b.memory.outside).map(|(a, b)| difference(b, a)),
        },
        lines: compared.lines.iter().map(line).collect(),
        categories: categories(compared),
        streams: compared.streams.iter().map(part).collect(),
        pools: compared.pools.iter().map(part).collect(),
        gate: found.gate.iter().map(gate).collect(),
    }
}

fn categories(compared: &RunComparison) -> Vec<CategoryChange> {
    let change =
        |category, [a, b]: [u64; 2]| CategoryChange { category, a_bytes: a, b_bytes: b, delta: difference(b, a) };
    let told = compared.categories.iter().map(|(category, held)| change(category.code(), held.map(|held| held.bytes)));
    let at_start = compared.at_start();
    told.chain((at_start[0] != at_start[1]).then(|| change("at_start", at_start))).collect()
}

fn part(part: &ChangedPart) -> PartChange<'_> {
    let ([a, b], [a_reserved, b_reserved]) = (part.held, part.reserved);
    PartChange {
        name: &part.name,
        found: part.found.name(),
        a_bytes: a.bytes,
        b_bytes: b.bytes,
        a_reserved,
        b_reserved,
        delta: part.growth(),
    }
}

fn condition(found: &ConditionDifference) -> Difference<'_> {
    let [a, b] = &found.values;
    Difference { what: &found.what, a, b, consequence: &found.consequence }
}

fn at(run: &ComparedRun) -> At<'_> {
    let moment = &run.moment;
    At { file: &run.name, device: run.device, event: moment.position, step: moment.step, moment: &moment.text }
}

fn change(a: &ComparedRun, b: &ComparedRun, of: impl Fn(&ComparedRun) -> u64) -> Change {
    let (a, b) = (of(a), of(b));
    Change { a, b, delta: difference(b, a) }
}

fn line(line: &ChangedLine) -> Line<'_> {
    let [a, b] = line.held;
    let (by_count, by_size) = line.by_count_and_size();
    let [a_line, b_line] = [0, 1].map(|run| {
        let place = line.places.get(run).filter(|place| !place.is_empty());
        place.or(line.labels.get(run)).map(String::as_str).filter(|text| !text.is_empty() && line.is_code())
    });
    let place = line.place();
    Line {
        line: if place.is_empty() { location_of(line.label()).to_owned() } else { place.to_owned() },
        function: function_of(line.label()),
        a_line,
        b_line,
        found: line.found.name(),
        a_bytes: a.bytes,
        b_bytes: b.bytes,
        a_count: a.count,
        b_count: b.count,
        delta: line.growth(),
        delta_by_count: by_count,
        delta_by_size: by_size,
        category: line.category.code(),
    }
}

fn gate(checked: &Checked) -> Gate<'_> {
    Gate {
        rule: &checked.rule.text,
        tripped: checked.is_tripped,
        // JSON has no infinity.
        value: if checked.value.is_finite() { checked.value } else { f64::MAX },
        bytes: checked.bytes,
        line: checked.line.as_deref(),
    }
}
