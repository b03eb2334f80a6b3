//! The diagnosis of a file: of each of its devices, and what is wrong with the file itself.

use std::borrow::Cow;
use std::fmt;

use super::CategoryReport;
use super::diagnosis::{self, DiagnosisReport, FindingReport, InnerLinesReport, OomReport};
use allocator::Profile;
use analysis::best_frames::BestFrames;
use analysis::findings::findings;
use analysis::roles::Roles;
use analysis::usage::Usage;
use doctor::Case;
use format::Header;
use format::import::Imported;
use query::category::Category;
use query::diagnosis::Diagnosis;
use query::finding::{Finding, FindingCode, Integrity, Remedy};
use query::own_rules::OwnRules;
use query::own_rules::UserRules;
use query::{NO_STACK, line_in_sentence};
use replay::index::Index;
use replay::{Replay, Replayed};
use trace::text::{Escaped, quoted};
use trace::units::{Bytes, Count, counted, counted_as};
use trace::{Marks, Snapshot};
use whatif::Requests;

/// The lines that are shown with a failure, and in brief.
const LINES: usize = 5;
const BRIEF_LINES: usize = 3;
/// The findings that are shown in brief of a device on which no request failed.
const BRIEF_FINDINGS: usize = 3;
/// The cells of a bar that stands for all of something.
const BAR: usize = 10;
/// Findings about what is known of a history, not about the memory.
const HISTORY: [&str; 2] = [FindingCode::RingOverflow.name(), FindingCode::Inconsistent.name()];

/// The diagnosis of a file.
#[derive(Clone, Debug)]
pub struct FileDiagnosis {
    /// The path as given.
    pub path: String,
    /// What is wrong with the file, or worth knowing: findings that concern no single device.
    pub findings: Vec<FindingReport>,
    /// Its devices, by number.
    pub devices: Vec<DiagnosisReport>,
    /// The number of the failure that the verdicts were asked to be about, from 1; `None` for that which ended the run.
    pub failure: Option<u32>,
}

/// Diagnoses each device of a file. Calls `visit` with it, and adds what is known of its history and of its failures to
/// `found`.
pub(super) fn examine(
    snapshot: &mut Snapshot,
    best_frames: &BestFrames,
    rules: &UserRules,
    header: Option<&Header>,
    found: &mut Vec<Finding>,
    visit: &mut impl FnMut(&Snapshot, &Case<'_>, Diagnosis),
) {
    let traces = std::mem::take(&mut snapshot.devices);
    for trace in &traces {
        let replay = Replay::build(trace, &mut snapshot.tags, &snapshot.settings);
        let start = replay.state_at(0).totals;
        found.extend(findings(trace, &replay, &start, found));
        let usage = Usage::build(Replayed { trace, tags: &snapshot.tags, replay: &replay });
        let known = header.into_iter().flat_map(|header| &header.devices).find(|known| known.number == trace.device);
        let case = Case {
            trace,
            tags: &snapshot.tags,
            symbols: &snapshot.symbols,
            best_frames,
            settings: &snapshot.settings,
            replay: &replay,
            usage: &usage,
            roles: &Roles::new(rules.clone()),
            capacity: known.map(|known| known.capacity).filter(|bytes| *bytes > 0),
            integrity: Integrity::of(found),
        };
        let diagnosis = doctor::diagnose(&case);
        // The evidence is for the page: stacks and allocations have other numbers in another file of the same run.
        let failures = diagnosis.findings.iter().filter(|finding| finding.code == FindingCode::OutOfMemory);
        found.extend(failures.map(|finding| Finding { evidence: None, ..finding.clone() }));
        visit(snapshot, &case, diagnosis);
    }
}

impl FileDiagnosis {
    /// Diagnoses a file that was imported from `path`.
    pub fn new(path: String, imported: Imported) -> Self {
        Self::with(path, imported, OwnRules::default(), None)
    }

    /// Diagnoses a file by the user's own rules. The verdict is about the failure with the given number, from 1, on each device that
    /// has so many, and otherwise about the one that ended the run.
    pub fn with(path: String, imported: Imported, rules: OwnRules, failure: Option<u32>) -> Self {
        let Imported { mut snapshot, findings: mut found, header, .. } = imported;
        let mut devices: Vec<DiagnosisReport> = Vec::new();
        let mut best_frames = BestFrames::with(rules.folding);
        best_frames.extend(&snapshot.symbols);
        let torch = header.as_ref().map_or("", |header| header.torch.as_str());
        let mut keep = |snapshot: &Snapshot, case: &Case<'_>, mut diagnosis: Diagnosis| {
            if let Some(number) = failure {
                diagnosis::choose(case, &mut diagnosis, number);
            }
            prove(case, (torch, &snapshot.marks), &mut diagnosis);
            devices.push(DiagnosisReport::of(case, &diagnosis));
        };
        examine(&mut snapshot, &best_frames, &rules.categories, header.as_ref(), &mut found, &mut keep);
        // Findings about a device's history are listed with the device.
        found.retain(|finding| finding.code != FindingCode::OutOfMemory);
        let (of_devices, of_file): (Vec<_>, Vec<_>) = found.into_iter().partition(|finding| finding.device.is_some());
        for device in &mut devices {
            let own = of_devices.iter().filter(|finding| finding.device == Some(device.device));
            device.findings.extend(own.map(FindingReport::from));
        }
        let mut findings: Vec<FindingReport> = of_file.iter().map(FindingReport::from).collect();
        findings.extend(of_all(&mut devices));
        Self { path, findings, devices, failure }
    }
}

