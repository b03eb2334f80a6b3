//! The findings tab: problems of the file or the run, the largest call sites at the peak, and facts about the file.

mod facts;
mod sites;

use facts::{file_facts, settings_table};
use query::diagnosis::Cause;
use query::finding::{Evidence, Finding, FindingCode, Remedy, Severity};
use sites::LineList;
use trace::order::SortFew;
use yew::prelude::*;

use super::description::Description;
use crate::hooks::{ModelHandle, use_model_of};
use crate::model::{Action, Model, Parts, Selection};
use crate::views::controls::use_first_picture;
use crate::views::verdict::{VerdictSection, remedies};
use crate::widgets::brief::Brief;
use crate::widgets::empty::empty;
use crate::widgets::format::{counted, unbroken};

/// Returns the class, the name and the picture of a severity.
const fn look(severity: Severity) -> (&'static str, &'static str, &'static str) {
    match severity {
        Severity::Failure => ("is-failure", "Failure", "M3 1V15M3 2H13L10.5 5.5 13 9H3"),
        Severity::Warning => ("is-warning", "Warning", "M8 2 15 14H1ZM8 6.5V10M8 11.5V12.5"),
        Severity::Note => ("is-note", "Note", "M8 1.5A6.5 6.5 0 1 1 7.99 1.5ZM8 7V12M8 4.5V5.5"),
    }
}

/// Returns the findings of the file and of its devices by severity, in the order in which they were found within each.
fn ordered(model: &Model) -> Vec<&Finding> {
    let known = model.file().map_or(&[][..], |file| &file.diagnoses);
    // The diagnosis of a failure has more than the summary's finding.
    let is_diagnosed = |finding: &&Finding| {
        finding.code == FindingCode::OutOfMemory
            && known.iter().flatten().any(|diagnosis| finding.device == Some(diagnosis.device))
    };
    let of_file = model.shared_summary().map_or(&[][..], |summary| &summary.findings);
    let mut findings: Vec<&Finding> = of_file.iter().filter(|finding| !is_diagnosed(finding)).collect();
    findings.extend(known.iter().flatten().flat_map(|diagnosis| &diagnosis.findings));
    findings.sort_few_by_key(|finding| finding.severity);
    findings
}

/// Returns the findings that the verdict on the current device does not tell.
pub fn untold(model: &Model) -> Vec<&Finding> {
    let mut findings = ordered(model);
    if let Some(diagnosis) = model.diagnosis() {
        let (verdict, device) = (&diagnosis.verdict, Some(diagnosis.device));
        let line = verdict.stack.map(Evidence::Site);
        findings.retain(|finding| {
            let is_told = match finding.code {
                FindingCode::OutOfMemory => verdict.position.is_some(),
                FindingCode::Fragmentation => verdict.cause == Cause::Fragmented,
                FindingCode::Leak => verdict.cause == Cause::Leak && finding.evidence == line,
                _ => false,
            };
            !is_told || finding.device != device
        });
    }
    findings
}

/// Renders a finding: severity, message, what to try, and a button that shows the evidence.
/// A brief one ends at a sentence, and a button unfolds it.
pub fn finding_row(model: &ModelHandle, finding: &Finding, is_brief: bool) -> Html {
    let (class, name, shape) = look(finding.severity);
    // Each piece of advice is given once, and that on a cause with the verdict.
    let diagnosis =
        model.diagnosis().filter(|diagnosis| finding.device.is_none_or(|device| device == diagnosis.device));
    let verdict = diagnosis.map_or(&[][..], |diagnosis| &diagnosis.verdict.remedies);
    let is_said = |remedy: &&Remedy| verdict.iter().any(|said| said.is_same(remedy));
    let is_cause = FindingCode::CAUSES.contains(&finding.code) && !verdict.is_empty();
    let tries = finding.remedies.iter().filter(|remedy| !is_cause && !is_said(remedy));
    html! {
        <li class={classes!("finding", class)} data-testid="finding" data-code={finding.code.name()}>
            <svg class="finding-glyph" viewBox="0 0 16 16" width="16" height="16" role="img" aria-label={name}>
                <path d={shape} />
            </svg>
            <div class="finding-text">
                if is_brief {
                    <Brief text={unbroken(&finding.message)} />
                } else {
                    <p>{ unbroken(&finding.message) }</p>
                }
                { remedies(tries, None) }
            </div>
            if finding.position.is_some() || finding.evidence.is_some() {
                <button type="button" class="act" onclick={show(model, finding)} title="Show the evidence" data-testid="finding-show">{ "Show" }</button>
            }
        </li>
    }
}

/// Returns what shows the evidence of a finding.
fn show(model: &ModelHandle, finding: &Finding) -> Callback<MouseEvent> {
    let device = finding.device.and_then(|number| {
        let index = model.shared_summary()?.devices.iter().position(|device| device.device == number)?;
        u32::try_from(index).ok()
    });
    let (model, position, evidence) = (model.clone(), finding.position, finding.evidence);
    Callback::from(move |_: MouseEvent| {
        if let Some(device) = device.filter(|device| *device != model.now().view.device) {
            model.dispatch(Action::SetDevice(device));
        }
        match (evidence, position) {
            (Some(Evidence::Window(first, last)), _) => model.dispatch(Action::ShowPositions(first, last)),
            (Some(Evidence::Segment(address)), Some(position)) => {
                model.dispatch(Action::ShowSegment { position, address });
            }
            (_, Some(position)) => model.dispatch(Action::ShowPosition(position)),
            (_, None) => {}
        }
        match evidence {
            Some(Evidence::Site(stack)) => model.dispatch(Action::Select(Selection::Line(stack))),
            Some(Evidence::Allocation(id)) => model.dispatch(Action::Select(Selection::Allocation(id))),
            _ => {}
        }
    })
}

