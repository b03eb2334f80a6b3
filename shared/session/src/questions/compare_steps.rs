//! One step over another, line by line.

use super::Answering;
use crate::caches::Caches;
use crate::categories::CategoryCache;
use crate::context::Context;
use crate::states::States;
use analysis::step_memory::StepSums;
use analysis::steps::TrainingStep;
use query::{CompareStepsQuery, ComparedLine, ComparedStep, DeviceSummary, StepComparison, StepMemory, step_growth};
use trace::frames::StackId;
use trace::limits::LINE_ROWS;
use trace::order::SortFew;

impl Answering for CompareStepsQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<Box<StepComparison>, String> {
        let Some(found) = caches.of::<CategoryCache>().known_steps(context) else {
            return Err("Nothing in this trace repeats, so it has no steps.".to_owned());
        };
        let step = |index: u32| found.steps.get(index as usize).copied();
        let (Some(earlier), Some(later)) = (step(self.earlier), step(self.later)) else {
            return Err("This trace has no such step.".to_owned());
        };
        let sites = context.sites;
        let mut sums = |step: &TrainingStep| {
            let before = caches.of::<States>().at(context.replay, step.from);
            StepSums::build(context.replayed(), before.active.iter().copied(), step, |stack| sites.first(stack))
        };
        let (before, after) = (sums(&earlier), sums(&later));
        let mut stacks: Vec<StackId> = before.lines.keys().chain(after.lines.keys()).copied().collect();
        stacks.sort_unstable();
        stacks.dedup();
        let of = |sums: &StepSums<StackId>, stack: &StackId| sums.lines.get(stack).copied().unwrap_or_default();
        let mut lines: Vec<(StackId, StepMemory, StepMemory)> =
            stacks.iter().map(|stack| (*stack, of(&before, stack), of(&after, stack))).collect();
        lines.retain(|(_, earlier, later)| earlier.peak > 0 || later.peak > 0);
        let growth =
            |(_, earlier, later): &(StackId, StepMemory, StepMemory)| step_growth(earlier, later, self.by_peak);
        lines.sort_few_by(|a, b| {
            let by_size = growth(b).cmp(&growth(a)).then(b.2.bytes(self.by_peak).cmp(&a.2.bytes(self.by_peak)));
            by_size.then_with(|| sites.label(a.0).cmp(sites.label(b.0))).then(a.0.cmp(&b.0))
        });
        let others = lines.split_off(lines.len().min(self.rows as usize).min(LINE_ROWS));
        let mut rest = (StepMemory::default(), StepMemory::default());
        for (_, earlier, later) in &others {
            rest.0.plus(*earlier);
            rest.1.plus(*later);
        }
        let line = |(stack, earlier, later): &(StackId, StepMemory, StepMemory)| ComparedLine {
            stack: stack.0,
            label: sites.label(*stack).to_owned(),
            paint: sites.paint(*stack),
            earlier: *earlier,
            later: *later,
        };
        let facts = |step: TrainingStep, sums: &StepSums<StackId>| ComparedStep {
            number: step.number,
            from: step.from,
            to: step.to,
            is_whole: step.is_whole,
            memory: sums.all,
            peak_position: sums.peak_position,
        };
        Ok(Box::new(StepComparison {
            query: *self,
            source: found.source.to_string(),
            count: u32::try_from(found.steps.len()).unwrap_or(u32::MAX),
            earlier: facts(earlier, &before),
            later: facts(later, &after),
            lines: lines.iter().map(line).collect(),
            others: others.len() as u32,
            rest,
        }))
    }

    fn examples(_: &DeviceSummary) -> Vec<Self> {
        let pairs = [(0, 1), (1, 0), (0, u32::MAX)];
        let of = |(earlier, later)| [false, true].map(|by_peak| Self { earlier, later, by_peak, rows: 5 });
        pairs.into_iter().flat_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::Session;
    use query::own_rules::UserRules;
    use query::{
        Answer, CategoryRules, CategoryRulesQuery, CompareStepsQuery, ComparedLine, FlameBox, FlameQuery, Query,
        StateQuery, StepComparison, step_growth, step_mark,
    };

    const MIB: u64 = 1 << 20;

    /// Four steps. Each has an activation of twice its number in MiB, and keeps 1 MiB at `log`. What `early` made in the
    /// first is freed in the third, which makes what `late` keeps.
    fn open() -> Session {
        let mut lines = "segment_alloc 0x40000000 4294967296
            alloc 0x40000000 5242880 convert@/v/site-packages/torch/nn/modules/module.py:1 main@t.py:1"
            .to_owned();
        let mut add = |text: String| lines += &format!("\n{text}");
        for step in 1..=4_u64 {
            add(format!("alloc 0x50000000 {} forward@/m/model.py:7 main@t.py:5", 2 * step * MIB));
            add("alloc 0x60000000 5242880\nfree 0x50000000".to_owned());
            add(format!("alloc {} 1048576 log@/m/t.py:20", 0x7000_0000 + step * MIB));
            match step {
                1 => add("alloc 0x80000000 7340032 early@/m/t.py:21".to_owned()),
                3 => add("free 0x80000000\nalloc 0x90000000 3145728 late@/m/t.py:22".to_owned()),
                _ => {}
            }
            let optimizer = "step@/v/site-packages/torch/optim/adam.py:9 main@t.py:8";
            add(format!("alloc 0x61000000 1048576 {optimizer}\nfree 0x60000000\nfree 0x61000000"));
        }
        Session::new(trace::testing::snapshot(&lines), "pickle".to_owned(), Vec::new(), &mut |_| {})
    }

    fn compare(session: &mut Session, earlier: u32, later: u32, by_peak: bool, rows: u32) -> StepComparison {
        let query = Query::CompareSteps(CompareStepsQuery { earlier, later, by_peak, rows });
        match session.answer(0, &query) {
            Answer::CompareSteps(found) => *found,
            other => panic!("{other:?}"),
        }
    }

    /// The lines with the growth in MiB and the mark.
    fn lines(found: &StepComparison) -> Vec<String> {
        let row = |line: &ComparedLine| {
            let growth = step_growth(&line.earlier, &line.later, found.query.by_peak) / MIB as i64;
            let name = line.label.split("  ").next().unwrap_or_default();
            format!("{name} {growth} {}", step_mark(&line.earlier, &line.later).unwrap_or_default())
        };
        found.lines.iter().map(|line| row(line).trim_end().to_owned()).collect()
    }

    #[test]
    fn a_step_over_another_shows_what_grew() {
        let mut session = open();
        let found = compare(&mut session, 1, 3, false, 50);
        assert_eq!(
            (found.source.as_str(), found.count, found.earlier.number, found.later.number),
            ("from optimizer.step", 4, 2, 4)
        );
        // The optimizer's last call ends a step: the gradient is freed in the next one.
        let want = ["late 3 new", "log 2", "main 0", "no stack recorded 0", "main 0", "forward 0", "early -7 gone"];
        assert_eq!(lines(&found), want);
        let by_peak = compare(&mut session, 1, 3, true, 50);
        assert_eq!(lines(&by_peak)[..3], ["forward 4", "late 3 new", "log 2"]);
    }

    #[test]
    fn lines_and_rest_add_up_to_the_totals_of_the_states() {
        let mut session = open();
        for (earlier, later) in [(0, 1), (0, 3), (2, 3)] {
            let found = compare(&mut session, earlier, later, false, 2);
            let ends = |of: fn(&ComparedLine) -> u64, rest: u64| found.lines.iter().map(of).sum::<u64>() + rest;
            assert_eq!(ends(|line| line.earlier.end.bytes, found.rest.0.end.bytes), found.earlier.memory.end.bytes);
            assert_eq!(ends(|line| line.later.end.bytes, found.rest.1.end.bytes), found.later.memory.end.bytes);
            for step in [&found.earlier, &found.later] {
                for (position, bytes) in [(step.to, step.memory.end.bytes), (step.peak_position, step.memory.peak)] {
                    let Answer::State(state) = session.answer(0, &Query::State(StateQuery { position })) else {
                        panic!("no state")
                    };
                    assert_eq!(state.totals.requested, bytes);
                }
            }
        }
    }

    #[test]
    fn what_is_no_step_is_refused() {
        let refused =
            |session: &mut Session, query| matches!(session.answer(0, &Query::CompareSteps(query)), Answer::Refused(_));
        let query = CompareStepsQuery { earlier: 0, later: 99, by_peak: false, rows: 5 };
        assert!(refused(&mut open(), query));
        let mut bare =
            Session::new(trace::testing::snapshot("alloc 0x1000 512"), String::new(), Vec::new(), &mut |_| {});
        assert!(refused(&mut bare, CompareStepsQuery { later: 0, ..query }));
    }

    fn rules(session: &mut Session) -> CategoryRules {
        match session.answer(0, &Query::CategoryRules(CategoryRulesQuery)) {
            Answer::CategoryRules(found) => (*found).clone(),
            other => panic!("{other:?}"),
        }
    }

    /// What the rules with memory decided, in MiB.
    fn decided(found: &CategoryRules) -> Vec<(&str, &str, u64)> {
        let with_memory = found.rules.iter().filter(|rule| rule.at_peak.count > 0);
        with_memory.map(|rule| (rule.name.as_str(), rule.category.name(), rule.at_peak.bytes / MIB)).collect()
    }

    #[test]
    fn each_rule_of_categories_says_what_it_decided() {
        let mut session = open();
        let found = rules(&mut session);
        let sum: u64 = found.rules.iter().map(|rule| rule.at_peak.bytes).sum();
        assert_eq!((sum, found.total.bytes), (found.total.bytes, session.summary().devices[0].peak.requested));
        assert!(found.rules.iter().all(|rule| !rule.is_own && !rule.matches.is_empty()));
        // What `early` made stays longer than a batch does, and so does what `log` makes in each step: no workspace, for all its size.
        assert_eq!(found.unknown.bytes, 9 * MIB);
        // A rule of the user's own takes its bytes from the others, and is named first.
        session.set_category_rules("t.py:21 = KV cache\nt.py:99 = inputs\nmodel.py = unknown".parse().expect("rules"));
        let own = rules(&mut session);
        assert_eq!(decided(&own)[0], ("t.py:21", "KV cache", 7));
        assert!(own.rules[..3].iter().all(|rule| rule.is_own) && own.rules[1].at_peak.count == 0);
        let others = found.unknown.bytes - 7 * MIB;
        assert_eq!((own.total, own.unknown.bytes), (found.total, own.rules[2].at_peak.bytes + others));
        assert!(own.unknown.bytes > 0);
        session.set_category_rules(UserRules::default());
        assert_eq!(rules(&mut session), found);
    }

    fn flame(session: &mut Session, by_category: bool, since: Option<u32>, zoom: Vec<u32>) -> Vec<FlameBox> {
        let position = session.summary().devices[0].peak_position;
        let (width, filter, highlight) = (1_000.0, Vec::new(), None);
        let query = FlameQuery {
            position,
            since,
            bottom_up: false,
            folds: false,
            by_category,
            zoom,
            width,
            filter,
            highlight,
            ..FlameQuery::default()
        };
        match session.answer(0, &Query::Flame(query)) {
            Answer::Flame(flame) => flame.boxes.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_flame_graph_begins_with_categories() {
        let mut session = open();
        let plain = flame(&mut session, false, None, Vec::new());
        let boxes = flame(&mut session, true, None, Vec::new());
        assert_eq!((plain[0].bytes, plain[0].count), (boxes[0].bytes, boxes[0].count));
        let first: Vec<&FlameBox> = boxes.iter().filter(|of| of.depth == 1).collect();
        assert!(first.iter().all(|of| of.is_category() && !of.is_folded() && of.stack.is_none()));
        assert_eq!(first.iter().map(|of| of.bytes).sum::<u64>(), boxes[0].bytes);
        let mut sums: Vec<(String, u64)> = first.iter().map(|of| (of.name.clone(), of.bytes)).collect();
        let mut told: Vec<(String, u64)> = Vec::new();
        for rule in rules(&mut session).rules.iter().filter(|rule| rule.at_peak.bytes > 0) {
            match told.iter_mut().find(|(name, _)| name == rule.category.name()) {
                Some((_, bytes)) => *bytes += rule.at_peak.bytes,
                None => told.push((rule.category.name().to_owned(), rule.at_peak.bytes)),
            }
        }
        sums.sort();
        told.sort();
        assert_eq!(sums, told);
        // A category can be zoomed into, and growth has categories too.
        let largest = first[0];
        let zoomed = flame(&mut session, true, None, vec![largest.frame]);
        assert_eq!((zoomed[1].x0, zoomed[1].x1, zoomed[1].bytes), (0.0, 1.0, largest.bytes));
        let grown = flame(&mut session, true, Some(0), Vec::new());
        assert_eq!(grown[0].bytes, boxes[0].bytes);
        assert!(grown.iter().filter(|of| of.depth == 1).all(FlameBox::is_category));
    }
}
