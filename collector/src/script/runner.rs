//! Executes a script's operations one after the other, as a Python program would.

use allocator::sim::SimDriver;
use allocator::{
    AllocError, AllocatorConfig, DeviceAllocator, DriverError, Filter, FreeError, Lending, MisuseError, PoolOptions,
    Profile, RandomState, Request, TraceEntry,
};
use serde_json::{Map, Value};
use trace::frames::StackId;
use trace::units::{Address, PoolId, Stream};

use recorder::allocator::out_of_memory;

use super::objects::{Graph, MemPool, Objects};
use super::op::{Name, Op, Script, ScriptError, Size};
use super::output::{Output, entry, relative, state};
use super::streams::Streams;

/// No stacks are recorded.
const NO_STACK: StackId = StackId(0);
/// The owner of the random number generator's state that all graphs share. Graphs are numbered from 1.
const SHARED: u64 = 0;
/// The only thread.
const THREAD: u64 = 0;

/// A Python exception: its type and the first line of its message.
struct Raised(String);

impl From<AllocError> for Raised {
    fn from(error: AllocError) -> Self {
        Self(match error {
            AllocError::OutOfMemory(_) | AllocError::Rejected(_) | AllocError::TooLarge => format!("oom: {error}"),
            AllocError::Driver(_) => format!("RuntimeError: {error}"),
        })
    }
}

impl From<DriverError> for Raised {
    fn from(error: DriverError) -> Self {
        Self(format!("RuntimeError: {error}"))
    }
}

impl From<FreeError> for Raised {
    fn from(error: FreeError) -> Self {
        Self(format!("RuntimeError: {error}"))
    }
}

impl From<MisuseError> for Raised {
    fn from(error: MisuseError) -> Self {
        Self(format!("RuntimeError: {error}"))
    }
}

/// Executes a script as a PyTorch release would.
///
/// Errors if the settings string at the start is invalid. Operations that fail are part of the output.
pub fn execute(script: Script, profile: &'static Profile) -> Result<Output, ScriptError> {
    let config = AllocatorConfig::from_conf(&script.config, profile)?;
    let streams = Streams::new(&script.ops);
    let driver = SimDriver::new(script.capacity, script.placement);
    let allocator = DeviceAllocator::new(driver, Vec::new(), profile, config);
    let mut runner = ScriptRunner {
        allocator,
        objects: Objects::default(),
        streams,
        named_stream: 0,
        current: Stream(0),
        malloc: Vec::new(),
        errors: Map::new(),
        trace: Vec::new(),
        snapshots: Vec::new(),
    };
    let mut undefined_from = None;
    for (index, op) in script.ops.iter().enumerate() {
        if let Err(Raised(text)) = runner.step(index, op) {
            runner.errors.insert(index.to_string(), text.into());
        }
        runner.drain(index);
        if runner.allocator.is_undefined() {
            undefined_from.get_or_insert(index);
        }
    }
    let end = script.ops.len();
    let last = runner.state();
    runner.drain(end);
    let ScriptRunner { allocator, malloc, errors, trace, snapshots, .. } = runner;
    let settings = allocator.config().settings(profile).into_iter().map(|(key, value)| (key.to_owned(), json(&value)));
    Ok(Output {
        torch: profile.torch,
        script: script.rest,
        n_ops: end,
        undefined_from,
        malloc,
        errors,
        trace,
        snapshots,
        last,
        settings: settings.collect(),
    })
}

/// Returns a setting's value as JSON.
fn json(value: &allocator::SettingValue) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

/// Executes a script and collects its output.
struct ScriptRunner {
    allocator: DeviceAllocator<SimDriver, Vec<TraceEntry>>,
    objects: Objects,
    streams: Streams,
    /// The number of the stream that was made current last.
    named_stream: usize,
    /// The current stream; within a capture, the capture's own.
    current: Stream,
    malloc: Vec<(usize, Option<i64>)>,
    errors: Map<String, Value>,
    trace: Vec<Value>,
    snapshots: Vec<Value>,
}