/// Checks on the trace what the verdict advises.
pub(super) fn prove(case: &Case<'_>, (torch, marks): (&str, &Marks), diagnosis: &mut Diagnosis) {
    let names_setting = diagnosis.verdict.remedies.iter().any(|remedy| remedy.setting().is_some());
    if diagnosis.verdict.position.is_none() && !names_setting {
        return;
    }
    let requests = Requests::of(case.trace, (case.symbols, case.tags), case.replay, case.settings);
    let told = Profile::of(torch).map(|profile| vec![profile]);
    let profiles = told.unwrap_or_else(|| Profile::candidates(case.settings, marks));
    let Ok(baseline) = requests.baseline(&profiles, &case.settings.conf) else { return };
    requests.prove(&mut diagnosis.verdict, &baseline, &case.settings.conf);
    requests.prove_savings(&mut diagnosis.verdict, &baseline, &case.settings.conf);
    for finding in &mut diagnosis.findings {
        if finding.code == FindingCode::OutOfMemory {
            finding.remedies.clone_from(&diagnosis.verdict.remedies);
        }
    }
}

/// Returns why a file has no device, given its findings.
pub(super) fn no_device<'a>(mut codes: impl Iterator<Item = &'a str>) -> &'static str {
    if codes.any(|code| code == FindingCode::Truncated.name()) {
        "No device: the file ends before the first one."
    } else {
        "No device: the program had allocated nothing when the snapshot was taken."
    }
}

/// Takes the findings about settings that all of several devices share: they concern the file.
fn of_all(devices: &mut [DiagnosisReport]) -> Vec<FindingReport> {
    let Some((first, others)) = devices.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Vec::new();
    };
    let is_shared = |finding: &FindingReport| {
        let has = |device: &DiagnosisReport| device.findings.iter().any(|other| other.message == finding.message);
        finding.code == FindingCode::IneffectiveSetting.name() && others.iter().all(has)
    };
    let shared: Vec<_> = first.findings.iter().filter(|finding| is_shared(finding)).cloned().collect();
    for device in devices {
        device.findings.retain(|finding| shared.iter().all(|other| other.message != finding.message));
    }
    // The event is another one on each device.
    shared.into_iter().map(|finding| FindingReport { event: None, ..finding }).collect()
}

