//! `vramscope check`: whether a run keeps to the budgets of a repository.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use compare::contract::{Budget, Spent, Subject};
use compare::gate::{Checked, Rule};
use compare::{Options, compare, profile};
use query::run_comparison::{Comparability, RunComparison};
use query::run_profile::{MomentChoice, RunProfile};
use query::{Category, parse_bytes};
use serde::{Deserialize, Serialize};
use trace::text::Escaped;

use super::diff::baseline::{Baseline, moment_like, read_baseline};
use super::diff::loaded::Loaded;
use super::diff::{markdown, moment};
use super::message::TRIPPED;
use super::remote_file::RemoteFile;
use super::{print_json, refuse, show};

/// The file that is read unless another one is named.
const FILE: &str = "vramscope.toml";

/// The exit codes, and what the file is like.
const AFTER: &str = "\
Exit status:
  0  Within all budgets
  1  Over one of them
  2  It can't be checked

vramscope.toml:
  baseline = \"memory-baseline.json\"   # of `vramscope baseline set`; only rules need it
  at = \"peak\"                         # or end, step:N, event:N, mark:NAME, phase:NAME

  [[budget]]
  peak = \"40GiB\"                      # or reserved, or fragmentation

  [[budget]]
  line = \"loss.py\"                    # part of a path with its line number, or a function
  most = \"2GiB\"

  [[budget]]
  module = \"models.attention\"         # or a package
  phase = \"forward\"                   # within annotations of this name; of any budget
  most = \"8GiB\"

  [[budget]]
  category = \"activations\"
  most = \"10GiB\"

  [[budget]]
  rule = \"peak+2%\"                    # as --fail-if of `vramscope diff`";

/// The options of `check`.
#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(super) struct Check {
    /// The run: a memory snapshot (pickle or JSON) or recording (.vramscope), plain, .gz or .zst
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// The budgets
    #[arg(long, value_name = "FILE", default_value = FILE)]
    config: PathBuf,
    /// Device, by its number in the file [default: the first one with events]
    #[arg(long, value_name = "N")]
    device: Option<i64>,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
    /// Print Markdown, such as for a comment on a pull request
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contract {
    baseline: Option<PathBuf>,
    at: Option<String>,
    #[serde(default)]
    budget: Vec<Entry>,
}

/// A budget as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    peak: Option<String>,
    reserved: Option<String>,
    fragmentation: Option<String>,
    line: Option<String>,
    module: Option<String>,
    category: Option<String>,
    phase: Option<String>,
    most: Option<String>,
    rule: Option<String>,
}

/// A budget, or a rule of what may be added to the baseline.
enum Wanted {
    Budget(Budget),
    Rule(Rule),
}

impl Entry {
    fn read(&self) -> Result<Wanted, String> {
        let bytes = |text: &str| parse_bytes(text).map_err(|_| format!("{text:?} is no amount: write 40GiB or 512MiB"));
        let whole = [
            (Subject::Peak, &self.peak),
            (Subject::Reserved, &self.reserved),
            (Subject::Fragmentation, &self.fragmentation),
        ];
        let mut found = Vec::new();
        let budget = |subject, most| Wanted::Budget(Budget { subject, most, phase: self.phase.clone() });
        for (subject, most) in whole {
            if let Some(most) = most {
                found.push(budget(subject, bytes(most)?));
            }
        }
        let most = || match &self.most {
            Some(most) => bytes(most),
            None => Err("it has no most: add most = \"2GiB\"".to_owned()),
        };
        if let Some(line) = self.line.as_ref().filter(|line| !line.is_empty()) {
            found.push(budget(Subject::Line(line.clone()), most()?));
        }
        if let Some(module) = self.module.as_ref().filter(|module| !module.is_empty()) {
            found.push(budget(Subject::Module(module.clone()), most()?));
        }
        if let Some(name) = &self.category {
            let category = Category::from_name(name).ok_or_else(|| {
                let known: Vec<&str> = Category::ALL.into_iter().map(Category::code).collect();
                format!("there is no category {name:?}, but {}", known.join(", "))
            })?;
            found.push(budget(Subject::Category(category), most()?));
        }
        if let Some(rule) = &self.rule {
            if self.phase.is_some() {
                return Err("a rule is of the moment of the baseline: leave out phase".to_owned());
            }
            found.push(Wanted::Rule(Rule::parse(rule)?));
        }
        match (found.pop(), found.is_empty()) {
            (Some(one), true) => Ok(one),
            _ => Err("name one of peak, reserved, fragmentation, line, module, category and rule".to_owned()),
        }
    }
}

