//! Steps from annotations: spans and instants whose names say "step", or count.

use rustc_hash::FxHashMap;

use super::TrainingStep;
use crate::stack_traits::Traits;
use replay::Replayed;
use trace::Stage;
use trace::event::Action;
use trace::frames::{StrId, Symbols};
use trace::order::SortFew;

/// Words for one round of a program, the best one first: a step may have several batches.
const WORDS: [&str; 5] = ["step", "iter", "batch", "request", "token"];
/// Annotations of PyTorch's own that have one of the words and are a part of a round.
const PARTS: [&str; 4] = ["Optimizer.", "optimizer", "DataLoader", "DataPipe"];
/// Of a hundred steps, how many may begin before the one before ended, or have a lower number.
const PERCENT_OUT_OF_ORDER: usize = 20;

/// A named span, or the time from one instant to the next.
#[derive(Clone, Copy, Debug)]
struct Mark {
    number: Option<u64>,
    from: u32,
    /// `None` for an instant.
    to: Option<u32>,
    is_whole: bool,
}

/// Returns whether a name says that it is one round of a program.
pub(super) fn is_step(name: &str) -> bool {
    rank(name) < WORDS.len() && !PARTS.iter().any(|part| name.contains(part))
}

/// Returns how good a name is for steps: 0 is best.
fn rank(name: &str) -> usize {
    let lower = name.to_ascii_lowercase();
    WORDS.iter().position(|word| lower.contains(word)).unwrap_or(WORDS.len())
}

/// Returns the steps of the best group of annotations whose names differ by numbers only, among those whose names are
/// wanted.
pub(super) fn steps(
    input: Replayed<'_>,
    symbols: &Symbols,
    is_wanted: impl Fn(&str) -> bool,
) -> Option<Vec<TrainingStep>> {
    let mut groups: FxHashMap<String, Vec<Mark>> = FxHashMap::default();
    for (name, mark) in marks(input) {
        let text = symbols.text(name);
        if !is_wanted(&text) {
            continue;
        }
        let (stem, number) = numbered(&text);
        // Without a number, only a name that says so is a step.
        if number.is_some() || is_step(&text) {
            groups.entry(stem).or_default().push(Mark { number, ..mark });
        }
    }
    let mut ranked: Vec<(String, Vec<Mark>)> = groups.into_iter().filter(|(_, marks)| marks.len() >= 2).collect();
    ranked.sort_few_by_key(|(stem, marks)| {
        let is_profiler = stem.starts_with("ProfilerStep");
        (!is_profiler, rank(stem), std::cmp::Reverse(marks.len()), stem.clone())
    });
    ranked.into_iter().find_map(|(stem, marks)| in_order(input, marks, rank(&stem) < WORDS.len()))
}

/// Returns the steps that end with each span whose name begins with `start`.
pub(super) fn steps_until(input: Replayed<'_>, symbols: &Symbols, start: &str) -> Option<Vec<TrainingStep>> {
    let is_wanted = |name: StrId| symbols.text(name).starts_with(start);
    let wanted = marks(input).into_iter().filter(|(name, mark)| mark.is_whole && is_wanted(*name));
    let mut ends: Vec<u32> = wanted.filter_map(|(_, mark)| mark.to).collect();
    ends.sort_unstable();
    ends.dedup();
    super::ending_at(input, &ends)
}

/// Returns the annotated spans that say what the program does, by their start: start, end, and the traits that a stack
/// of that phase has.
pub(crate) fn phases(input: Replayed<'_>, symbols: &Symbols) -> Vec<(u32, u32, Traits)> {
    let of_name = |name: &str| {
        let lower = name.to_ascii_lowercase();
        let words = [("zero_grad", Traits::ZERO_GRAD), ("backward", Traits::BACKWARD), ("forward", Traits::FORWARD)];
        words
            .into_iter()
            .chain([("optimizer", Traits::OPTIMIZER)])
            .find(|(word, _)| lower.contains(word))
            .map(|(_, traits)| traits)
    };
    let mut known: FxHashMap<StrId, Option<Traits>> = FxHashMap::default();
    let spans = marks(input).into_iter().filter_map(|(name, mark)| {
        let traits = *known.entry(name).or_insert_with(|| of_name(&symbols.text(name)));
        Some((mark.from, mark.to?, traits?))
    });
    spans.collect()
}

/// Returns a name with each number replaced by `#`, and its last number.
fn numbered(name: &str) -> (String, Option<u64>) {
    let (mut stem, mut number) = (String::with_capacity(name.len()), None);
    for part in name.split_inclusive(|c: char| !c.is_ascii_digit()) {
        let digits = part.trim_end_matches(|c: char| !c.is_ascii_digit());
        if let Ok(found) = digits.parse() {
            number = Some(found);
            stem.push('#');
        }
        stem.push_str(part.get(digits.len()..).unwrap_or_default());
    }
    (stem, number)
}