/// Returns a message about a device without the device's number, which is written above it.
fn without_device(device: i64, message: &str) -> String {
    let Some(rest) = message.strip_prefix(&format!("Device {device}: ")) else { return message.to_owned() };
    let mut letters = rest.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A diagnosis in brief: what happened, where, what held the memory, and what to do first.
#[derive(Debug)]
pub struct Brief<'a>(&'a FileDiagnosis);

impl FileDiagnosis {
    /// Returns the diagnosis in brief, as text.
    pub fn brief(&self) -> Brief<'_> {
        Brief(self)
    }

    /// Returns the command that prints all of the diagnosis.
    fn verbose_command(&self) -> String {
        let failure = self.failure.map_or_else(String::new, |number| format!(" --failure {number}"));
        format!("vramscope doctor -v{failure} {}", quoted(&self.path))
    }
}

impl fmt::Display for Brief<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write_head(f)?;
        for device in &self.0.devices {
            device.brief().lines().try_for_each(|line| writeln!(f, "  {line}"))?;
            device.write_left(f, &self.0.verbose_command())?;
        }
        Ok(())
    }
}

impl DiagnosisReport {
    /// Returns what happened, where, what held the memory, and what to do first, in a few lines. Without a failed request, the
    /// worst findings are what happened.
    pub fn brief(&self) -> String {
        self.text(BRIEF_LINES)
    }

    /// Returns the same without the lines that held the memory, for where they follow.
    pub fn headline(&self) -> String {
        self.text(0)
    }

    fn text(&self, lines: usize) -> String {
        let mut out = String::new();
        // Writing to a string can't fail.
        let _ = self.write_brief(&mut out, lines);
        out
    }

    fn write_brief(&self, f: &mut dyn fmt::Write, lines: usize) -> fmt::Result {
        let Self { device, verdict, .. } = self;
        match self.failure() {
            Some(failed) => {
                writeln!(f, "{}", verdict.headline)?;
                let line = match failed.line.as_str() {
                    "" => self.unrecorded(),
                    line => format!("at {}", line_in_sentence(line)),
                };
                let event = Count(u64::from(failed.event));
                let others = match verdict.failure.filter(|_| self.failed > 1) {
                    Some(number) => format!(", failure {} of {}", Count(number.into()), Count(self.failed.into())),
                    None => String::new(),
                };
                writeln!(f, "  requested {line}, event {event} of device {device}{others}")?;
                for held in failed.lines.iter().take(lines) {
                    let row = (self.with_call(&held.line), held.bytes);
                    write_row(f, row, failed.allocated, self.inner_lines.as_ref().filter(|of| of.line == held.line))?;
                }
            }
            None => {
                let said = if verdict.headline.is_empty() { &verdict.sentence } else { &verdict.headline };
                writeln!(f, "Device {device}: {said}")?;
                let cause = self.cause();
                if let (Some(line), Some(_)) = (&verdict.line, cause) {
                    writeln!(f, "  at {}", line_in_sentence(line))?;
                }
                for finding in self.said().filter(|finding| Some(*finding) != cause).take(BRIEF_FINDINGS) {
                    writeln!(f, "  ! {}", without_device(*device, &finding.message))?;
                }
            }
        }
        write_remedies(f, "  ", self.first_remedy(), &mut Vec::new())
    }

    /// Returns where a request without a stack was made, as far as that is known, for a sentence.
    fn unrecorded(&self) -> String {
        match &self.unrecorded_call {
            Some(call) => format!("in the backward pass of {}, most likely", line_in_sentence(call)),
            None => "at a line that was not recorded".to_owned(),
        }
    }

