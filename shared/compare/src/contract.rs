//! What a run may hold at most: budgets of the whole, of lines, and of what memory is used for.

use std::fmt;

use query::Category;
use query::run_profile::{ProfiledLine, ProfiledMemory, RunProfile};
use trace::units::{Bytes, counted};

/// What a budget is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// What live tensors hold.
    Peak,
    /// What is reserved.
    Reserved,
    /// What is in free gaps.
    Fragmentation,
    /// The lines whose place or function contains a text, together.
    Line(String),
    /// The lines of a module or package of Python, such as `models.attention`, together.
    Module(String),
    /// What memory of a category holds.
    Category(Category),
}

/// The most that something may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// What it is for.
    pub subject: Subject,
    /// The most, in bytes.
    pub most: u64,
    /// The name of the annotations within which it counts, at the moment when most is requested there; `None` for the moment of the
    /// run that is checked.
    pub phase: Option<String>,
}

/// What was spent of a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spent {
    /// The budget.
    pub budget: Budget,
    /// In bytes.
    pub bytes: u64,
    /// The lines that it is of, the largest first; none unless the budget is for lines.
    pub lines: Vec<String>,
}

impl Budget {
    /// Returns what a run spends of it.
    pub fn spent(&self, run: &RunProfile) -> Spent {
        let unsigned = |bytes: i64| u64::try_from(bytes).unwrap_or(0);
        let (bytes, lines) = match &self.subject {
            Subject::Peak => (run.memory.allocated, Vec::new()),
            Subject::Reserved => (run.memory.reserved, Vec::new()),
            Subject::Fragmentation => (unsigned(ProfiledMemory::gaps(&run.memory)), Vec::new()),
            Subject::Category(category) => {
                let place = Category::ALL.iter().position(|known| known == category);
                let held = place.and_then(|place| run.categories.get(place));
                (held.map_or(0, |held| held.bytes), Vec::new())
            }
            Subject::Line(text) => {
                let place = |line: &ProfiledLine| format!("{}:{}", line.file, line.number);
                of_lines(run, |line| line.function == *text || place(line).contains(text.as_str()))
            }
            Subject::Module(name) => of_lines(run, |line| is_of_module(&line.file, name)),
        };
        Spent { budget: self.clone(), bytes, lines }
    }
}

/// Returns what some lines hold together, and their labels, the largest first.
fn of_lines(run: &RunProfile, is_meant: impl Fn(&ProfiledLine) -> bool) -> (u64, Vec<String>) {
    let mut meant: Vec<_> = run.lines.iter().filter(|line| line.held.bytes > 0 && is_meant(line)).collect();
    meant.sort_by_key(|line| std::cmp::Reverse(line.held.bytes));
    let sum = meant.iter().fold(0, |sum: u64, line| sum.saturating_add(line.held.bytes));
    (sum, meant.into_iter().map(|line| line.label.clone()).collect())
}

/// Returns whether a file belongs to a module or package: `models.attention` has `…/models/attention.py`, and all files in
/// `…/models/attention/`.
fn is_of_module(file: &str, module: &str) -> bool {
    let mut path: Vec<&str> = file.split(['/', '\\']).collect();
    if let Some(name) = path.last_mut() {
        *name = name.strip_suffix(".py").unwrap_or(name);
    }
    let parts: Vec<&str> = module.split('.').collect();
    path.windows(parts.len()).any(|part| part == parts)
}

impl Spent {
    /// Returns whether more was spent than there was.
    pub const fn is_over(&self) -> bool {
        self.bytes > self.budget.most
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Peak => f.write_str("peak"),
            Self::Reserved => f.write_str("reserved"),
            Self::Fragmentation => f.write_str("fragmentation"),
            Self::Line(text) => write!(f, "line {text}"),
            Self::Module(name) => write!(f, "module {name}"),
            Self::Category(category) => f.write_str(category.name()),
        }
    }
}

impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let within = self.budget.phase.as_ref().map_or_else(String::new, |phase| format!(" within {phase}"));
        write!(f, "{}{within}: {} of {}", self.budget.subject, Bytes(self.bytes), Bytes(self.budget.most))?;
        match (self.lines.as_slice(), &self.budget.subject) {
            ([], Subject::Line(_) | Subject::Module(_)) => write!(f, ", and no line of that name holds anything"),
            ([], _) => Ok(()),
            ([line], _) => write!(f, ", {line}"),
            ([line, rest @ ..], _) => write!(f, ", {line} and {}", counted(rest.len() as u64, "other line")),
        }
    }
}

#[cfg(test)]
mod tests {
    use query::run_profile::ProfiledLine;
    use trace::totals::Amount;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_budget_is_spent_by_what_it_is_for() {
        let line = |function: &str, file: &str, number: u32, bytes: u64| ProfiledLine {
            function: function.to_owned(),
            file: file.to_owned(),
            number,
            label: format!("{function}  {file}:{number}"),
            held: Amount { bytes, count: 1 },
            ..ProfiledLine::default()
        };
        let mut categories = vec![Amount::default(); Category::ALL.len()];
        categories[3] = Amount { bytes: 40 * MIB, count: 2 };
        let run = RunProfile {
            memory: ProfiledMemory {
                allocated: 70 * MIB,
                blocks: 70 * MIB,
                active: 70 * MIB,
                reserved: 100 * MIB,
                outside: None,
            },
            lines: vec![
                line("loss", "/me/loss.py", 88, 30 * MIB),
                line("log", "/me/loss.py", 90, 10 * MIB),
                line("step", "/me/train.py", 9, 30 * MIB),
                line("idle", "/me/loss.py", 99, 0),
            ],
            categories,
            ..RunProfile::default()
        };
        let of = |subject, most| Budget { subject, most: most * MIB, phase: None }.spent(&run);
        for (subject, most, is_over, text) in [
            (Subject::Peak, 70, false, "peak: 70.0 MiB of 70.0 MiB"),
            (Subject::Peak, 69, true, "peak: 70.0 MiB of 69.0 MiB"),
            (Subject::Reserved, 90, true, "reserved: 100 MiB of 90.0 MiB"),
            (Subject::Fragmentation, 30, false, "fragmentation: 30.0 MiB of 30.0 MiB"),
            (Subject::Category(Category::Activations), 39, true, "activations: 40.0 MiB of 39.0 MiB"),
            (
                Subject::Line("loss.py".to_owned()),
                39,
                true,
                "line loss.py: 40.0 MiB of 39.0 MiB, loss  /me/loss.py:88 and 1 other line",
            ),
            (
                Subject::Line("loss.py:90".to_owned()),
                10,
                false,
                "line loss.py:90: 10.0 MiB of 10.0 MiB, log  /me/loss.py:90",
            ),
            (Subject::Line("step".to_owned()), 1, true, "line step: 30.0 MiB of 1.00 MiB, step  /me/train.py:9"),
            (
                Subject::Line("gone.py".to_owned()),
                1,
                false,
                "line gone.py: 0 B of 1.00 MiB, and no line of that name holds anything",
            ),
        ] {
            let spent = of(subject, most);
            assert_eq!((spent.is_over(), spent.to_string().as_str()), (is_over, text));
        }
        let within = Budget { subject: Subject::Peak, most: MIB, phase: Some("forward".to_owned()) };
        assert_eq!(within.spent(&run).to_string(), "peak within forward: 70.0 MiB of 1.00 MiB");
    }

    #[test]
    fn a_module_has_its_file_and_a_package_its_files() {
        for (file, module, want) in [
            ("/home/me/models/attention.py", "models.attention", true),
            ("/home/me/models/attention.py", "attention", true),
            ("/home/me/models/attention.py", "models", true),
            ("C:\\me\\models\\attention.py", "models.attention", true),
            ("models/attention/mask.py", "models.attention", true),
            ("models/attention_mask.py", "models.attention", false),
            ("models/attention.py", "model", false),
            ("models/attention.py", "models.attention.mask", false),
            ("", "models", false),
        ] {
            assert_eq!(is_of_module(file, module), want, "{file} {module}");
        }
    }
}
