//! What changed from one run to another.

use serde::{Deserialize, Serialize};

use super::run_profile::{Conditions, MostMemory, ProfiledMemory, ProfiledMoment, RunProfile};
use super::{Category, FROM_BEFORE, NO_STACK, Question, Sealed};
use trace::totals::{Amount, difference};

/// The moment at which the page compares two runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ComparedMoment {
    /// The peak of the last step that both have; without one, the peak of each. See [`MomentChoice::common`].
    ///
    /// [`MomentChoice::common`]: super::run_profile::MomentChoice::common
    #[default]
    Common,
    /// The peak of each.
    Peak,
    /// The end of each.
    End,
    /// The cursor of each.
    Cursor,
}

/// What two runs are drawn along.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ComparedAxis {
    /// Their steps: equal numbers above one another. Without steps, time or events.
    #[default]
    Steps,
    /// Time since each began.
    Time,
    /// Events since each began.
    Events,
}

/// The view that shows two runs side by side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ComparedView {
    /// None.
    #[default]
    None,
    /// The timeline.
    Timeline,
    /// The segments.
    Segments,
    /// The flame graph.
    Flame,
    /// The heatmap.
    Heatmap,
}

/// What compared lines are ordered by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ComparedOrder {
    /// How much they changed, the most first.
    #[default]
    Growth,
    /// What they hold in the first run, the most first.
    Before,
    /// What they hold in the second run, the most first.
    After,
    /// Their text.
    Line,
    /// How they were found again: those in one run alone first.
    Found,
}

impl ComparedOrder {
    /// All orders.
    pub const ALL: [Self; 5] = [Self::Growth, Self::Before, Self::After, Self::Line, Self::Found];
}

/// Asks what changed from one run to another. Any session can tell: two are asked for their profiles at the same time, and one of
/// them for the comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompareRunsQuery {
    /// The first run, which is the base.
    pub before: Sealed<RunProfile>,
    /// The second run.
    pub after: Sealed<RunProfile>,
}

impl Question for CompareRunsQuery {
    type Answer = Sealed<RunComparison>;
}

/// Two runs, the first as the base. The growth of its lines adds up to that of [`ProfiledMemory::allocated`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunComparison {
    /// The two runs.
    pub runs: [ComparedRun; 2],
    /// Whether the difference means something.
    pub comparability: Comparability,
    /// Which conditions differ.
    pub differences: Vec<ConditionDifference>,
    /// How much runs of the first one's kind differ without a change, if there are several; see [`Band`].
    pub band: Option<Band>,
    /// What changed, in one sentence.
    pub sentence: String,
    /// The lines of both, the largest change first. Live tensors without a stack are one more line, and those of them that were
    /// there when recording began another.
    pub lines: Vec<ChangedLine>,
    /// Live tensors by category, those that differ, the largest change first.
    pub categories: Vec<(Category, [Amount; 2])>,
    /// The memory of each stream, if there are several.
    pub streams: Vec<ChangedPart>,
    /// The memory of each pool, if there are several.
    pub pools: Vec<ChangedPart>,
}

impl RunComparison {
    /// Returns the lines that hold more or less than before, the largest change first, without those that are noise.
    pub fn changed_lines(&self) -> impl Iterator<Item = &ChangedLine> {
        self.lines.iter().filter(|line| line.growth() != 0 && !line.is_noise())
    }

    /// Returns whether a part of the second run's memory is between the least and the most of several first runs.
    pub fn is_noise(&self, of: impl Fn(&Band) -> [u64; 2], part: impl Fn(&ComparedRun) -> u64) -> bool {
        let [_, after] = &self.runs;
        self.band.as_ref().is_some_and(|band| is_within(of(band), part(after)))
    }

    /// Returns the most that tensors requested in each whole run, if both are compared at the peaks of steps: there may have been more
    /// outside them. A run that is compared with itself has one.
    pub fn outside_steps(&self) -> Option<[u64; 2]> {
        let most = self.runs.each_ref().map(|run| run.most.allocated);
        let are_steps = self.runs.iter().all(|run| run.moment.step.is_some() && run.moment.is_peak);
        (are_steps && !self.is_of_one_run() && !most.contains(&0)).then_some(most)
    }

    /// Returns whether, as far as can be told, two moments of one run are compared.
    pub fn is_of_one_run(&self) -> bool {
        let [a, b] = &self.runs;
        (&a.name, a.device, a.most) == (&b.name, b.device, b.most) && a.moment.position != b.moment.position
    }

    /// Returns the bytes of live tensors without a stack that were there when recording began, in each run. They have no category.
    pub fn at_start(&self) -> [u64; 2] {
        let line = self.lines.iter().find(|line| line.label() == FROM_BEFORE);
        line.map(|line| line.held.map(|held| held.bytes)).unwrap_or_default()
    }

    /// Returns whether lines can be told apart in both runs.
    pub fn knows_lines(&self) -> bool {
        self.runs.iter().all(|run| run.conditions.has_stacks)
    }

    /// Returns by how many bytes the second run has more, of a part of its memory.
    pub fn growth(&self, part: impl Fn(&ProfiledMemory) -> u64) -> i64 {
        let [before, after] = &self.runs;
        difference(part(&after.memory), part(&before.memory))
    }

    /// Returns the same of a part that may be less than zero.
    pub fn signed_growth(&self, part: impl Fn(&ProfiledMemory) -> i64) -> i64 {
        let [before, after] = &self.runs;
        part(&after.memory).saturating_sub(part(&before.memory))
    }
}