    /// Returns the label of a line, for a table; that of what has no stack with where it was called, as far as that is known.
    pub(super) fn with_call<'a>(&self, label: &'a str) -> Cow<'a, str> {
        match self.unrecorded_call.as_ref().filter(|_| label == NO_STACK) {
            Some(call) => format!("{label}, most likely the backward pass of {}", line_in_sentence(call)).into(),
            None => label.into(),
        }
    }

    /// Returns the finding that the verdict tells, if no request failed.
    fn cause(&self) -> Option<&FindingReport> {
        self.findings.iter().find(|finding| finding.is_of_verdict)
    }

    /// Returns what to do first: for the verdict, or for the first finding, if the verdict has no advice.
    fn first_remedy(&self) -> &[Remedy] {
        let of_verdict = self.verdict.remedies.get(..1);
        let of_finding = || self.said().find_map(|finding| finding.remedies.get(..1));
        of_verdict.or_else(of_finding).unwrap_or_default()
    }

    /// Returns the findings that are not told by the verdict.
    fn said(&self) -> impl Iterator<Item = &FindingReport> {
        self.findings.iter().filter(|finding| finding.code != FindingCode::OutOfMemory.name())
    }

    /// Writes what was searched for if nothing was found, and how many findings and remedies the brief form leaves out, which `command`
    /// prints.
    fn write_left(&self, f: &mut dyn fmt::Write, command: &str) -> fmt::Result {
        self.write_looked_for(f)?;
        let told = if self.failure().is_some() { 0 } else { BRIEF_FINDINGS + usize::from(self.cause().is_some()) };
        let left: Vec<String> = [
            (self.said().skip(told).count(), "finding", "findings"),
            (self.verdict.remedies.len().saturating_sub(1), "piece of advice", "pieces of advice"),
        ]
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, many)| {
            let more = |noun: &str| format!("more {noun}");
            counted_as(count as u64, &more(one), &more(many))
        })
        .collect();
        if !left.is_empty() {
            writeln!(f, "    {}: {command}", left.join(" and "))?;
        }
        Ok(())
    }
}

/// Writes a line of code with the bytes that it held, their share of the whole, and a bar; below it, what it called.
pub(super) fn write_row(
    f: &mut dyn fmt::Write,
    (line, bytes): (Cow<'_, str>, u64),
    whole: u64,
    inner: Option<&InnerLinesReport>,
) -> fmt::Result {
    let called = inner.into_iter().flat_map(|inner| &inner.lines);
    let called = called.map(|held| (format!("└ {}", held.line).into(), held.bytes));
    for (line, bytes) in [(line, bytes)].into_iter().chain(called) {
        let share = share(bytes, whole);
        writeln!(f, "  {:>8}  {:>5}  {:<BAR$}  {line}", Bytes(bytes), share.0, share.1)?;
    }
    Ok(())
}

/// Returns a share as a number and as a bar.
fn share(part: u64, whole: u64) -> (String, String) {
    let share = part as f64 / whole.max(1) as f64;
    // Casts of floating point saturate.
    let cells = (share * BAR as f64).round() as usize;
    let percent = if part > 0 && share < 0.005 { "< 1 %".to_owned() } else { format!("{:.0} %", share * 100.0) };
    (percent, "█".repeat(cells.min(BAR)))
}

/// Writes what to try, unless it was written before.
fn write_remedies<'a>(
    f: &mut dyn fmt::Write,
    indent: &str,
    remedies: &'a [Remedy],
    written: &mut Vec<&'a Remedy>,
) -> fmt::Result {
    for remedy in remedies {
        if written.iter().any(|other| other.is_same(remedy)) {
            continue;
        }
        written.push(remedy);
        writeln!(f, "{indent}{}: {}", remedy.mark(), remedy.text)?;
        if !remedy.copy.is_empty() {
            writeln!(f, "{indent}  {}", remedy.copy)?;
        }
    }
    Ok(())
}

impl FileDiagnosis {
    /// Writes the file's name and what is wrong with it.
    fn write_head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", Escaped(&self.path))?;
        for finding in &self.findings {
            writeln!(f, "  ! {}", finding.message)?;
        }
        if self.devices.is_empty() {
            writeln!(f, "  {}", no_device(self.findings.iter().map(|finding| finding.code)))?;
        }
        Ok(())
    }
}

