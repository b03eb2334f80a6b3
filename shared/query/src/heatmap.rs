//! Heatmaps of fragmentation: queries and answers.

use serde::{Deserialize, Serialize};

use super::{Axis, Packed, Question, SegmentRow, Window};
use trace::units::{Address, PoolId, Stream};

/// The part of the memory that a heatmap shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum HeatmapPart {
    /// All of it.
    #[default]
    All,
    /// The segments of a pool.
    Pool(PoolId),
    /// The segments of a stream.
    Stream(Stream),
    /// The addresses around this one that were reserved without a gap between them.
    Segment(Address),
}

impl HeatmapPart {
    /// Returns the part as it stands in a link: `pool:0.3`, `stream:7`, `segment:0x7f00`; empty for all of it.
    pub fn name(&self) -> String {
        match self {
            Self::All => String::new(),
            Self::Pool(PoolId(a, b)) => format!("pool:{a}.{b}"),
            Self::Stream(Stream(stream)) => format!("stream:{stream}"),
            Self::Segment(address) => format!("segment:{address}"),
        }
    }

    /// Returns the part with a name.
    pub fn by_name(name: &str) -> Option<Self> {
        let (kind, value) = name.split_once(':')?;
        match kind {
            "pool" => {
                let (a, b) = value.split_once('.')?;
                Some(Self::Pool(PoolId(a.parse().ok()?, b.parse().ok()?)))
            }
            "stream" => value.parse().ok().map(|stream| Self::Stream(Stream(stream))),
            "segment" => u64::from_str_radix(value.strip_prefix("0x")?, 16).ok().map(|at| Self::Segment(Address(at))),
            _ => None,
        }
    }
}

/// What the rows of a heatmap are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HeatmapRows {
    /// Addresses, the lowest in the first row.
    Addresses {
        /// The most rows.
        rows: u32,
        /// The offsets that the rows divide: the first one, and the one behind the last. Each row has the same number of
        /// bytes; rows behind all addresses are left out. `None` for all addresses.
        offsets: Option<(u64, u64)>,
    },
    /// Sizes of requests: powers of two from 512 bytes up to the largest request, served or failed, the smallest in the
    /// first row.
    Sizes,
}

/// A request that failed though enough memory was free: smaller gaps of its pool and stream are too small, whatever is
/// requested otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeatmapNeed {
    /// Its pool.
    pub pool: PoolId,
    /// Its stream.
    pub stream: Stream,
    /// Whether small segments serve it.
    pub is_small: bool,
    /// Its rounded bytes.
    pub size: u64,
}

/// Asks for the fragmentation of memory over time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeatmapQuery {
    /// The x axis.
    pub axis: Axis,
    /// The visible part of the axis.
    pub window: Window,
    /// The most pixel columns for the window.
    pub columns: u32,
    /// What the rows are.
    pub rows: HeatmapRows,
    /// The part of the memory.
    pub part: HeatmapPart,
    /// What gaps must hold to be usable; `None` if the requests that were served tell.
    pub needed: Option<HeatmapNeed>,
}

impl Question for HeatmapQuery {
    type Answer = Heatmap;
}

/// A heatmap. Each cell stands for the states at all positions that are current somewhere in its column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Heatmap {
    /// The query.
    pub query: HeatmapQuery,
    /// The part of the axis that the columns cover. It includes the window, and may be longer: the width of a column is
    /// a power of two, so that a heatmap is made of columns that earlier ones had.
    pub window: Window,
    /// The number of columns.
    pub columns: u32,
    /// The number of rows.
    pub rows: u32,
    /// The cells, row by row. For addresses, codes of [`crate::heatmap::address`]; for sizes, of
    /// [`crate::heatmap::size`].
    pub cells: Packed<u16>,
    /// The offset of the first row of addresses; 0 for sizes.
    pub from: u64,
    /// The bytes of a row of addresses; 0 for sizes.
    pub row_bytes: u64,
    /// The bytes of all addresses of the part, in rows or not; 0 for sizes.
    pub total: u64,
    /// Neighbouring segments of one kind, in the order of addresses: those in the rows with room for a label.
    pub groups: Vec<HeatmapGroup>,
}

/// Neighbouring segments of one pool, stream and kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeatmapGroup {
    /// Bytes of the rows before it.
    pub offset: u64,
    /// Bytes of its segments.
    pub size: u64,
    /// The number of its segments.
    pub segments: u32,
    /// Its first address.
    pub address: Address,
    /// Their stream.
    pub stream: Stream,
    /// Their pool.
    pub pool: PoolId,
    /// Whether they serve requests up to 1 MiB.
    pub is_small: bool,
}

/// Asks what is in a cell of a heatmap. The answer is `None` outside of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeatmapCellQuery {
    /// The x axis.
    pub axis: Axis,
    /// The part of the axis that the cell covers.
    pub window: Window,
    /// What it covers downwards.
    pub row: HeatmapRow,
    /// The part of the memory of the heatmap.
    pub part: HeatmapPart,
    /// What gaps must hold to be usable in the heatmap.
    pub needed: Option<HeatmapNeed>,
}

