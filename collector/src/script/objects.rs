//! What a script's program holds, and how long it lives: tensors, pools and graphs, as Python's references keep them.

use std::collections::BTreeMap;

use shared::units::{Address, PoolId, Stream};

use super::op::Name;

/// A `MemPool` that the program can reach.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemPool {
    pub(super) id: PoolId,
    /// For an open one: the pool that the program was within before.
    pub(super) outer: Option<PoolId>,
}

/// A `CUDAGraph`.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    /// Which it is, from 1: its pool's id too.
    pub(super) number: u64,
    /// The stream that was current before the capture.
    pub(super) outer: Stream,
    /// Whether the capture was begun.
    pub(super) is_begun: bool,
    /// Whether the capture was ended.
    pub(super) is_captured: bool,
    /// The pools that were entered in its capture.
    pub(super) pools: Vec<PoolId>,
}

/// The objects of a program.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// Tensors by name; a tensor of no bytes has the null address.
    pub(super) tensors: BTreeMap<Name, Address>,
    /// Pools by name.
    pub(super) pools: BTreeMap<Name, MemPool>,
    /// Pools that requests go to, by the name that they were begun under.
    pub(super) open_pools: BTreeMap<Name, MemPool>,
    /// The graph in whose capture a pool was opened, by the pool's name, while it is open.
    pub(super) entered_in: BTreeMap<Name, Graph>,
    /// Graphs by name.
    pub(super) graphs: BTreeMap<Name, Graph>,
    /// The graph begun last: a local variable keeps it, with or without a name.
    pub(super) last_graph: Option<Graph>,
    /// The graph that the capture stream is captured for, by number: a capture that fails to end is under way until the
    /// next begins.
    pub(super) captured_for: Option<u64>,
    /// Pools and graphs made so far: the next ones' ids.
    pub(super) pools_made: u64,
    pub(super) graphs_made: u64,
    /// Living graphs whose capture was begun: they share the random numbers' state.
    pub(super) graphs_begun: u32,
    /// What the first living graph allocated for the random numbers' state.
    pub(super) random_state: Vec<Address>,
}

impl Objects {
    /// Whether a pool is still named, or open.
    pub(super) fn holds_pool(&self, id: PoolId) -> bool {
        self.pools.values().chain(self.open_pools.values()).any(|pool| pool.id == id)
    }

    /// Every reference to a graph.
    pub(super) fn graph_mut(&mut self, number: u64) -> impl Iterator<Item = &mut Graph> {
        let all = self.graphs.values_mut().chain(&mut self.last_graph).chain(self.entered_in.values_mut());
        all.filter(move |graph| graph.number == number)
    }

    /// The graph whose capture is under way.
    pub(super) fn capturing(&self) -> Option<&Graph> {
        let number = self.captured_for?;
        self.graphs.values().chain(&self.last_graph).find(|graph| graph.number == number)
    }

    /// Whether a graph is still named, the one begun last, or kept by a pool that was opened in its capture.
    pub(super) fn holds_graph(&self, number: u64) -> bool {
        let all = self.graphs.values().chain(&self.last_graph).chain(self.entered_in.values());
        all.into_iter().any(|graph| graph.number == number)
    }
}