/// The least and the most bytes of several runs that nothing changed between. What lies within is noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Band {
    /// The number of runs.
    pub runs: u32,
    /// What live tensors requested.
    pub allocated: [u64; 2],
    /// What the allocator has taken from the driver.
    pub reserved: [u64; 2],
    /// The most that tensors requested in a whole run.
    pub most_allocated: [u64; 2],
}

const fn is_within([least, most]: [u64; 2], bytes: u64) -> bool {
    least <= bytes && bytes <= most
}

/// One of two runs that are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedRun {
    /// Its name.
    pub name: String,
    /// The device's number.
    pub device: i64,
    /// The moment at which it is compared.
    pub moment: ProfiledMoment,
    /// Its memory then.
    pub memory: ProfiledMemory,
    /// The most of the whole run.
    pub most: MostMemory,
    /// Its conditions.
    pub conditions: Conditions,
}

/// Whether the difference between two runs means something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Comparability {
    /// It does.
    #[default]
    Yes,
    /// It may come from what differs beside the program.
    WithCare,
    /// It does not.
    No,
}

/// A condition in which two runs differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConditionDifference {
    /// What differs: `PyTorch`.
    pub what: String,
    /// Its value in each run.
    pub values: [String; 2],
    /// What follows from it; empty if that is plain.
    pub consequence: String,
    /// How much it says against a comparison.
    pub weight: Comparability,
}

/// How a line of one run was found in the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LineMatch {
    /// In both runs, it has the same function, file and line number.
    Exact,
    /// The function is the same, but the line number or the file's path is not.
    Moved,
    /// The function or the file has another name. It is the only line that allocates the same sizes.
    Guessed,
    /// It is in the second run alone.
    New,
    /// It is in the first run alone.
    Gone,
}

impl LineMatch {
    /// Returns the name for people and for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Moved => "moved",
            Self::Guessed => "guessed",
            Self::New => "new",
            Self::Gone => "gone",
        }
    }
}

/// A line in two runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedLine {
    /// How it was found.
    pub found: LineMatch,
    /// Its label in each run; empty where it is not.
    pub labels: [String; 2],
    /// Its file and number in each run, as recorded: `/home/me/models/gpt.py:54`; empty where it is not, or has none.
    pub places: [String; 2],
    /// One of its stacks in each run; `None` where it is not, or has none.
    pub stacks: [Option<u32>; 2],
    /// Its live tensors in each run.
    pub held: [Amount; 2],
    /// The least and the most bytes that it holds in several first runs, if there are several.
    pub band: Option<[u64; 2]>,
    /// What it is used for, in the run in which it holds more.
    pub category: Category,
}

/// A stream or a pool in two runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedPart {
    /// Its name in both.
    pub name: String,
    /// How it was found. Only the default stream and the default pool are known to be the same ones; others are those that were used as
    /// the first, the second and so on.
    pub found: LineMatch,
    /// Its live tensors in each run.
    pub held: [Amount; 2],
    /// Bytes that are reserved for it in each run.
    pub reserved: [u64; 2],
}

impl ChangedPart {
    /// Returns by how many bytes more are reserved for it in the second run.
    pub const fn growth(&self) -> i64 {
        let [before, after] = self.reserved;
        difference(after, before)
    }
}

impl ChangedLine {
    /// Returns by how many bytes the second run has more.
    pub const fn growth(&self) -> i64 {
        let [before, after] = &self.held;
        difference(after.bytes, before.bytes)
    }

    /// Returns whether it holds no more and no less in the second run than in one of several first ones.
    pub fn is_noise(&self) -> bool {
        let [_, after] = &self.held;
        self.band.is_some_and(|band| is_within(band, after.bytes))
    }

    /// Returns whether it is a line of code, and not what has no stack or was there when recording began.
    pub fn is_code(&self) -> bool {
        ![NO_STACK, FROM_BEFORE].contains(&self.label())
    }

    /// Returns its label in the second run, or else in the first.
    pub fn label(&self) -> &str {
        let [before, after] = &self.labels;
        if after.is_empty() { before } else { after }
    }

    /// Returns its file and number in the second run, or else in the first.
    pub fn place(&self) -> &str {
        let [before, after] = &self.places;
        if after.is_empty() { before } else { after }
    }

    /// Returns whether the number of its tensors explains the growth, rather than their sizes: there are more where it grew, and fewer
    /// where it shrank. What a mean size says of tensors whose number differs is no size that any of them has.
    pub const fn is_by_number(&self) -> bool {
        let [before, after] = &self.held;
        before.count != after.count && (before.count < after.count) == (before.bytes < after.bytes)
    }

    /// Returns how much of the growth is due to the number of tensors, and how much to their sizes: as many more of the first
    /// run's size, and the rest.
    pub fn by_count_and_size(&self) -> (i64, i64) {
        let [before, after] = self.held;
        if before.count == 0 || after.count == 0 {
            return (self.growth(), 0);
        }
        let apart = i128::from(after.count) - i128::from(before.count);
        let by_count = apart * i128::from(before.bytes) / i128::from(before.count);
        let by_count = i64::try_from(by_count).unwrap_or(if by_count < 0 { i64::MIN } else { i64::MAX });
        (by_count, self.growth().saturating_sub(by_count))
    }
}