impl ScriptRunner {
    fn step(&mut self, index: usize, op: &Op) -> Result<(), Raised> {
        match op {
            Op::Malloc(name, size, stream) => self.malloc(index, name, *size, *stream),
            Op::Free(name) => {
                let tensor = self.objects.tensors.remove(name);
                self.free(tensor)
            }
            Op::RecordStream(name, stream) => match self.objects.tensors.get(name) {
                Some(&address) => Ok(self.allocator.record_stream(address, Streams::handle(*stream))?),
                None => Ok(()),
            },
            Op::Hold(stream) => {
                self.allocator.driver_mut().hold(Streams::handle(*stream));
                Ok(())
            }
            Op::Release(stream) => {
                self.allocator.driver_mut().release(Streams::handle(*stream));
                Ok(())
            }
            Op::Synchronize => {
                self.allocator.driver_mut().synchronize();
                Ok(())
            }
            Op::EmptyCache => Ok(self.allocator.empty_cache(NO_STACK)?),
            Op::Fraction(None) => {
                Err(Raised("TypeError: Invalid type for fraction argument, must be `float`".to_owned()))
            }
            Op::Fraction(Some(fraction)) => self.allocator.set_memory_fraction(*fraction).map_err(|_| {
                Raised(format!("ValueError: Invalid fraction value: {}. Allowed range: 0~1", python_float(*fraction)))
            }),
            Op::Config(text) => {
                self.allocator.set_config(text).map_err(|error| Raised(format!("{}: {error}", error.kind.name())))
            }
            Op::Capacity(bytes) => {
                self.allocator.driver_mut().set_capacity(*bytes);
                Ok(())
            }
            Op::FailNext(n) => {
                self.allocator.driver_mut().fail_next(*n);
                Ok(())
            }
            Op::PoolNew { name, use_on_oom, no_split } => self.pool_new(name, *use_on_oom, *no_split),
            Op::PoolBegin(name) => self.pool_begin(name),
            Op::PoolEnd(name) => {
                let pool = self.objects.open_pools.remove(name).ok_or_else(|| key_error(name))?;
                self.close_pool(name, pool)
            }
            Op::PoolDel(name) => {
                let pool = self.objects.pools.remove(name).ok_or_else(|| key_error(name))?;
                self.drop_pool(pool)
            }
            Op::GraphBegin(name) => self.graph_begin(name),
            Op::GraphEnd(name) => self.graph_end(name),
            Op::GraphDel(name) => {
                let graph = self.objects.graphs.remove(name).ok_or_else(|| key_error(name))?;
                self.drop_graph(&graph)
            }
            Op::ResetPeak => {
                self.allocator.reset_peak_stats();
                Ok(())
            }
            Op::Snapshot => {
                let Value::Object(state) = self.state() else { return Ok(()) };
                let mut snapshot = Map::from_iter([("op".to_owned(), index.into())]);
                snapshot.extend(state);
                self.snapshots.push(snapshot.into());
                Ok(())
            }
        }
    }

    fn malloc(&mut self, index: usize, name: &Name, size: Size, stream: usize) -> Result<(), Raised> {
        if stream != self.named_stream {
            self.named_stream = stream;
            self.make_current(Streams::handle(stream));
        }
        let size = match size {
            Size::Bytes(size) => size,
            Size::Negative(n) => {
                return Err(Raised(format!(
                    "RuntimeError: Trying to create tensor with negative dimension {n}: [{n}]"
                )));
            }
            Size::Unreadable => {
                let kind = self.allocator.profile().size_overflow;
                return Err(Raised(format!(
                    "TypeError: empty(): argument 'size' failed to unpack the object at pos 1 with error \"Overflow \
                     when unpacking {kind}"
                )));
            }
        };
        let request = Request { size, stream: self.current, thread: THREAD, stack: NO_STACK };
        let address = match self.allocator.malloc(request) {
            Ok(address) => address,
            Err(error) => {
                if !matches!(error, AllocError::Driver(_)) {
                    self.malloc.push((index, None));
                }
                return Err(self.refused(error));
            }
        };
        // The new tensor exists before the old one of that name is freed.
        let old = self.objects.tensors.insert(name.clone(), address);
        self.malloc.push((index, Some(relative(address.0))));
        self.free(old)
    }

    /// Returns the exception of a request that failed.
    fn refused(&self, error: AllocError) -> Raised {
        let AllocError::OutOfMemory(oom) = &error else { return error.into() };
        let in_use = self.allocator.driver().used();
        let is_expandable = self.allocator.config().expandable_segments;
        Raised(format!("oom: {}", out_of_memory(oom, 0, Some(in_use), is_expandable, self.allocator.profile())))
    }

    fn free(&mut self, address: Option<Address>) -> Result<(), Raised> {
        match address {
            Some(address) => Ok(self.allocator.free(address, NO_STACK)?),
            None => Ok(()),
        }
    }

