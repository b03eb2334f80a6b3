//! What changed, in one sentence.

use query::run_comparison::{ChangedLine, LineMatch, RunComparison};
use query::run_profile::ProfiledMemory;
use query::{Category, FROM_BEFORE, NO_STACK, line_in_sentence};
use trace::totals::{Amount, difference};
use trace::units::{Bytes, Count, counted, distinguished};

/// The share of the larger amount, in thousandths, up to which a difference counts as noise if nothing tells how much it varies.
const NOISE_THOUSANDTHS: u64 = 1;
/// The share of a difference, in percent, from which a line stands for it.
const LINE_PERCENT: u64 = 40;
/// The share of a difference, in percent, above which a part is more than all of it.
const ABOVE_ALL_PERCENT: u64 = 105;
/// The share of a difference, in percent, from which a line is named beside what has none.
const BESIDE_PERCENT: u64 = 10;
/// The share of a difference, or of memory without a stack, in percent, from which a category stands for it.
const MOSTLY_PERCENT: u64 = 70;
/// The share of a difference, in percent, from which another category is named beside the one that stands for it.
const ALSO_PERCENT: u64 = 20;
/// What each step of a training makes anew or changes: its category follows from the step. What is only kept may be told wrongly.
const OF_STEPS: [Category; 3] = [Category::Activations, Category::Gradients, Category::OptimizerState];
/// The share of a difference, in percent, below which a line may be one of several with the same cause.
const SEVERAL_PERCENT: u64 = 60;
/// The share of a difference, in percent, from which a part is nearly all of it.
const NEARLY_ALL_PERCENT: u64 = 95;

/// Returns the sentence for a comparison, with what has to be known beside it.
pub(super) fn sentence(compared: &RunComparison) -> String {
    let [a, b] = compared.runs.each_ref().map(|run| run.conditions.failed > 0);
    let failed = match (a, b) {
        (false, true) => "B ran out of memory, and A did not. ",
        (true, false) => "A ran out of memory, and B did not. ",
        _ => "",
    };
    let outside = outside_steps(compared);
    format!("{failed}{}{outside}", of_moment(compared, !outside.is_empty()))
}

/// Returns how the peaks of the whole runs differ, if that is another difference.
fn outside_steps(compared: &RunComparison) -> String {
    let Some(most @ [before, after]) = compared.outside_steps() else { return String::new() };
    let (of_runs, of_steps) = (difference(after, before), compared.growth(|memory| memory.allocated));
    let apart = of_runs.abs_diff(of_steps);
    let larger = of_runs.unsigned_abs().max(of_steps.unsigned_abs());
    let is_other = u128::from(apart) * 100 > u128::from(larger) * u128::from(BESIDE_PERCENT);
    let is_noise = compared.is_noise(|band| band.most_allocated, |run| run.most.allocated);
    if !is_other || is_noise || !is_above_noise(i64::try_from(apart).unwrap_or(i64::MAX), most) {
        return String::new();
    }
    match is_above_noise(of_runs, most) {
        false => format!(" Over the whole runs, both peak at {}.", Bytes(after)),
        true => {
            let way = if of_runs < 0 { "lower" } else { "higher" };
            let by = Bytes(of_runs.unsigned_abs());
            format!(" Over the whole runs, B's peak is {by} {way} {}.", from_to(before, after))
        }
    }
}