const FILE_QUIET: &str = "No problems found: history is complete and consistent.";
const PART_QUIET: &str = "No problems found in what was recorded. What is missing may have had some.";
const LIVE_QUIET: &str = "No problems so far: no events were lost and no request failed.";

/// Returns what is said where nothing was found: of a part of a history, not that there was nothing.
fn quiet(model: &Model) -> &'static str {
    match model.live() {
        Some(_) => LIVE_QUIET,
        None if model.is_partial() => PART_QUIET,
        None => FILE_QUIET,
    }
}

/// What a screen reader hears of the findings.
pub const DESCRIPTION: Description =
    Description { question: |_, _| None, text: |model, _| format!("{}. ", counted(count(model) as u64, "finding")) };

/// Returns the number of problems that the tab tells: the verdict's is one.
pub fn count(model: &Model) -> usize {
    let untold = untold(model).len();
    untold + usize::from(untold < ordered(model).len())
}

/// The findings tab.
#[component]
pub fn Findings() -> Html {
    let model = use_model_of(Parts::REST);
    // The summary has everything: nothing to wait for.
    use_first_picture(&model, true);
    let Some(summary) = model.summary() else { return html! {} };
    let findings = untold(&model);
    let is_some_told = findings.len() < ordered(&model).len();
    html! {
        <div class="findings-page" data-testid="findings">
            <VerdictSection />
            <section aria-label="Findings">
                <h2>{ "Findings" }</h2>
                if let Some(part) = model.live().and_then(|live| live.latest(&summary)) {
                    <p class="quiet" data-testid="findings-part">{ format!("Based on {part}. Older events are not loaded.") }</p>
                }
                if let Some(diagnosis) = model.diagnosis() {
                    <p class="quiet" data-testid="looked-for">{ format!("Looked for {}.", diagnosis.looked_for) }</p>
                }
                if findings.is_empty() {
                    <p class="quiet">{ if is_some_told { "Nothing else was found." } else { quiet(&model) } }</p>
                } else {
                    <ul class="findings">
                        { for findings.iter().map(|finding| finding_row(&model, finding, false)) }
                    </ul>
                }
            </section>
            if summary.devices.is_empty() {
                { empty("This file contains no device memory, so there is nothing to draw.",
                    "It was written before anything was recorded, or it was cut short. To record a snapshot:", true) }
            }
            <LineList />
            { file_facts(&model) }
            { settings_table(&summary) }
        </div>
    }
}

#[cfg(test)]
mod tests {
    use query::Summary;
    use query::diagnosis::{Diagnosis, Verdict};

    use super::*;
    use crate::model::{FileKey, Shared, update};

    #[test]
    fn the_worst_findings_of_file_and_devices_come_first() {
        let mut summary: Summary = (*crate::model::testing::summary(&[5])).clone();
        summary.findings = vec![Finding::new(FindingCode::NotShown, "a"), Finding::new(FindingCode::RingOverflow, "b")];
        let key = FileKey(1);
        let found = vec![Finding::new(FindingCode::OutOfMemory, "c"), Finding::new(FindingCode::Rounding, "d")];
        let diagnosis = Shared::new(Diagnosis { findings: found, ..Diagnosis::default() });
        let model = [
            Action::FileAdded { key, name: "a.pickle".to_owned(), size: 1 },
            Action::FileLoaded { key, summary: Shared::new(summary) },
            Action::Diagnosed { key, device: 0, diagnosis, revision: 0 },
        ]
        .into_iter()
        .fold(Model::default(), |model, action| update(&model, action));
        let order: Vec<String> = ordered(&model).into_iter().map(|finding| finding.message.clone()).collect();
        assert_eq!(order, ["c", "b", "d", "a"]);
    }

    #[test]
    fn what_the_verdict_tells_is_not_told_again() {
        let key = FileKey(1);
        let on = |device, code| Finding::new(code, code.name().to_owned()).on_device(device);
        let leak = |stack| Finding { evidence: Some(Evidence::Site(stack)), ..on(0, FindingCode::Leak) };
        let check = |verdict: Verdict, told: &[usize]| {
            let findings = vec![
                on(0, FindingCode::OutOfMemory),
                on(1, FindingCode::OutOfMemory),
                on(0, FindingCode::Fragmentation),
                leak(7),
                leak(8),
            ];
            let left =
                (0..findings.len()).filter(|i| !told.contains(i)).map(|i| findings[i].clone()).collect::<Vec<_>>();
            let diagnosis = Shared::new(Diagnosis { verdict, findings: findings.clone(), ..Diagnosis::default() });
            let model = [
                Action::FileAdded { key, name: "a.pickle".to_owned(), size: 1 },
                Action::FileLoaded { key, summary: crate::model::testing::summary(&[5]) },
                Action::Diagnosed { key, device: 0, diagnosis, revision: 0 },
            ]
            .into_iter()
            .fold(Model::default(), |model, action| update(&model, action));
            let mut found = untold(&model);
            found.sort_by_key(|finding| findings.iter().position(|other| other == *finding));
            assert_eq!(found, left.iter().collect::<Vec<_>>());
            assert_eq!(count(&model), left.len() + usize::from(!told.is_empty()), "the verdict is one");
        };
        let at = |cause| Verdict { cause, position: Some(3), stack: Some(7), ..Verdict::default() };
        check(Verdict::default(), &[]);
        check(at(Cause::Full), &[0]);
        check(at(Cause::Fragmented), &[0, 2]);
        check(at(Cause::Leak), &[0, 3]);
        check(Verdict { position: None, ..at(Cause::Leak) }, &[3]);
    }
}