    fn pool_new(&mut self, name: &Name, use_on_oom: Option<bool>, no_split: Option<bool>) -> Result<(), Raised> {
        let Some(known) = self.allocator.profile().pool_options else {
            return Err(Raised("AttributeError: module 'torch.cuda' has no attribute 'MemPool'".to_owned()));
        };
        let said = [("use_on_oom", use_on_oom), ("no_split", no_split)];
        if let Some((option, _)) = said.iter().find(|(option, said)| said.is_some() && !known.contains(option)) {
            return Err(Raised(format!("TypeError: MemPool.__init__() got an unexpected keyword argument '{option}'")));
        }
        self.objects.pools_made += 1;
        let pool = MemPool { id: PoolId(0, self.objects.pools_made), outer: None };
        let options = PoolOptions {
            use_on_oom: use_on_oom.unwrap_or(false),
            no_split: no_split.unwrap_or(false),
            has_allocator: false,
        };
        if self.allocator.profile().pools_end {
            self.allocator.create_pool(pool.id, options);
        }
        match self.objects.pools.insert(name.clone(), pool) {
            Some(old) => self.drop_pool(old),
            None => Ok(()),
        }
    }

    fn pool_begin(&mut self, name: &Name) -> Result<(), Raised> {
        let mut pool = *self.objects.pools.get(name).ok_or_else(|| key_error(name))?;
        // Replacing the pool that was open under this name closes it.
        if let Some(old) = self.objects.open_pools.remove(name) {
            self.objects.open_pools.insert(name.clone(), pool);
            self.close_pool(name, old)?;
        }
        if self.allocator.profile().graphs_keep_pools
            && self.current == self.streams.capture
            && let Some(graph) = self.objects.capturing().cloned()
        {
            let (number, is_kept) = (graph.number, graph.pools.contains(&pool.id));
            self.objects.entered_in.insert(name.clone(), graph);
            if !is_kept {
                self.allocator.create_pool(pool.id, PoolOptions::default());
                self.objects.graph_mut(number).for_each(|graph| graph.pools.push(pool.id));
            }
        }
        pool.outer = self.allocator.set_pool_context(Some(pool.id));
        self.objects.open_pools.insert(name.clone(), pool);
        Ok(self.allocator.begin_allocate_to_pool(pool.id, Filter::Thread(THREAD))?)
    }

    fn close_pool(&mut self, name: &Name, pool: MemPool) -> Result<(), Raised> {
        self.allocator.end_allocate_to_pool(pool.id)?;
        if self.allocator.profile().pools_end {
            self.allocator.release_pool(pool.id)?;
        }
        self.allocator.set_pool_context(pool.outer);
        self.drop_pool(pool)?;
        self.objects.entered_in.remove(name).map_or(Ok(()), |graph| self.drop_graph(&graph))
    }

    /// Deletes a pool after its last reference is gone.
    fn drop_pool(&mut self, pool: MemPool) -> Result<(), Raised> {
        if self.objects.holds_pool(pool.id) || !self.allocator.profile().pools_end {
            return Ok(());
        }
        if self.allocator.profile().lending == Lending::BeforeRetries {
            self.allocator.set_pool_options(pool.id, PoolOptions::default())?;
        }
        self.allocator.release_pool(pool.id)?;
        Ok(self.allocator.empty_pool_cache(pool.id, NO_STACK)?)
    }

    fn graph_begin(&mut self, name: &Name) -> Result<(), Raised> {
        self.objects.graphs_made += 1;
        let number = self.objects.graphs_made;
        let graph = Graph {
            number,
            pool: PoolId::default(),
            outer: self.current,
            is_begun: false,
            is_captured: false,
            pools: Vec::new(),
        };
        let before = self.objects.last_graph.replace(graph.clone());
        if let Some(before) = before {
            self.drop_graph(&before)?;
        }
        if let Some(old) = self.objects.graphs.insert(name.clone(), graph) {
            self.drop_graph(&old)?;
        }
        self.allocator.driver_mut().synchronize();
        self.allocator.empty_cache(NO_STACK)?;
        self.objects.captures += 1;
        let pool = PoolId(self.objects.captures, 0);
        self.objects.graph_mut(number).for_each(|graph| graph.pool = pool);
        self.make_current(self.streams.capture);
        let random_state = self.allocator.profile().random_state;
        if random_state == RandomState::Shared && !self.objects.random_states.contains_key(&SHARED) {
            self.allocate_random_state(SHARED, self.current)?;
        }
        self.objects.graphs_begun += 1;
        self.objects.graph_mut(number).for_each(|graph| graph.is_begun = true);
        self.objects.captured_for = Some(number);
        let capture = self.streams.capture;
        let filter = Filter::Capture(Box::new(move |stream| stream == capture));
        self.allocator.begin_allocate_to_pool(pool, filter)?;
        if random_state == RandomState::OfGraph {
            self.allocate_random_state(number, Stream(0))?;
        }
        Ok(())
    }

