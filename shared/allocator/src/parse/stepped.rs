//! The parsers for torch since 2.10: one for the settings that all accelerators share, one for CUDA's own. Each goes
//! through the whole string and skips the other's settings. Any token counts as a separator.

use super::super::config::{AllocatorConfig, Reserve};
use super::super::profile::Profile;
use super::cursor::Cursor;
use super::divisions::DivisionList;
use super::error::{ConfigError, ErrorKind};
use super::number::{self, NumberError};
use super::tokens::{is_space, tokenize};
use super::{ParsePhase, mebibytes, reset};

/// Settings that all accelerators share.
const COMMON: [&str; 9] = [
    "large_segment_size_mb",
    "max_split_size_mb",
    "max_non_split_rounding_mb",
    "garbage_collection_threshold",
    "roundup_power2_divisions",
    "expandable_segments",
    "pinned_use_background_threads",
    "pinned_max_round_threshold_mb",
    "pinned_max_cached_size_mb",
];

/// Settings of CUDA only.
const CUDA: [&str; 13] = [
    "backend",
    "release_lock_on_cudamalloc",
    "release_lock_on_hipmalloc",
    "pinned_use_cuda_host_register",
    "pinned_use_hip_host_register",
    "pinned_num_register_threads",
    "pinned_reserve_segment_size_mb",
    "graph_capture_record_stream_reuse",
    "per_process_memory_fraction",
    "pinned_free_catch_all",
    "throw_on_cudamalloc_oom",
    "expandable_segments_reserve",
    "expandable_segments_reserve_by_class",
];

/// Limit of `pinned_num_register_threads`.
const MOST_REGISTER_THREADS: u64 = 128;
/// `large_segment_size_mb` must be above this: requests of at least this size have a segment of their own.
const MIN_LARGE_ALLOC_MB: u64 = 10;

pub(super) fn read(
    conf: &str,
    profile: &Profile,
    config: &mut AllocatorConfig,
    phase: ParsePhase,
) -> Result<(), ConfigError> {
    reset(conf, config);
    let tokens = tokenize(conf, is_space);
    let mut reader = Reader { cursor: Cursor::new(&tokens, profile), tokens: &tokens, profile, config, phase };
    if phase == ParsePhase::Startup {
        reader.cuda()?;
        reader.common()
    } else {
        reader.common()?;
        reader.cuda()
    }
}

struct Reader<'a> {
    cursor: Cursor<'a>,
    tokens: &'a [String],
    profile: &'a Profile,
    config: &'a mut AllocatorConfig,
    phase: ParsePhase,
}

impl<'a> Reader<'a> {
    /// Parses the shared settings (`AcceleratorAllocatorConfig::parseArgs`). The size of large segments is read first,
    /// wherever it is, since two others are compared with it.
    fn common(&mut self) -> Result<(), ConfigError> {
        self.cursor = Cursor::new(self.tokens, self.profile);
        while let Some(token) = self.cursor.current() {
            if token == "large_segment_size_mb" && self.knows(token) {
                self.config.large_segment_size = self.large_segment_size()?;
            }
            self.cursor.advance();
        }
        if self.knows("large_segment_size_mb") {
            self.config.max_non_split_rounding = self.config.large_segment_size;
        }
        self.cursor = Cursor::new(self.tokens, self.profile);
        while let Some(key) = self.cursor.current() {
            if !self.knows(key) {
                return Err(unrecognized(key, "Accelerator"));
            }
            match key {
                "max_split_size_mb" => self.config.max_split_size = self.size(key)?,
                "max_non_split_rounding_mb" => self.config.max_non_split_rounding = self.size(key)?,
                "garbage_collection_threshold" => self.config.garbage_collection_threshold = self.threshold()?,
                "roundup_power2_divisions" => self.divisions()?,
                "expandable_segments" => self.config.expandable_segments = self.cursor.flag()?,
                // A setting of the host's allocator, displayed nowhere.
                "pinned_use_background_threads" => drop(self.cursor.flag()?),
                "pinned_max_round_threshold_mb" => self.config.pinned_max_round_threshold = mebibytes(self.whole()?),
                "pinned_max_cached_size_mb" => self.config.pinned_max_cached_size = mebibytes(self.whole()?),
                _ => self.cursor.skip()?,
            }
            self.cursor.next_key();
        }
        Ok(())
    }