impl Question for HeatmapCellQuery {
    type Answer = Option<HeatmapCell>;
}

/// A row of a heatmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HeatmapRow {
    /// The bytes `[from, to)` of the reserved addresses.
    Addresses {
        /// The first byte.
        from: u64,
        /// The byte behind the last one.
        to: u64,
    },
    /// The size class with this number.
    Size(u32),
}

/// What is in a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum HeatmapCell {
    /// A cell of addresses.
    Address(Box<AddressCell>),
    /// A cell of sizes.
    Size(SizeCell),
}

/// What is in a cell of addresses, and around it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AddressCell {
    /// The query.
    pub query: HeatmapCellQuery,
    /// The first and the last position of the cell.
    pub positions: (u32, u32),
    /// The most bytes of the row that were allocated, waiting, in usable gaps, in unusable gaps and unmapped at once.
    pub most: [u64; 5],
    /// The position that the rest describes: the first with the most of what matters most in the cell.
    pub position: u32,
    /// Its time in microseconds since the trace begins.
    pub time_us: f64,
    /// What is there.
    pub thing: HeatmapThing,
    /// The segment around it.
    pub segment: Option<SegmentRow>,
    /// The active blocks of the segment: they keep it from being given back.
    pub blocks: u32,
    /// Those that pin it, worst first.
    pub pins: Vec<Pin>,
}

/// What is at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HeatmapThing {
    /// No memory is reserved.
    Unmapped,
    /// A block.
    Block {
        /// The number of its allocation.
        id: u32,
        /// Its size in bytes.
        size: u64,
        /// Whether it was freed, and waits for a stream.
        is_waiting: bool,
    },
    /// A gap.
    Gap {
        /// Its first address.
        address: Address,
        /// Its size in bytes.
        size: u64,
        /// The size of the smallest gap of this pool and stream that is usable.
        threshold: u64,
    },
}

/// An active block that keeps its segment from being given back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pin {
    /// The number of its allocation.
    pub id: u32,
    /// Its size in bytes.
    pub size: u64,
    /// The position right after it was made; `None` if that was before the trace.
    pub since: Option<u32>,
    /// The line of its call site.
    pub site: String,
}

/// What could serve a request of a size, over the positions of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeCell {
    /// The query.
    pub query: HeatmapCellQuery,
    /// The first and the last position of the cell.
    pub positions: (u32, u32),
    /// The size of the request in bytes.
    pub size: u64,
    /// The most free bytes at once, in how many gaps, and the first position with them.
    pub most: (u64, u32, u32),
    /// The least free bytes at once, in how many gaps, and the first position with them.
    pub least: (u64, u32, u32),
}

/// Asks where a failed request goes on a heatmap. The answer is `None` if the part has no memory for such a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeatmapFailureQuery {
    /// The part of the memory of the heatmap.
    pub part: HeatmapPart,
    /// The requested bytes.
    pub requested: u64,
    /// The pool that the request was for.
    pub pool: PoolId,
    /// The stream that the request was for.
    pub stream: Stream,
    /// The gap that came closest to it: its address and size.
    pub gap: Option<(Address, u64)>,
}

impl Question for HeatmapFailureQuery {
    type Answer = Option<HeatmapFailure>;
}

/// Where a failed request goes on a heatmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeatmapFailure {
    /// The query.
    pub query: HeatmapFailureQuery,
    /// The first offset of the gap that came closest, and the one behind it. `None` if no gap could have served any part
    /// of the request: only new memory from the driver could, behind all addresses.
    pub gap: Option<(u64, u64)>,
    /// The bytes of all addresses of the part.
    pub total: u64,
    /// The size class of the request: the smallest that holds it.
    pub class: u32,
}

/// The codes of the cells of addresses: see [`analysis::heatmap::Tone`].
pub mod address {
    /// The place of the weight of allocated memory, in bits.
    pub const ALLOCATED: u16 = 0;
    /// The place of the weight of usable gaps, in bits.
    pub const USABLE: u16 = 4;
    /// The place of the weight of memory that waits for a stream, in bits.
    pub const WAITING: u16 = 8;
    /// The place of the weight of unusable gaps, in bits.
    pub const UNUSABLE: u16 = 12;
    /// The sum of all weights, with that of the background.
    pub const WHOLE: u16 = 15;
}

/// The codes of the cells of sizes.
pub mod size {
    /// The lowest bits: the most free bytes on a scale of powers of two. 0 is none, 1 is below 1 KiB, and each step
    /// doubles.
    pub const STEP: u16 = 0xff;
    /// Set if at some position no gap could serve the size.
    pub const NONE_AT_SOME_POSITION: u16 = 0x100;
    /// Set if the cell lies in the trace.
    pub const IS_KNOWN: u16 = 0x200;
}