/// What was found.
struct Outcome {
    run: RunProfile,
    spent: Vec<Spent>,
    rules: Vec<Checked>,
    compared: Option<RunComparison>,
}

impl Outcome {
    fn is_over(&self) -> bool {
        self.spent.iter().any(Spent::is_over) || self.rules.iter().any(|rule| rule.is_tripped)
    }

    /// Returns each budget and rule in words, with whether it is kept.
    fn all(&self) -> impl Iterator<Item = (bool, String)> {
        let spent = self.spent.iter().map(|spent| (!spent.is_over(), spent.to_string()));
        spent.chain(self.rules.iter().map(|rule| (!rule.is_tripped, rule.to_string())))
    }
}

#[derive(Serialize)]
struct Document<'a> {
    verdict: &'static str,
    file: &'a str,
    event: u32,
    step: Option<u64>,
    moment: &'a str,
    budgets: Vec<BudgetRow<'a>>,
    rules: Vec<RuleRow<'a>>,
    /// What changed since the baseline; `None` without one.
    sentence: Option<&'a str>,
}

#[derive(Serialize)]
struct BudgetRow<'a> {
    budget: String,
    over: bool,
    bytes: u64,
    most: u64,
    lines: &'a [String],
}

#[derive(Serialize)]
struct RuleRow<'a> {
    rule: &'a str,
    over: bool,
    bytes: i64,
    line: Option<&'a str>,
}

impl Check {
    /// Prints what was spent. The exit code is 1 if it is more than there was, and 2 if it can't be checked.
    pub(super) fn run(self) -> ExitCode {
        let found = match self.outcome() {
            Ok(found) => found,
            Err(sentence) => return refuse(&sentence),
        };
        let printed = if self.json {
            print_json(&document(&found))
        } else if self.markdown {
            show(&comment(&found))
        } else {
            show(&text(&found))
        };
        match printed == ExitCode::SUCCESS && found.is_over() {
            true => ExitCode::from(TRIPPED),
            false => printed,
        }
    }

    fn outcome(&self) -> Result<Outcome, String> {
        let name = self.config.display();
        let in_file = |sentence: &str| format!("{name}: {sentence}.");
        let contract = read_contract(&self.config)?;
        let mut wanted = Vec::new();
        for (number, entry) in (1..).zip(&contract.budget) {
            wanted
                .push(entry.read().map_err(|why| in_file(&format!("budget {number}: {}", why.trim_end_matches('.'))))?);
        }
        if wanted.is_empty() {
            return Err(format!("{name} has no budget. `vramscope check --help` has an example."));
        }
        let at = contract.at.as_deref().map(moment).transpose().map_err(|why| format!("{name}: {why}"))?;
        let has_rules = wanted.iter().any(|wanted| matches!(wanted, Wanted::Rule(_)));
        let kept = match (&contract.baseline, has_rules) {
            (Some(path), _) => {
                // Paths are those of the file that has them.
                let path = match RemoteFile::of(path) {
                    Some(_) => path.clone(),
                    None => self.config.parent().unwrap_or(Path::new("")).join(path),
                };
                let kept = read_baseline(&path)?;
                Some(kept.ok_or_else(|| {
                    format!("{} is no baseline. Make one: vramscope baseline set FILE RUN.", path.display())
                })?)
            }
            (None, true) => return Err(in_file("a rule needs a baseline: add baseline = \"memory-baseline.json\"")),
            (None, false) => None,
        };
        let loaded = Loaded::read(&self.run, self.device)?;
        let run = loaded.run();
        let base = kept.map(Baseline::divided).transpose()?;
        let choice = at.unwrap_or_else(|| moment_like(base.as_ref().map(|(base, _)| &base.moment), &run));
        let profiled = profile(&run, &choice)?;
        let compared = base.map(|(base, peers)| compare(&base, &profiled, &Options { peers, ..Options::default() }));
        if let Some(compared) = compared.as_ref().filter(|compared| compared.comparability == Comparability::No) {
            let why = compared.differences.first().map_or("", |found| &found.consequence);
            return Err(format!("The run can't be compared with the baseline: {why}. Record it as those were."));
        }
        let (mut spent, mut rules) = (Vec::new(), Vec::new());
        let mut phases: BTreeMap<String, RunProfile> = BTreeMap::new();
        for wanted in wanted {
            match (wanted, &compared) {
                (Wanted::Budget(budget), _) => match &budget.phase {
                    None => spent.push(budget.spent(&profiled)),
                    Some(phase) => {
                        if !phases.contains_key(phase) {
                            phases.insert(phase.clone(), profile(&run, &MomentChoice::Phase(phase.clone()))?);
                        }
                        spent.extend(phases.get(phase).map(|within| budget.spent(within)));
                    }
                },
                (Wanted::Rule(rule), Some(compared)) => rules.push(rule.check(compared)),
                (Wanted::Rule(_), None) => {}
            }
        }
        Ok(Outcome { run: profiled, spent, rules, compared })
    }
}