/// Returns what differs at the compared moments; with `has_more`, a sentence about the whole runs follows.
fn of_moment(compared: &RunComparison, has_more: bool) -> String {
    let grown = compared.growth(|memory| memory.allocated);
    let reserved = compared.growth(|memory| memory.reserved);
    let gaps = compared.signed_growth(ProfiledMemory::gaps);
    let [a, b] = &compared.runs;
    let is_peak = a.moment.is_peak && b.moment.is_peak;
    let (allocated, of_reserved) = ([a.memory.allocated, b.memory.allocated], [a.memory.reserved, b.memory.reserved]);
    let is_within = (
        compared.is_noise(|band| band.allocated, |run| run.memory.allocated),
        compared.is_noise(|band| band.reserved, |run| run.memory.reserved),
    );
    let has_grown = !is_within.0 && is_above_noise(grown, allocated);
    let has_reserved = !is_within.1 && is_above_noise(reserved, of_reserved);
    if !has_grown && !has_reserved {
        let held = Bytes(b.memory.allocated);
        let verb = if is_peak { "peak" } else { "hold" };
        if let Some(band) = compared.band.filter(|_| is_within.0 && grown != 0) {
            let [least, most] = band.allocated.map(Bytes);
            let at = if is_peak { " at" } else { "" };
            return format!(
                "No difference above the noise: B {verb}s{at} {held}, {} runs of A {least} to {most}.",
                band.runs
            );
        }
        let above = if grown == 0 && reserved == 0 { "" } else { " above 0.1 %" };
        let at = if is_peak { " at" } else { "" };
        let step = match [a.moment.step, b.moment.step] {
            [Some(of_a), Some(of_b)] if of_a == of_b => format!(" in step {of_a}"),
            _ => String::new(),
        };
        return format!("No difference{above}: both {verb}{at} {held}{step}.");
    }
    // Memory that no tensor has leads if it explains far more than tensors do. Some of it always comes with them, since segments
    // are taken whole.
    if has_reserved && gaps.unsigned_abs() / 2 > grown.unsigned_abs() && (gaps < 0) == (reserved < 0) {
        let amounts = from_to(a.memory.reserved, b.memory.reserved);
        let gaps_amounts = from_to(unsigned(a.memory.gaps()), unsigned(b.memory.gaps()));
        let why = || cause(compared, grown).map_or_else(String::new, |cause| format!(": {cause}"));
        let tensors = match has_grown {
            false => "live tensors hold the same".to_owned(),
            true => format!("live tensors hold {}{}", more_or_less(grown), why()),
        };
        return format!(
            "B reserves {} {amounts}: it has {} in free gaps {gaps_amounts}, while {tensors}.",
            more_or_less(reserved),
            more_or_less(gaps),
        );
    }
    let amounts = from_to(a.memory.allocated, b.memory.allocated);
    let step = match [a.moment.step, b.moment.step] {
        // The peaks of the whole runs follow.
        [Some(of_a), Some(of_b)] if of_a == of_b && has_more => format!("In step {of_a}, "),
        _ => String::new(),
    };
    let head = match (is_peak, grown < 0) {
        (true, false) => format!("{step}B's peak is {} higher {amounts}", Bytes(grown.unsigned_abs())),
        (true, true) => format!("{step}B's peak is {} lower {amounts}", Bytes(grown.unsigned_abs())),
        (false, _) => format!("B holds {} {amounts}", more_or_less(grown)),
    };
    match cause(compared, grown) {
        Some(cause) => format!("{head}; {cause}."),
        None => format!("{head}."),
    }
}

fn is_above_noise(grown: i64, [before, after]: [u64; 2]) -> bool {
    u128::from(grown.unsigned_abs()) * 1_000 > u128::from(before.max(after)) * u128::from(NOISE_THOUSANDTHS)
}

const fn unsigned(bytes: i64) -> u64 {
    if bytes < 0 { 0 } else { bytes.unsigned_abs() }
}

fn more_or_less(grown: i64) -> String {
    format!("{} {}", Bytes(grown.unsigned_abs()), if grown < 0 { "less" } else { "more" })
}

fn from_to(before: u64, after: u64) -> String {
    let (before, after) = distinguished(Bytes(before), Bytes(after));
    format!("({before} → {after})")
}

/// Returns what most of a growth is, as the second half of a sentence.
fn cause(compared: &RunComparison, grown: i64) -> Option<String> {
    let is_along = |change: i64| change != 0 && (change < 0) == (grown < 0);
    let share = |change: i64| u128::from(change.unsigned_abs()) * 100 / u128::from(grown.unsigned_abs().max(1));
    let part = |change: i64| {
        let is_all = share(change) >= u128::from(NEARLY_ALL_PERCENT);
        if is_all { "nearly all of it".to_owned() } else { format!("{} of it", Bytes(change.unsigned_abs())) }
    };
    let of = |[before, after]: [Amount; 2]| difference(after.bytes, before.bytes);
    let line = compared.lines.iter().find(|line| is_along(line.growth()));
    let line = line.filter(|line| share(line.growth()) >= u128::from(LINE_PERCENT));
    let category = compared.categories.iter().find(|(category, amounts)| {
        *category != Category::Unknown && is_along(of(*amounts)) && share(of(*amounts)) >= u128::from(LINE_PERCENT)
    });
    // Of several lines with one cause, the largest says less than what they are for.
    let is_one_of_many = |line: &&ChangedLine| {
        let is_most = |(_, amounts): &(Category, [Amount; 2])| share(of(*amounts)) >= u128::from(MOSTLY_PERCENT);
        share(line.growth()) < u128::from(SEVERAL_PERCENT)
            && category.is_some_and(|found| found.0 == line.category && OF_STEPS.contains(&found.0) && is_most(found))
    };
    let line = line.filter(|line| !is_one_of_many(line));
    if let Some(line) = line.filter(|line| share(line.growth()) > u128::from(ABOVE_ALL_PERCENT)) {
        let (of_line, rest) = (more_or_less(line.growth()), more_or_less(grown.saturating_sub(line.growth())));
        return Some(format!("{of_line} is {}, and {rest} elsewhere", changed(compared, line)));
    }
    if let Some(line) = line {
        let found = format!("{} is {}", part(line.growth()), changed(compared, line));
        // Memory of the backward pass has no stack: the largest line beside it says more.
        let code = compared.lines.iter().find(|line| line.is_code() && is_along(line.growth()));
        let code = code.filter(|code| !line.is_code() && share(code.growth()) >= u128::from(BESIDE_PERCENT));
        let beside = |code: &ChangedLine| {
            format!("{found}, and {} is {}", Bytes(code.growth().unsigned_abs()), changed(compared, code))
        };
        return Some(code.map_or_else(|| found.clone(), beside));
    }
    if let Some((category, amounts)) = category {
        let lines = || compared.lines.iter().filter(|line| line.category == *category && is_along(line.growth()));
        let most =
            lines().next().map_or_else(String::new, |line| format!(", most at {}", line_in_sentence(line.label())));
        let count = counted(lines().count() as u64, "line");
        let others = compared.categories.iter().filter(|(other, amounts)| {
            ![*category, Category::Unknown].contains(other) && share(of(*amounts)) >= u128::from(ALSO_PERCENT)
        });
        let others: Vec<String> = others
            .take(2)
            .map(|(other, amounts)| format!("{} of {}", more_or_less(of(*amounts)), noun(*other)))
            .collect();
        let beside = if others.is_empty() { String::new() } else { format!("; also {}", others.join(" and ")) };
        return Some(format!("{} is {} of {count}{most}{beside}", part(of(*amounts)), noun(*category)));
    }
    let line = compared.lines.iter().find(|line| is_along(line.growth()))?;
    Some(format!("the largest part, {}, is {}", Bytes(line.growth().unsigned_abs()), changed(compared, line)))
}