    /// Parses CUDA's own settings (`CUDAAllocatorConfig::parseArgs`).
    fn cuda(&mut self) -> Result<(), ConfigError> {
        self.cursor = Cursor::new(self.tokens, self.profile);
        while let Some(key) = self.cursor.current() {
            if !self.knows(key) {
                return Err(unrecognized(key, "CUDA"));
            }
            match key {
                "backend" => self.backend()?,
                "release_lock_on_cudamalloc" | "release_lock_on_hipmalloc" => {
                    self.config.release_lock_on_cudamalloc = self.cursor.flag()?;
                }
                "pinned_use_cuda_host_register" | "pinned_use_hip_host_register" => {
                    self.config.pinned_use_cuda_host_register = self.cursor.flag()?;
                }
                "pinned_num_register_threads" => self.config.pinned_num_register_threads = self.threads()?,
                "pinned_reserve_segment_size_mb" => self.pinned_reserve()?,
                "graph_capture_record_stream_reuse" => {
                    self.config.graph_capture_record_stream_reuse = self.cursor.flag()?;
                }
                "per_process_memory_fraction" => self.config.per_process_memory_fraction = Some(self.fraction()?),
                // A setting of the host's allocator, displayed nowhere.
                "pinned_free_catch_all" => drop(self.cursor.flag()?),
                "throw_on_cudamalloc_oom" => self.config.throw_on_cudamalloc_oom = self.cursor.flag()?,
                "expandable_segments_reserve" => {
                    self.cursor.separator()?;
                    // For an invalid value PyTorch warns and keeps the one before.
                    if let Some(reserve) = reserve(self.cursor.operand()?) {
                        self.config.expandable_segments_reserve = Some(reserve);
                    }
                }
                // For streams in classes, which only C++ programs can define.
                "expandable_segments_reserve_by_class" => self.cursor.pairs()?,
                _ => self.cursor.skip()?,
            }
            self.cursor.next_key();
        }
        Ok(())
    }

    fn knows(&self, key: &str) -> bool {
        (COMMON.contains(&key) || CUDA.contains(&key)) && self.profile.knows_setting(key)
    }

    fn whole(&mut self) -> Result<u64, ConfigError> {
        self.cursor.separator()?;
        let value = self.cursor.value()?;
        self.to_whole(value)
    }

    fn to_whole(&self, text: &str) -> Result<u64, ConfigError> {
        number::whole(text).map_err(|error| self.no_number("stoull", error))
    }

    fn real(&mut self) -> Result<f64, ConfigError> {
        self.cursor.separator()?;
        let value = self.cursor.value()?;
        number::real(value).map_err(|error| self.no_number("stod", error))
    }

    /// Returns the error for an invalid number. The exception in Python depends on how the string was set.
    fn no_number(&self, function: &str, error: NumberError) -> ConfigError {
        let kind = match (error, self.phase) {
            (NumberError::Invalid, ParsePhase::Runtime) => ErrorKind::Value,
            (NumberError::Range, ParsePhase::Runtime) => ErrorKind::Index,
            (NumberError::Invalid, ParsePhase::Startup) => ErrorKind::Runtime,
            (NumberError::Range, ParsePhase::Startup) => self.profile.out_of_range_at_start,
        };
        ConfigError::new(kind, function)
    }

    fn large_segment_size(&mut self) -> Result<u64, ConfigError> {
        let count = self.whole()?;
        if count <= MIN_LARGE_ALLOC_MB {
            return Err(ConfigError::value(format!(
                "CachingAllocator option large_segment_size_mb must be > {MIN_LARGE_ALLOC_MB} MB"
            )));
        }
        Ok(mebibytes(count))
    }

    fn size(&mut self, key: &str) -> Result<u64, ConfigError> {
        let least = self.config.large_segment_size >> 20;
        let count = self.whole()?;
        if count < least {
            return Err(ConfigError::value(format!("CachingAllocator option {key} too small, must be >= {least}")));
        }
        Ok(mebibytes(count))
    }

    fn threshold(&mut self) -> Result<f64, ConfigError> {
        let threshold = self.real()?;
        if threshold > 0.0 && threshold < 1.0 {
            return Ok(threshold);
        }
        Err(ConfigError::value("garbage_collect_threshold is invalid, set it in (0.0, 1.0)"))
    }

