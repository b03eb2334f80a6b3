//! The output of `torch.cuda.memory_stats()`: a dictionary as Python or JSON writes it, flat or nested, or the pairs of an
//! `OrderedDict`.

use crate::explanation::{Explanation, Fact, NEXT, TextKind};
use doctor::remedies;
use query::diagnosis::Cause;
use query::finding::Remedy;
use trace::units::{Bytes, counted};

/// The deepest nesting that is read.
const DEPTH: usize = 8;

/// The sums of an allocator, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) allocated: u64,
    pub(super) active: u64,
    pub(super) reserved: u64,
    pub(super) requested: Option<u64>,
    pub(super) inactive_split: Option<u64>,
    pub(super) peak_allocated: Option<u64>,
    pub(super) peak_reserved: Option<u64>,
    pub(super) retries: u64,
    pub(super) ooms: u64,
}

/// Reads statistics; `None` if the text has none.
pub(super) fn read(text: &str) -> Option<Sums> {
    let mut sums = Sums::default();
    let mut is_known = false;
    for_each_number(text, &mut |path, value| {
        let field = match path {
            "allocated_bytes.all.current" => &mut sums.allocated,
            "active_bytes.all.current" => &mut sums.active,
            "reserved_bytes.all.current" => {
                is_known = true;
                &mut sums.reserved
            }
            "requested_bytes.all.current" => sums.requested.insert(0),
            "inactive_split_bytes.all.current" => sums.inactive_split.insert(0),
            "allocated_bytes.all.peak" => sums.peak_allocated.insert(0),
            "reserved_bytes.all.peak" => sums.peak_reserved.insert(0),
            "num_alloc_retries" => &mut sums.retries,
            "num_ooms" => &mut sums.ooms,
            _ => return,
        };
        *field = value;
    });
    is_known.then_some(sums)
}

/// Calls `visit` with each number and the names that lead to it, joined by dots.
fn for_each_number(text: &str, visit: &mut impl FnMut(&str, u64)) {
    let mut path: Vec<String> = Vec::new();
    let mut name: Option<String> = None;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let mut length = first.len_utf8();
        match first {
            '\'' | '"' => {
                let Some(body) = rest.get(1..) else { return };
                let Some(end) = body.find(first) else { return };
                name = body.get(..end).map(str::to_owned);
                length = end + 2;
            }
            '{' => {
                if path.len() >= DEPTH {
                    return;
                }
                path.push(name.take().unwrap_or_default());
            }
            '}' => {
                path.pop();
                name = None;
            }
            '0'..='9' => {
                length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                if let (Some(name), Some(Ok(value))) = (name.take(), rest.get(..length).map(str::parse)) {
                    let names = path.iter().map(String::as_str).chain([name.as_str()]);
                    visit(&names.filter(|name| !name.is_empty()).collect::<Vec<_>>().join("."), value);
                }
            }
            _ => {}
        }
        rest = rest.get(length..).unwrap_or("");
    }
}

impl Sums {
    pub(super) fn explain(self, kind: TextKind) -> Explanation {
        let cached = self.reserved.saturating_sub(self.active);
        let split = self.inactive_split.map(|bytes| bytes.min(cached));
        let requests = |count, what: &str| match count {
            0 => String::new(),
            count => format!("; {} {what}", counted(count, "request")),
        };
        let in_pieces = split.map_or_else(String::new, |bytes| {
            format!(" ({} of it in segments in use, which empty_cache can't give back)", Bytes(bytes))
        });
        let sentence = format!(
            "{} was allocated of {} reserved, and {} was cached{in_pieces}{}{}.",
            Bytes(self.allocated),
            Bytes(self.reserved),
            Bytes(cached),
            requests(self.retries, "had to wait until cached memory was released"),
            requests(self.ooms, "failed"),
        );
        let known = [
            ("in live tensors", Some(self.allocated)),
            ("in live tensors at the peak", self.peak_allocated),
            ("freed, and waiting for streams", self.active.checked_sub(self.allocated).filter(|bytes| *bytes > 0)),
            ("lost to rounding", self.requested.and_then(|bytes| self.active.checked_sub(bytes))),
            ("cached", Some(cached)),
            ("cached in segments in use", split),
            ("cached in whole segments", split.map(|bytes| cached - bytes)),
            ("reserved", Some(self.reserved)),
            ("reserved at the peak", self.peak_reserved),
        ];
        let mut remedies: Vec<Remedy> = Vec::new();
        if self.retries > 0 || split.is_some_and(|bytes| bytes >= self.reserved / 10 && bytes > 0) {
            remedies.extend(remedies::by_cause(Cause::Fragmented, false).into_iter().take(1));
        }
        Explanation {
            kind,
            device: None,
            rank: None,
            is_failure: self.ooms > 0,
            cause: Cause::None,
            sentence,
            line: None,
            facts: known
                .into_iter()
                .filter_map(|(name, bytes)| Some(Fact { name: name.into(), bytes: bytes? }))
                .collect(),
            remedies,
            next: NEXT,
        }
    }
}
