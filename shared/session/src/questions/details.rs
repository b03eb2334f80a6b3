//! The details of one allocation or one call site.

use super::Answering;
use crate::caches::Caches;
use crate::context::Context;
use crate::coverage::missing_of;
use crate::states::States;
use analysis::category::Rule;
use query::{AllocationDetail, AllocationQuery, DeviceSummary, SiteDetail, SiteQuery};
use replay::Allocation;
use trace::frames::{StackId, StackRecord, StrId};
use trace::order::SortFew;

/// The number of a site's active allocations that are listed.
const LARGEST: usize = 20;

impl Answering for AllocationQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<Box<AllocationDetail>, String> {
        let Some(a) = context.replay.allocations.get(self.id) else {
            return Err("This trace has no such allocation.".to_owned());
        };
        let tag = context.snapshot.tags.get(a.tag);
        let known = |position: u32| (position != Allocation::NEVER).then_some(position);
        let begin = (a.begin > 0).then_some(a.begin);
        let end = known(a.end);
        // An allocation freed before the trace and still pending has position 0, which no event leads to.
        let freed = known(a.freed).filter(|position| *position > 0);
        let said = |name: &str, text: StrId| {
            // Drawn as it is, in lines of its own.
            let text = context.symbols().unshown(text);
            (!text.is_empty() && text != "N/A").then(|| (name.to_owned(), text.into_owned()))
        };
        let contexts = [said("Compile context", tag.compile_context), said("User metadata", tag.user_metadata)];
        let category = context.categories.map(|categories| {
            let reason = match categories.rule(self.id) {
                Ok(Rule::Unknown) => match context.symbols().recorded(a.stack) {
                    StackRecord::Nothing => "no stack was recorded".to_owned(),
                    StackRecord::Lost | StackRecord::Partly => "names of its stack were lost to damage".to_owned(),
                    StackRecord::Whole => "no rule applies to it".to_owned(),
                },
                Ok(rule) => format!("{} ({})", rule.name(), rule.reason()),
                Err(user) => format!("rule {} of yours", user + 1),
            };
            ("Category".to_owned(), format!("{}: {reason}", categories.get(self.id).name()))
        });
        let free_stack = freed.or(end).map_or(StackId(0), |position| stack_of_event(context, position));
        let missing = missing_of(context, caches, std::iter::once(self.id));
        let frames = |stack: StackId| if stack == a.stack { Vec::new() } else { context.frames(stack) };
        Ok(Box::new(AllocationDetail {
            id: self.id,
            name: format!("b{:x}_{}", a.address.0, version(context, self.id)),
            address: a.address,
            requested: a.requested,
            size: a.size,
            size_is_exact: a.flags & Allocation::FLAG_SIZE_WRITTEN != 0,
            stream: tag.stream,
            pool: context.replay.pool(&a),
            is_small: a.flags & Allocation::FLAG_SMALL != 0,
            contexts: category.into_iter().chain(contexts.into_iter().flatten()).collect(),
            allocated_at: begin,
            free_requested_at: freed,
            free_completed_at: end,
            start_us: context.time_us(a.begin),
            end_us: context.time_us(end.unwrap_or(u32::MAX)),
            totals_then: caches.of::<States>().at(context.replay, a.begin).totals,
            paint: context.sites.paint(a.stack),
            stack: a.stack.0,
            alloc_stack: context.frames(a.stack),
            missing,
            free_stack: frames(free_stack),
        }))
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        let last = device.allocations;
        [0, last / 3, last / 2, last.saturating_sub(1), last].map(|id| Self { id }).into()
    }
}

/// Returns the stack of the event that leads to a position.
fn stack_of_event(context: Context<'_>, position: u32) -> StackId {
    let index = (position as usize).checked_sub(1);
    index.and_then(|i| context.trace.events.stack.get(i)).map_or(StackId(0), StackId)
}

/// Returns how often an allocation's address was used before it.
fn version(context: Context<'_>, id: u32) -> usize {
    let address = &context.replay.allocations.address;
    let Some(at) = address.get(id as usize) else { return 0 };
    address.range(0..id as usize).filter(|&a| a == at).count()
}

impl Answering for SiteQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<Box<SiteDetail>, String> {
        let id = StackId(self.stack);
        if !context.sites.contains(id) {
            return Err("This file has no such call site.".to_owned());
        }
        let usage = context.usage.site(id);
        let allocations = &context.replay.allocations;
        let state = caches.of::<States>().at(context.replay, self.position);
        let (mut live, mut line_live) = (Vec::new(), (0_u64, 0));
        for &number in &state.active {
            let of = allocations.stack.get(number as usize).map_or(StackId(0), StackId);
            let bytes = allocations.requested.get(number as usize).unwrap_or(0);
            if context.sites.line(of) == context.sites.line(id) {
                line_live = (line_live.0.saturating_add(bytes), line_live.1 + 1);
            }
            if of == id {
                live.push((number, bytes));
            }
        }
        let bytes = live.iter().fold(0_u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
        let count = live.len() as u32;
        let missing = missing_of(context, caches, live.iter().map(|(number, _)| *number));
        live.sort_few_by(|(a, x), (b, y)| y.cmp(x).then(a.cmp(b)));
        live.truncate(LARGEST);
        Ok(Box::new(SiteDetail {
            stack: self.stack,
            label: context.sites.label(id).to_owned(),
            paint: context.sites.paint(id),
            count: usage.count,
            bytes: usage.bytes,
            peak: (usage.peak_bytes, usage.peak_position),
            live: (bytes, count),
            line_live,
            live_at_end: (usage.end_bytes, usage.end_count),
            largest: live,
            frames: context.frames(id),
            missing,
        }))
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        let position = device.events / 2;
        [0, 1, 2, u32::MAX].map(|stack| Self { stack, position }).into()
    }
}
