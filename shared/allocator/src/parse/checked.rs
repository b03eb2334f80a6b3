//! The parser for torch up to 2.9: one pass, every separator is checked, and every error is a `RuntimeError`.

use super::super::config::AllocatorConfig;
use super::super::profile::Profile;
use super::divisions::DivisionList;
use super::error::ConfigError;
use super::number::{self, NumberError};
use super::tokens::tokenize;
use super::{mebibytes, reset};

/// Limit of `pinned_num_register_threads`.
const MOST_REGISTER_THREADS: u64 = 128;
/// Both size options must be above this, in MiB: the large segment.
const LARGE_BUFFER_MB: u64 = 20;

pub(super) fn read(conf: &str, profile: &Profile, config: &mut AllocatorConfig) -> Result<(), ConfigError> {
    // PyTorch passes the string through `c_str()` here.
    let conf = conf.split('\0').next().unwrap_or_default();
    reset(conf, config);
    // Only blanks are dropped: a tab or newline stays in its word.
    let tokens = tokenize(conf, |c| c == ' ');
    Reader { tokens: &tokens, at: 0, profile, config }.read()
}

/// The tokens, and the index of the current one.
struct Reader<'a> {
    tokens: &'a [String],
    at: usize,
    profile: &'a Profile,
    config: &'a mut AllocatorConfig,
}

impl<'a> Reader<'a> {
    fn read(mut self) -> Result<(), ConfigError> {
        while let Some(key) = self.current() {
            self.setting(key)?;
            self.at += 1;
            if self.current().is_some() {
                self.at -= 1;
                self.separator(",")?;
                self.at += 1;
            }
        }
        Ok(())
    }

    fn setting(&mut self, key: &str) -> Result<(), ConfigError> {
        match key {
            "max_split_size_mb" => self.config.max_split_size = self.size(key)?,
            "max_non_split_rounding_mb" if self.profile.knows_setting(key) => {
                self.config.max_non_split_rounding = self.size(key)?;
            }
            "garbage_collection_threshold" => self.config.garbage_collection_threshold = self.threshold(key)?,
            "roundup_power2_divisions" => self.divisions(key)?,
            "backend" => self.backend()?,
            "expandable_segments" => self.config.expandable_segments = self.flag(key, None)?,
            "graph_capture_record_stream_reuse" if self.profile.knows_setting(key) => {
                self.config.graph_capture_record_stream_reuse = self.flag(key, None)?;
            }
            "release_lock_on_cudamalloc" | "release_lock_on_hipmalloc" => {
                self.config.release_lock_on_cudamalloc = self.flag("release_lock_on_cudamalloc", None)?;
            }
            "pinned_use_cuda_host_register" | "pinned_use_hip_host_register" => {
                let key = "pinned_use_cuda_host_register";
                self.config.pinned_use_cuda_host_register = self.flag(key, Some(key))?;
            }
            "pinned_num_register_threads" => self.config.pinned_num_register_threads = self.threads(key)?,
            // A setting of the host's allocator, displayed nowhere.
            "pinned_use_background_threads" if self.profile.knows_setting(key) => drop(self.flag(key, Some(key))?),
            _ => return Err(ConfigError::runtime(format!("Unrecognized CachingAllocator option: {key}"))),
        }
        Ok(())
    }