    /// Allocates what the random number generator needs for a capture.
    fn allocate_random_state(&mut self, owner: u64, stream: Stream) -> Result<(), Raised> {
        let mut state = Vec::new();
        for _ in 0..2 {
            let request = Request { size: 8, stream, thread: THREAD, stack: NO_STACK };
            match self.allocator.malloc(request) {
                Ok(address) => state.push(address),
                Err(error) => {
                    let refused = self.refused(error);
                    self.allocator.set_current_stream(self.current);
                    state.into_iter().try_for_each(|address| self.free(Some(address)))?;
                    return Err(refused);
                }
            }
        }
        self.objects.random_states.insert(owner, state);
        // The request's stream is not the program's.
        self.allocator.set_current_stream(self.current);
        Ok(())
    }

    fn graph_end(&mut self, name: &Name) -> Result<(), Raised> {
        let graph = self.objects.graphs.get(name).cloned().ok_or_else(|| key_error(name))?;
        if self.current != self.streams.capture {
            if self.allocator.profile().restores_stream_on_error {
                self.make_current(graph.outer);
            }
            return Err(Raised("RuntimeError: Capture must end on the same stream it began on.".to_owned()));
        }
        self.allocator.end_allocate_to_pool(graph.pool)?;
        self.objects.graph_mut(graph.number).for_each(|graph| graph.is_captured = true);
        self.objects.captured_for = None;
        self.make_current(graph.outer);
        Ok(())
    }

    /// Deletes a graph after its last reference is gone.
    fn drop_graph(&mut self, graph: &Graph) -> Result<(), Raised> {
        if self.objects.holds_graph(graph.number) {
            return Ok(());
        }
        if graph.is_captured || (graph.is_begun && self.allocator.profile().unfinished_graphs_release) {
            self.allocator.release_pool(graph.pool)?;
        }
        for pool in &graph.pools {
            self.allocator.release_pool(*pool)?;
        }
        self.objects.graphs_begun -= u32::from(graph.is_begun);
        let own = self.objects.random_states.remove(&graph.number).unwrap_or_default();
        let shared = (self.objects.graphs_begun == 0).then(|| self.objects.random_states.remove(&SHARED)).flatten();
        for address in shared.into_iter().flatten().chain(own.into_iter().rev()) {
            self.allocator.free(address, NO_STACK)?;
        }
        Ok(())
    }

    fn make_current(&mut self, stream: Stream) {
        self.current = stream;
        self.allocator.set_current_stream(stream);
    }

    /// Returns the current segments and statistics.
    fn state(&mut self) -> Value {
        let segments = self.allocator.snapshot();
        state(&segments, self.allocator.memory_stats(), &self.streams)
    }

    /// Adds what was recorded since the last call to the trace, under an operation.
    fn drain(&mut self, index: usize) {
        let op = if self.allocator.profile().tags_entries { index as i64 } else { -1 };
        let (streams, trace) = (&self.streams, &mut self.trace);
        trace.extend(self.allocator.sink_mut().drain(..).map(|one| entry(op, &one, streams)));
    }
}

fn key_error(name: &Name) -> Raised {
    Raised(format!("KeyError: {name}"))
}

/// Formats a float as Python prints it.
fn python_float(value: f64) -> String {
    let text = format!("{value:?}");
    match text.split_once('e') {
        // Python writes at least two digits and a sign: 1e-07, 1e+30.
        Some((head, exponent)) => {
            let head = head.strip_suffix(".0").unwrap_or(head);
            let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
            format!("{head}e{sign}{digits:0>2}")
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_python_prints_them() {
        for (value, want) in [(1.5, "1.5"), (-1.0, "-1.0"), (1e-7, "1e-07"), (1e30, "1e+30"), (2.5e-9, "2.5e-09")] {
            assert_eq!(python_float(value), want);
        }
    }
}
