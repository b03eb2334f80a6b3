//! The objects of a script's program and their lifetimes: tensors, pools and graphs, as Python's references keep them.

use std::collections::BTreeMap;

use trace::units::{Address, PoolId, Stream};

use super::op::Name;

/// A `MemPool` that the program can reach.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemPool {
    pub(super) id: PoolId,
    /// For an open pool: the pool that the program was in before.
    pub(super) outer: Option<PoolId>,
}

/// A `CUDAGraph`.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    /// Its number from 1.
    pub(super) number: u64,
    /// Its pool, once its capture was tried. The default one before that.
    pub(super) pool: PoolId,
    /// The stream that was current before the capture.
    pub(super) outer: Stream,
    /// Whether the capture has begun.
    pub(super) is_begun: bool,
    /// Whether the capture has ended.
    pub(super) is_captured: bool,
    /// The pools that were entered in its capture.
    pub(super) pools: Vec<PoolId>,
}

/// The objects of a program.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// Tensors by name. A tensor of 0 bytes has the null address.
    pub(super) tensors: BTreeMap<Name, Address>,
    /// Pools by name.
    pub(super) pools: BTreeMap<Name, MemPool>,
    /// Pools that requests go to, by the name under which they were begun.
    pub(super) open_pools: BTreeMap<Name, MemPool>,
    /// The graph in whose capture a pool was opened, by the pool's name, while the pool is open.
    pub(super) entered_in: BTreeMap<Name, Graph>,
    /// Graphs by name.
    pub(super) graphs: BTreeMap<Name, Graph>,
    /// The graph that was begun last: a local variable keeps it, with or without a name.
    pub(super) last_graph: Option<Graph>,
    /// The number of the graph whose capture is in progress. A capture that fails to end stays in progress until the
    /// next begins.
    pub(super) captured_for: Option<u64>,
    /// Number of pools created so far, which gives the id of the next one.
    pub(super) pools_made: u64,
    /// Number of graphs created so far.
    pub(super) graphs_made: u64,
    /// Number of captures so far, which gives the id of the next one's pool.
    pub(super) captures: u64,
    /// Number of live graphs whose capture was begun. They share the state of the random number generator.
    pub(super) graphs_begun: u32,
    /// The states of the random number generator that captures allocated, by the number of the graph they belong to.
    pub(super) random_states: BTreeMap<u64, Vec<Address>>,
}

impl Objects {
    /// Returns whether a pool is still named or open.
    pub(super) fn holds_pool(&self, id: PoolId) -> bool {
        self.pools.values().chain(self.open_pools.values()).any(|pool| pool.id == id)
    }

    /// Returns every reference to a graph.
    pub(super) fn graph_mut(&mut self, number: u64) -> impl Iterator<Item = &mut Graph> {
        let all = self.graphs.values_mut().chain(&mut self.last_graph).chain(self.entered_in.values_mut());
        all.filter(move |graph| graph.number == number)
    }

    /// Returns the graph whose capture is in progress.
    pub(super) fn capturing(&self) -> Option<&Graph> {
        let number = self.captured_for?;
        self.graphs.values().chain(&self.last_graph).find(|graph| graph.number == number)
    }

    /// Returns whether a graph is still named, was begun last, or is kept by a pool that was opened in its capture.
    pub(super) fn holds_graph(&self, number: u64) -> bool {
        let all = self.graphs.values().chain(&self.last_graph).chain(self.entered_in.values());
        all.into_iter().any(|graph| graph.number == number)
    }
}