    fn current(&self) -> Option<&'a str> {
        self.tokens.get(self.at).map(String::as_str)
    }

    fn next(&mut self) -> Option<&'a str> {
        self.at += 1;
        self.current()
    }

    fn separator(&mut self, separator: &str) -> Result<(), ConfigError> {
        if self.next() == Some(separator) {
            return Ok(());
        }
        Err(ConfigError::runtime(format!("Error parsing CachingAllocator settings, expected {separator}")))
    }

    fn value(&mut self, key: &str) -> Result<&'a str, ConfigError> {
        self.separator(":")?;
        self.next().ok_or_else(|| ConfigError::runtime(format!("Error, expecting {key} value")))
    }

    fn size(&mut self, key: &str) -> Result<u64, ConfigError> {
        let count = int(self.value(key)?)?;
        if count <= LARGE_BUFFER_MB {
            let message = format!("CachingAllocator option {key} too small, must be > {LARGE_BUFFER_MB}");
            return Err(ConfigError::runtime(message));
        }
        Ok(mebibytes(count))
    }

    fn threshold(&mut self, key: &str) -> Result<f64, ConfigError> {
        let threshold = number::real(self.value(key)?).map_err(named("stod"))?;
        if threshold.is_nan() || threshold <= 0.0 {
            return Err(ConfigError::runtime("garbage_collect_threshold too small, set it 0.0~1.0"));
        }
        if threshold >= 1.0 {
            return Err(ConfigError::runtime("garbage_collect_threshold too big, set it 0.0~1.0"));
        }
        Ok(threshold)
    }

    /// Some flags have their own message for a missing value, others use that for a wrong one.
    fn flag(&mut self, key: &str, expecting: Option<&str>) -> Result<bool, ConfigError> {
        let value = match expecting {
            Some(key) => Some(self.value(key)?),
            None => {
                self.separator(":")?;
                self.next()
            }
        };
        match value {
            Some("True") => Ok(true),
            Some("False") => Ok(false),
            _ => Err(ConfigError::runtime(format!("Expected a single True/False argument for {key}"))),
        }
    }

    fn threads(&mut self, key: &str) -> Result<u64, ConfigError> {
        let threads = int(self.value(key)?)?;
        if !threads.is_power_of_two() {
            return Err(ConfigError::runtime("Number of register threads has to be power of 2 "));
        }
        if threads > MOST_REGISTER_THREADS {
            let most = MOST_REGISTER_THREADS;
            let message = format!("Number of register threads should be less than or equal to {most}");
            return Err(ConfigError::runtime(message));
        }
        Ok(threads)
    }

    fn backend(&mut self) -> Result<(), ConfigError> {
        self.separator(":")?;
        match self.next() {
            None => Err(ConfigError::runtime("Error parsing backend value")),
            Some("native") => Ok(()),
            Some("cudaMallocAsync") => Err(ConfigError::internal(
                &self.profile.lines,
                "config[i] == get()->name()",
                "cuda/CUDAAllocatorConfig.cpp",
                self.profile.lines.backend,
                "Allocator backend parsed at runtime != allocator backend parsed at load time",
            )),
            Some(_) => Err(ConfigError::runtime(super::UNKNOWN_BACKEND)),
        }
    }

    fn divisions(&mut self, key: &str) -> Result<(), ConfigError> {
        let value = self.value(key)?;
        if value != "[" {
            let value = int(value)?;
            if !value.is_power_of_two() {
                let message = format!("For roundups, the {} has to be power of 2 ", self.profile.divisions_word);
                return Err(ConfigError::runtime(message));
            }
            self.config.roundup_power2_divisions = [value; 16];
            return Ok(());
        }
        let mut divisions = self.config.roundup_power2_divisions;
        let mut list = DivisionList::new(&mut divisions, self.profile.rest_overwrites_last_division);
        let outcome = self.division_list(&mut list);
        self.config.roundup_power2_divisions = divisions;
        outcome
    }

    /// A list that ends with the string, after a comma, needs no closing bracket.
    fn division_list(&mut self, list: &mut DivisionList<'_>) -> Result<(), ConfigError> {
        while let Some(boundary) = self.next().filter(|&token| token != "]") {
            self.separator(":")?;
            let value = self.next();
            let value =
                int(value.ok_or_else(|| ConfigError::runtime("Error parsing roundup_power2_divisions value"))?)?;
            if value != 0 && !value.is_power_of_two() {
                let word = self.profile.divisions_word;
                let message = format!("For roundups, the {word} has to be power of 2 or 0 to disable roundup ");
                return Err(ConfigError::runtime(message));
            }
            if boundary == ">" {
                list.set_rest(value);
            } else {
                let boundary = number::whole(boundary).map_err(named("stoul"))?;
                list.set(boundary, value).map_err(|error| error.boundary(ConfigError::runtime))?;
            }
            match self.tokens.get(self.at + 1).map(String::as_str) {
                Some("]") => {}
                // PyTorch reads past the end of its tokens here; a segmentation fault was observed.
                None => return Err(ConfigError::undefined()),
                Some(_) => self.separator(",")?,
            }
        }
        Ok(())
    }
}

fn int(text: &str) -> Result<u64, ConfigError> {
    number::int(text).map_err(named("stoi"))
}

fn named(function: &'static str) -> impl Fn(NumberError) -> ConfigError {
    move |_| ConfigError::runtime(function)
}