fn read_contract(path: &Path) -> Result<Contract, String> {
    let name = path.display();
    let text = fs::read_to_string(path).map_err(|error| {
        format!("{name} can't be read: {}. `vramscope check --help` has an example.", recorder::disk::why(&error))
    })?;
    toml::from_str(&text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        format!("{name}, line {line}: {}. `vramscope check --help` has an example.", error.message())
    })
}

fn text(found: &Outcome) -> String {
    let over = found.all().filter(|(is_kept, _)| !is_kept).count();
    let (all, at) = (found.all().count(), &found.run.moment.text);
    let mut out = match over {
        0 => format!("WITHIN BUDGET: {}, {at}\n", Escaped(&found.run.name)),
        over => format!("OVER BUDGET: {over} of {all}, {}, {at}\n", Escaped(&found.run.name)),
    };
    for (is_kept, said) in found.all() {
        // Writing to a string can't fail.
        let _ = writeln!(out, "  {}  {}", if is_kept { "kept" } else { "OVER" }, Escaped(&said));
    }
    if let Some(compared) = &found.compared {
        let _ = writeln!(out, "  A is the baseline. {}", Escaped(&compared.sentence));
    }
    out
}

fn comment(found: &Outcome) -> String {
    let head = if found.is_over() { "over budget." } else { "within budget." };
    let mut out = format!("**GPU memory: {head}** {}\n\n", markdown::text(&found.run.moment.text));
    for (is_kept, said) in found.all() {
        // Writing to a string can't fail.
        let _ = writeln!(out, "- {} {}", if is_kept { "✅" } else { "❌" }, markdown::text(&said));
    }
    if let Some(compared) = &found.compared {
        let _ = writeln!(out, "\nA is the baseline. {}", markdown::text(&compared.sentence));
    }
    let _ = writeln!(out, "\nBy `vramscope check`.");
    out
}

fn document(found: &Outcome) -> Document<'_> {
    let RunProfile { name, moment, .. } = &found.run;
    Document {
        verdict: if found.is_over() { "over" } else { "within" },
        file: name,
        event: moment.position,
        step: moment.step,
        moment: &moment.text,
        budgets: found
            .spent
            .iter()
            .map(|spent| BudgetRow {
                budget: spent.budget.subject.to_string(),
                over: spent.is_over(),
                bytes: spent.bytes,
                most: spent.budget.most,
                lines: &spent.lines,
            })
            .collect(),
        rules: found
            .rules
            .iter()
            .map(|checked| RuleRow {
                rule: &checked.rule.text,
                over: checked.is_tripped,
                bytes: checked.bytes,
                line: checked.line.as_deref(),
            })
            .collect(),
        sentence: found.compared.as_ref().map(|compared| compared.sentence.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_for_one_thing_and_says_how_much() {
        for (text, want) in [
            ("peak = \"40GiB\"", "peak"),
            ("reserved = \"1GiB\"", "reserved"),
            ("fragmentation = \"512MiB\"", "fragmentation"),
            ("line = \"loss.py\"\nmost = \"1GiB\"", "line loss.py"),
            ("category = \"optimizer state\"\nmost = \"1GiB\"", "optimizer state"),
            ("rule = \"peak+2%\"", "rule peak+2%"),
            ("line = \"loss.py\"", "it has no most"),
            ("category = \"cheese\"\nmost = \"1GiB\"", "there is no category \"cheese\", but parameters"),
            ("peak = \"much\"", "\"much\" is no amount"),
            ("peak = \"1GiB\"\nreserved = \"1GiB\"", "name one of"),
            ("most = \"1GiB\"", "name one of"),
            ("rule = \"peak\"", "\"peak\" is no rule"),
        ] {
            let entry: Entry = toml::from_str(text).unwrap();
            let said = match entry.read() {
                Ok(Wanted::Budget(budget)) => budget.subject.to_string(),
                Ok(Wanted::Rule(rule)) => format!("rule {}", rule.text),
                Err(why) => why,
            };
            assert!(said.starts_with(want), "{text}: {said}");
        }
    }
}
