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