impl fmt::Display for FileDiagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_head(f)?;
        self.devices.iter().try_for_each(|device| write!(f, "{device}"))
    }
}

impl DiagnosisReport {
    /// Returns the failure that the verdict is about.
    fn failure(&self) -> Option<&OomReport> {
        self.ooms.iter().find(|failed| Some(failed.event) == self.verdict.event)
    }

    /// Writes why each request failed, if several did, those in a row that are alike together.
    fn write_failures(&self, f: &mut dyn fmt::Write) -> fmt::Result {
        if self.ooms.len() < 2 {
            return Ok(());
        }
        let failed = counted(self.failed.into(), "request");
        writeln!(f, "    {failed} failed (--failure N tells more of one):")?;
        let is_alike = |a: &OomReport, b: &OomReport| {
            (a.cause, a.requested, &a.line, a.number + 1) == (b.cause, b.requested, &b.line, b.number)
        };
        for alike in self.ooms.chunk_by(is_alike) {
            let [OomReport { number: first, event, cause, requested, line, .. }, ..] = alike else { continue };
            let last = alike.last().map_or(*first, |last| last.number);
            let numbers = if *first == last { first.to_string() } else { format!("{first} to {last}") };
            let line = if line.is_empty() { NO_STACK } else { line };
            let (event, cause) = (format!("event {}", Count(u64::from(*event))), cause.replace('_', " "));
            let requested = Bytes(*requested).to_string();
            writeln!(f, "    {numbers:>10}  {event:<15} {requested:>8} asked, {cause}  {line}")?;
        }
        let left = u64::from(self.failed).saturating_sub(self.ooms.len() as u64);
        if left > 0 {
            writeln!(f, "    {:>10}  and {} more", "", Count(left))?;
        }
        Ok(())
    }

    /// Writes what was looked for, if no finding is about the memory.
    fn write_looked_for(&self, f: &mut dyn fmt::Write) -> fmt::Result {
        if self.findings.iter().any(|finding| !HISTORY.contains(&finding.code)) {
            return Ok(());
        }
        let more = if self.findings.is_empty() { "" } else { "else " };
        writeln!(f, "    Nothing {more}found. Looked for {}.", self.looked_for)
    }
}