/// Returns the name, start and end of each annotation, and of each instant among the events, by position.
pub fn named_spans(input: Replayed<'_>) -> impl Iterator<Item = (StrId, u32, u32)> {
    marks(input).into_iter().map(|(name, mark)| (name, mark.from, mark.to.unwrap_or(mark.from)))
}

/// Returns all annotations and the instants among the events, by position.
fn marks(Replayed { trace, tags, replay }: Replayed<'_>) -> Vec<(StrId, Mark)> {
    let position = |time_us: i64| replay.position_at_time(trace, time_us.saturating_sub(trace.start_us()) as f64);
    let mut ordered = trace.annotations.clone();
    // The file's order need not be that of time.
    ordered.sort_few_by_key(|annotation| annotation.time_us);
    let mut open: FxHashMap<StrId, Vec<u32>> = FxHashMap::default();
    let mut marks = Vec::new();
    for annotation in &ordered {
        let (name, at) = (annotation.name, position(annotation.time_us));
        match annotation.stage {
            Stage::Start => open.entry(name).or_default().push(at),
            Stage::End => {
                let start = open.get_mut(&name).and_then(Vec::pop);
                let (from, is_whole) = (start.unwrap_or(0), start.is_some());
                marks.push((name, Mark { number: None, from, to: Some(at), is_whole }));
            }
            Stage::Instant => marks.push((name, Mark { number: None, from: at, to: None, is_whole: true })),
        }
    }
    for (name, starts) in open {
        let unfinished = |from| Mark { number: None, from, to: Some(replay.positions()), is_whole: false };
        marks.extend(starts.into_iter().map(|from| (name, unfinished(from))));
    }
    let texts = [Action::UserDefined as u8, Action::Annotate as u8];
    for (i, _) in trace.events.action.iter().enumerate().filter(|(_, action)| texts.contains(action)) {
        let name = trace.events.get(i).map(|event| tags.get(event.tag).user_metadata).unwrap_or_default();
        marks.push((name, Mark { number: None, from: i as u32, to: None, is_whole: true }));
    }
    marks.sort_few_by_key(|(name, mark)| (mark.from, mark.to, *name));
    marks
}

/// Returns the marks as steps, unless too many of them overlap or count down: then they are something else, such as
/// the layers of a model. `may_restart` allows numbers to begin again, as those of steps do in each epoch.
fn in_order(input: Replayed<'_>, mut marks: Vec<Mark>, may_restart: bool) -> Option<Vec<TrainingStep>> {
    marks.sort_few_by_key(|mark| mark.from);
    let allowed = marks.len() * PERCENT_OUT_OF_ORDER / 100;
    let overlaps = marks.windows(2).filter(|pair| matches!(pair, [a, b] if a.to.is_some_and(|to| to > b.from))).count();
    let falls = marks.windows(2).filter(|pair| matches!(pair, [a, b] if a.number.is_some() && b.number <= a.number));
    if overlaps > allowed || falls.count() > if may_restart { allowed } else { 0 } {
        return None;
    }
    let end = input.replay.positions();
    let starts: Vec<u32> = marks.iter().skip(1).map(|mark| mark.from).chain([end]).collect();
    let mut steps: Vec<TrainingStep> = Vec::new();
    for ((mark, next), count) in marks.iter().zip(starts).zip(1..) {
        let to = mark.to.map_or(next, |to| to.min(next));
        let is_last = next == end && mark.to.is_none();
        let number = mark.number.unwrap_or(count);
        steps.push(TrainingStep { number, from: mark.from, to, is_whole: mark.is_whole && !is_last });
    }
    // A step without events says nothing about memory.
    steps.retain(|step| step.from < step.to);
    (steps.len() >= 2).then_some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_by_what_is_no_number() {
        let cases = [
            ("ProfilerStep#12", ("ProfilerStep##", Some(12))),
            ("epoch 2 step 17 (train)", ("epoch # step # (train)", Some(17))),
            ("forward", ("forward", None)),
            ("7", ("#", Some(7))),
            ("step 99999999999999999999", ("step ", None)),
        ];
        for (name, (stem, number)) in cases {
            assert_eq!(numbered(name), (stem.to_owned(), number), "{name}");
        }
    }

    #[test]
    fn parts_of_a_step_are_no_steps() {
        for name in ["step 3", "train_step", "Iteration 5", "## micro batch ##", "request-7"] {
            assert!(is_step(name), "{name}");
        }
        for name in ["Optimizer.step#Adam.step", "## optimizer ##", "forward", "layer 3", "## optimizer step ##"] {
            assert!(!is_step(name), "{name}");
        }
    }
}
