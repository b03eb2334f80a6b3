//! The rules that tell categories, and what they decided at the peak.

use super::Answering;
use crate::caches::Caches;
use crate::context::Context;
use crate::states::States;
use analysis::category::{Category, Rule};
use query::{CategoryRule, CategoryRules, CategoryRulesQuery, DeviceSummary, Sealed};
use trace::totals::Amount;

impl Answering for CategoryRulesQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<Sealed<CategoryRules>, String> {
        let Some(categories) = context.categories else { return Ok(Sealed::new(&CategoryRules::default())) };
        let peak = caches.of::<States>().at(context.replay, context.summary.peak_position);
        let own = context.category_rules.rules();
        let mut sums = vec![Amount::default(); own.len() + Rule::ALL.len()];
        let (mut total, mut unknown) = (Amount::default(), Amount::default());
        for &id in &peak.active {
            let bytes = context.replay.allocations.requested.get(id as usize).unwrap_or(0);
            let place = match categories.rule(id) {
                Ok(rule) => own.len() + rule as usize,
                Err(number) => number,
            };
            sums.get_mut(place).into_iter().chain([&mut total]).for_each(|sum| sum.add(bytes));
            if categories.get(id) == Category::Unknown {
                unknown.add(bytes);
            }
        }
        let of_user = own.iter().map(|rule| CategoryRule {
            name: rule.part.clone(),
            matches: "A frame of its stack has this in its function, its file or its line.".to_owned(),
            category: rule.category,
            is_own: true,
            at_peak: Amount::default(),
        });
        let built_in = Rule::ALL.into_iter().map(|rule| CategoryRule {
            name: rule.name().to_owned(),
            matches: rule.reason().to_owned(),
            category: rule.category(),
            is_own: false,
            at_peak: Amount::default(),
        });
        let rules = of_user.chain(built_in).zip(sums).map(|(rule, at_peak)| CategoryRule { at_peak, ..rule });
        Ok(Sealed::new(&CategoryRules { rules: rules.collect(), total, unknown }))
    }

    fn examples(_: &DeviceSummary) -> Vec<Self> {
        vec![Self]
    }
}

#[cfg(test)]
mod tests {
    use crate::Session;
    use query::own_rules::UserRules;
    use query::{Answer, CategoryRules, CategoryRulesQuery, FlameBox, FlameQuery, Query};

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