    fn fraction(&mut self) -> Result<f64, ConfigError> {
        let fraction = self.real()?;
        if (0.0..=1.0).contains(&fraction) {
            return Ok(fraction);
        }
        Err(ConfigError::value("per_process_memory_fraction is invalid, set it in [0.0, 1.0]"))
    }

    fn threads(&mut self) -> Result<u64, ConfigError> {
        let threads = self.whole()?;
        if !threads.is_power_of_two() {
            let message = format!("Number of register threads has to be power of 2, got {threads}");
            return Err(ConfigError::value(message));
        }
        if threads > MOST_REGISTER_THREADS {
            return Err(ConfigError::value(format!(
                "Number of register threads should be less than or equal to {MOST_REGISTER_THREADS}, got {threads}"
            )));
        }
        Ok(threads)
    }

    /// Parses a setting of the host's allocator that is displayed nowhere and only checked.
    fn pinned_reserve(&mut self) -> Result<(), ConfigError> {
        match self.whole()? {
            0 => Err(ConfigError::value("Pinned reserve segment size has to be greater than 0")),
            _ => Ok(()),
        }
    }

    fn backend(&mut self) -> Result<(), ConfigError> {
        self.cursor.separator()?;
        match self.cursor.operand()? {
            "native" => Ok(()),
            "cudaMallocAsync" => Err(ConfigError::internal(
                &self.profile.lines,
                "tokenizer[i] == get()->name()",
                "cuda/CUDAAllocatorConfig.cpp",
                self.profile.lines.backend,
                "Allocator backend parsed at runtime != allocator backend parsed at load time, \
                 cudaMallocAsync != native",
            )),
            _ => Err(ConfigError::value(super::UNKNOWN_BACKEND)),
        }
    }

    fn divisions(&mut self) -> Result<(), ConfigError> {
        self.cursor.separator()?;
        let value = self.cursor.operand()?;
        if value != "[" {
            let value = self.to_whole(value)?;
            if !value.is_power_of_two() {
                return Err(ConfigError::value("For roundups, the divisions has to be power of 2 "));
            }
            self.config.roundup_power2_divisions = [value; 16];
            return Ok(());
        }
        // The part of the list before a mistake stays in force.
        let mut divisions = self.config.roundup_power2_divisions;
        let mut list = DivisionList::new(&mut divisions, self.profile.rest_overwrites_last_division);
        let outcome = self.division_list(&mut list);
        self.config.roundup_power2_divisions = divisions;
        outcome
    }

    fn division_list(&mut self, list: &mut DivisionList<'_>) -> Result<(), ConfigError> {
        loop {
            self.cursor.advance();
            let boundary = match self.cursor.current() {
                None => {
                    return Err(self
                        .cursor
                        .unclosed("i < tokenizer.size()", "core/AllocatorConfig.cpp", |lines| lines.divisions));
                }
                Some("]") => return Ok(()),
                Some(boundary) => boundary,
            };
            let value = self.whole()?;
            if value != 0 && !value.is_power_of_two() {
                let message = "For roundups, the divisions has to be power of 2 or 0 to disable roundup ";
                return Err(ConfigError::value(message));
            }
            if boundary == ">" {
                list.set_rest(value);
            } else {
                let boundary = self.to_whole(boundary)?;
                list.set(boundary, value).map_err(|error| error.boundary(ConfigError::value))?;
            }
            if self.cursor.peek()? != "]" {
                self.cursor.separator()?;
            }
        }
    }
}

/// Reads how many addresses to reserve: a share as a decimal number, or GiB if it ends in `G` (`parseReserveSpec`).
/// `None` if the text is neither, or not above 0.
fn reserve(text: &str) -> Option<Reserve> {
    let gibibytes = text.strip_suffix(['g', 'G']);
    let value: f64 = gibibytes.unwrap_or(text).parse().ok().filter(|value: &f64| value.is_finite() && *value > 0.0)?;
    Some(match gibibytes {
        Some(_) => Reserve::Bytes((value * f64::from(1 << 30)) as u64),
        None => Reserve::Share(value),
    })
}

fn unrecognized(key: &str, reader: &str) -> ConfigError {
    ConfigError::value(format!("Unrecognized key '{key}' in {reader} allocator config."))
}