impl fmt::Display for DiagnosisReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  Device {}: {}", self.device, self.verdict.sentence)?;
        if let Some(failed) = self.failure() {
            let event = Count(u64::from(failed.event));
            writeln!(f, "    At event {event}: {}", failed.message)?;
            for held in failed.lines.iter().take(LINES) {
                let count = Count(held.count.into());
                writeln!(f, "    {:>10} {count:>9} ×  {}", Bytes(held.bytes), held.line)?;
            }
            // A single row of unknown use is left out.
            if failed.categories.iter().any(|of| of.category != Category::Unknown.code()) {
                writeln!(f, "    used for (guessed): {}", CategoryReport::list(&failed.categories))?;
            }
            self.write_failures(f)?;
        }
        let mut written = Vec::new();
        write_remedies(f, "    ", &self.verdict.remedies, &mut written)?;
        for finding in self.said() {
            writeln!(f, "    ! {}", without_device(self.device, &finding.message))?;
            // The verdict has the remedies for its own cause.
            let is_said =
                !self.verdict.remedies.is_empty() && FindingCode::CAUSES.iter().any(|code| code.name() == finding.code);
            let first = finding.remedies.get(..1).filter(|_| !is_said);
            write_remedies(f, "    ", first.unwrap_or_default(), &mut written)?;
        }
        self.write_looked_for(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use format::import::{Encoding, Format};

    /// Returns the diagnosis of a file whose devices have these events.
    fn diagnosed(devices: &[&str], conf: &str, threshold: f64) -> FileDiagnosis {
        FileDiagnosis::new("a.pickle".to_owned(), imported(devices, conf, threshold))
    }

    fn imported(devices: &[&str], conf: &str, threshold: f64) -> Imported {
        let mut all = trace::testing::snapshot(devices.first().copied().unwrap_or_default());
        for (lines, number) in devices.iter().zip(0..).skip(1) {
            // The same symbols and tags: the lines differ in sizes only.
            let mut device = trace::testing::snapshot(lines).devices.remove(0);
            device.device = number;
            all.devices.push(device);
        }
        all.settings.conf = conf.to_owned();
        all.settings.garbage_collection_threshold = threshold;
        let format = Format { encoding: Encoding::Pickle, compression: None };
        Imported { format, protocol: None, snapshot: all, findings: Vec::new(), header: None }
    }

    const PLAIN: &str = "segment_alloc 0x1000000 20971520\nalloc 0x1000000 1000";

    #[test]
    fn a_setting_is_found_once_for_all_devices() {
        let codes = |findings: &[FindingReport]| findings.iter().map(|finding| finding.code).collect::<Vec<_>>();
        let own = [FindingCode::IneffectiveSetting.name()];
        let shared = diagnosed(&[PLAIN, PLAIN], "garbage_collection_threshold:0.8", 0.8);
        assert_eq!(codes(&shared.findings), own);
        assert!(shared.devices.iter().all(|device| device.findings.is_empty()));
        let text = shared.to_string();
        assert_eq!(text.matches("garbage_collection_threshold").count(), 1, "{text}");
        // Of one device, or of one of two.
        let alone = diagnosed(&[PLAIN], "garbage_collection_threshold:0.8", 0.8);
        assert_eq!((codes(&alone.findings), codes(&alone.devices[0].findings)), (vec![], own.to_vec()));
        // Two sentences that differ stay with their devices.
        let more = format!("{PLAIN}\nsegment_alloc 0x4000000 20971520");
        let differ = diagnosed(&[PLAIN, &more], "expandable_segments:True", 0.0);
        assert_eq!(codes(&differ.findings), [""; 0]);
        assert!(differ.devices.iter().all(|device| codes(&device.findings) == own));
    }

    #[test]
    fn nothing_found_says_what_was_looked_for() {
        let cases = [
            (PLAIN, "Nothing found. Looked for leaks, growth, "),
            ("", "Nothing found. Looked for segments pinned by small blocks, rounding."),
        ];
        for (lines, want) in cases {
            let text = diagnosed(&[lines], "", 0.0).to_string();
            assert!(text.contains(want), "{text}");
        }
    }

    #[test]
    fn without_a_live_tensor_nothing_is_used_for_anything() {
        let text = |lines: &str| diagnosed(&[lines], "", 0.0).to_string();
        assert!(!text("segment_alloc 0x1000000 20971520\noom 0 33554432").contains("used for (guessed)"));
        assert!(
            !text("segment_alloc 0x1000000 20971520\nalloc 0x1000000 1000\noom 0 33554432")
                .contains("used for (guessed)"),
            "unknown, all of it"
        );
        let module = "convert@/v/site-packages/torch/nn/modules/module.py:1 main@t.py:1";
        let lines = format!("segment_alloc 0x1000000 20971520\nalloc 0x1000000 1000 {module}\noom 0 33554432");
        assert!(text(&lines).contains("used for (guessed): parameters"), "{}", text(&lines));
    }

    #[test]
    fn a_diagnosis_in_brief_is_a_few_lines() {
        let story = "segment_alloc 0x1000000 20971520
            alloc 0x1000000 15728640 keep@/m/cache.py:7
            alloc 0x1f00000 4194304 forward@/m/model.py:5
            alloc 0x2300000 512 step@/m/train.py:1
            oom 0 33554432 forward@/m/model.py:5";
        let found = diagnosed(&[story], "", 0.0);
        let text = found.brief().to_string();
        let lines: Vec<&str> = text.lines().collect();
        let want = [
            "a.pickle",
            "  Full: 32.0 MiB asked, ",
            "    requested at m/model.py:5 (forward), event 5 of device 0",
            "    15.0 MiB   79 %  ████████    keep  m/cache.py:7",
            "    4.00 MiB   21 %  ██          forward  m/model.py:5",
            "       512 B  < 1 %              step  m/train.py:1",
            "    help: ",
        ];
        for (line, want) in lines.iter().zip(want) {
            assert!(line.starts_with(want), "{text}");
        }
        assert!(
            lines.len() <= want.len() + 2
                && lines.last().is_some_and(|line| line.ends_with(": vramscope doctor -v a.pickle")),
            "{text}"
        );
        assert!(found.to_string().lines().count() > lines.len(), "the rest is not lost");
        // Without a failure, the findings are what there is to say.
        let quiet = diagnosed(&[PLAIN], "", 0.0).brief().to_string();
        assert!(
            quiet.contains("  Device 0: No request failed") && quiet.contains("Nothing found. Looked for "),
            "{quiet}"
        );
    }

    #[test]
    fn each_failure_has_a_verdict_of_its_own() {
        let story = "segment_alloc 0x1000000 20971520
            alloc 0x1000000 15728640 keep@/m/cache.py:7
            oom 0 33554432 forward@/m/model.py:5
            oom 0 33554432 forward@/m/model.py:5
            free 0x1000000
            oom 0 67108864 backward@/m/model.py:9";
        let verdict = |failure| {
            let found = FileDiagnosis::with(String::new(), imported(&[story], "", 0.0), OwnRules::default(), failure);
            let [device] = found.devices.as_slice() else { panic!("{found:?}") };
            let finding = device.findings.iter().find(|finding| finding.code == FindingCode::OutOfMemory.name());
            assert_eq!(finding.and_then(|finding| finding.event), device.verdict.event);
            let text = found.to_string();
            assert!(text.contains("3 requests failed (--failure N tells more of one):"), "{text}");
            assert!(text.contains("1 to 2  event 3         32.0 MiB asked, full  forward  m/model.py:5"), "{text}");
            assert!(text.contains("     3  event 7         64.0 MiB asked, full  backward  m/model.py:9"), "{text}");
            (device.verdict.failure, device.verdict.event, found.brief().to_string())
        };
        for (failure, number, event, line, held) in [
            (Some(1), 1, 3, "m/model.py:5 (forward), event 3 of device 0, failure 1 of 3", true),
            (Some(3), 3, 7, "m/model.py:9 (backward), event 7 of device 0, failure 3 of 3", false),
            (None, 3, 7, "m/model.py:9 (backward), event 7 of device 0, failure 3 of 3", false),
            (Some(9), 3, 7, "failure 3 of 3", false),
        ] {
            let told = verdict(failure);
            assert_eq!((told.0, told.1), (Some(number), Some(event)), "{}", told.2);
            assert!(told.2.contains(line) && told.2.contains("cache.py") == held, "{}", told.2);
        }
    }

    #[test]
    fn a_device_is_named_once() {
        assert_eq!(without_device(1, "Device 1: the trace and more."), "The trace and more.");
        assert_eq!(without_device(1, "Device 0: the trace."), "Device 0: the trace.");
        assert_eq!(without_device(1, "Device 1: "), "");
    }

    #[test]
    fn a_remedy_is_written_once() {
        let text = diagnosed(&["segment_alloc 0x1000000 20971520\nalloc 0x1000000 20971520\noom 0 2097152"], "", 0.0);
        let text = text.to_string();
        let tries: Vec<&str> = text.lines().filter(|line| line.contains("help: ")).collect();
        assert!(!tries.is_empty() && tries.iter().all(|line| text.matches(line).count() == 1), "{text}");
    }
}