/// Returns the name of a category as a sentence has it.
const fn noun(category: Category) -> &'static str {
    match category {
        Category::Temporary => "temporary memory",
        other => other.name(),
    }
}

/// Returns what most of the growth of memory without a stack is for, by what categories grew and their lines did not.
fn without_stack(compared: &RunComparison, line: &ChangedLine) -> &'static str {
    let rest = |(category, [before, after]): &(Category, [Amount; 2])| {
        let of_code = compared.lines.iter().filter(|line| line.is_code() && line.category == *category);
        let of_code: i128 = of_code.map(|line| i128::from(line.growth())).sum();
        (*category, i128::from(difference(after.bytes, before.bytes)) - of_code)
    };
    // What the others hold without a stack is theirs by exclusion, and says no more.
    let kept = [Category::Gradients, Category::Activations, Category::Parameters, Category::OptimizerState];
    let known = compared.categories.iter().filter(|(category, _)| kept.contains(category)).map(rest);
    let growth = i128::from(line.growth());
    let most = known.filter(|(_, rest)| (*rest < 0) == (growth < 0)).max_by_key(|(_, rest)| rest.unsigned_abs());
    let is_most = |rest: i128| rest.unsigned_abs() * 100 >= growth.unsigned_abs() * u128::from(MOSTLY_PERCENT);
    most.filter(|(_, rest)| is_most(*rest)).map_or("memory", |(category, _)| category.name())
}

/// Returns a line with how it changed.
fn changed(compared: &RunComparison, line: &ChangedLine) -> String {
    let name = match line.label() {
        NO_STACK => format!("{} without a stack", without_stack(compared, line)).into(),
        FROM_BEFORE => "memory that was there when recording began".into(),
        label => line_in_sentence(label),
    };
    if !line.is_code() {
        return name.into_owned();
    }
    let [before, after] = line.held;
    let how = match line.found {
        LineMatch::New | LineMatch::Gone if !compared.knows_lines() => String::new(),
        LineMatch::New => ", which allocates nothing in A".to_owned(),
        LineMatch::Gone => ", which allocates nothing in B".to_owned(),
        _ if before.count == 0 => ", which holds nothing in A".to_owned(),
        _ if after.count == 0 => ", which holds nothing in B".to_owned(),
        _ if line.is_by_number() => number_of(before.count, after.count),
        _ => size_of(before, after),
    };
    format!("{name}{how}")
}

fn number_of(before: u32, after: u32) -> String {
    let tensors = format!("{} tensors instead of {}", Count(after.into()), Count(before.into()));
    match after {
        after if before > 0 && u64::from(after) == 2 * u64::from(before) => {
            format!(", which holds twice as many ({tensors})")
        }
        1 => format!(", which holds 1 tensor instead of {}", Count(before.into())),
        _ => format!(", which holds {tensors}"),
    }
}

fn size_of(before: Amount, after: Amount) -> String {
    let each = |amount: Amount| amount.bytes as f64 / f64::from(amount.count.max(1));
    let ratio = each(after) / each(before).max(1.0);
    if ratio >= 1.0 {
        format!(", whose tensors are {} times as large", rounded(ratio))
    } else {
        format!(", whose tensors have {} % of their size", (ratio * 100.0).round().max(1.0))
    }
}

/// Returns a ratio with as many digits as matter.
fn rounded(ratio: f64) -> String {
    let text = if ratio < 10.0 { format!("{ratio:.2}") } else { format!("{ratio:.0}") };
    let Some((whole, places)) = text.split_once('.') else { return text };
    let places = places.trim_end_matches('0');
    if places.is_empty() { whole.to_owned() } else { format!("{whole}.{places}") }
}
