//! The fake driver library: built, put where a program finds it, and steered from within.
//!
//! A process finds libraries where its environment said when it began. So a test that needs one runs itself again in a
//! process of its own ([`on_fake`]), which also gives it fresh devices.

// The library's control functions are C; each call has a note.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use libloading::Library;

use crate::{Folder, artifact};

/// Set in the process that runs on the fake library.
const INSIDE: &str = "VRAMSCOPE_TEST_INSIDE";

/// A folder with the driver's libraries.
#[derive(Debug)]
pub struct FakeFolder(Folder);

impl FakeFolder {
    /// Both libraries under the names that programs look for. `name` keeps folders apart.
    pub fn new(name: &str) -> Result<Self> {
        let folder = Self::empty(name)?;
        // One file under two names is one library, with one state.
        for library in ["libcuda.so.1", "libnvidia-ml.so.1"] {
            std::os::unix::fs::symlink(artifact("libfakecuda.so")?, folder.0.join(library))?;
        }
        Ok(folder)
    }

    /// The driver's library alone, and without one of its functions, as an old driver would be.
    pub fn without_symbol(name: &str, symbol: &str) -> Result<Self> {
        let folder = Self::empty(name)?;
        let mut library = fs::read(artifact("libfakecuda.so")?)?;
        // The loader finds a function by the hash of its name and then the name itself. Where that is another one, the
        // function is not there.
        let old = [b"\0", symbol.as_bytes(), b"\0"].concat();
        let at = library.windows(old.len()).position(|bytes| bytes == old).context("the library has no such symbol")?;
        let last = library.get_mut(at + symbol.len()).context("a symbol without a name")?;
        *last = b'~';
        fs::write(folder.0.join("libcuda.so.1"), library)?;
        Ok(folder)
    }

    /// A folder without libraries.
    pub fn empty(name: &str) -> Result<Self> {
        // The loader takes colons for the ends of folders.
        Ok(Self(Folder::new(&format!("fakecuda-{}", name.replace("::", "-")))?))
    }

    /// Returns the folder's path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Lets a command find the libraries before any real ones.
    pub fn serve(&self, command: &mut Command) {
        let others = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let folders = std::iter::once(self.0.to_path_buf()).chain(std::env::split_paths(&others));
        // A path in here that can't be joined was no use to the loader either.
        let joined = std::env::join_paths(folders).unwrap_or_else(|_| self.0.as_os_str().to_owned());
        command.env("LD_LIBRARY_PATH", joined);
    }
}

/// The name by which a test is run: its module without the crate's name, and its function.
pub fn test_name(module: &str, function: &str) -> String {
    module.split_once("::").map_or_else(|| function.to_owned(), |(_, module)| format!("{module}::{function}"))
}

/// Runs the body of the test `name` in a process of its own that finds the libraries of `folder`, with these variables
/// in its environment. To be called by the test itself, and to do nothing else there.
pub fn within(folder: &FakeFolder, name: &str, variables: &[(&str, &str)], body: fn() -> Result<()>) -> Result<()> {
    if std::env::var_os(INSIDE).is_some_and(|inside| inside == name) {
        return body();
    }
    let mut command = Command::new(std::env::current_exe()?);
    folder.serve(&mut command);
    let command = command.args([name, "--exact", "--nocapture", "--test-threads=1"]).env(INSIDE, name);
    let output = command.envs(variables.iter().copied()).output().context("running the test again")?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (said(&output.stdout), said(&output.stderr));
    ensure!(output.status.success(), "{name} on the fake library: {}\n{out}{err}", output.status);
    // A name that no test has would run nothing, and succeed.
    ensure!(out.contains("1 passed"), "{name} did not run:\n{out}{err}");
    Ok(())
}

/// [`within`] with both libraries.
pub fn on_fake(name: &str, variables: &[(&str, &str)], body: fn() -> Result<()>) -> Result<()> {
    within(&FakeFolder::new(name)?, name, variables, body)
}

/// The control functions of the library that this process uses.
#[derive(Debug)]
pub struct Control(Library);

impl Control {
    /// Of the library that the loader finds, which is the driver's too.
    pub fn new() -> Result<Self> {
        // SAFETY: the library is this project's; its initialisers do nothing.
        Ok(Self(unsafe { Library::new("libcuda.so.1") }.context("loading the fake library")?))
    }

    /// Changes a device's capacity in bytes.
    pub fn set_capacity(&self, device: u32, bytes: u64) -> Result<()> {
        // SAFETY: the type is that of the function in `collector/fakecuda`.
        let function = unsafe { self.0.get::<extern "C" fn(u32, u64)>(b"fakecuda_set_capacity")? };
        function(device, bytes);
        Ok(())
    }

    /// Bytes of a device that are taken.
    pub fn used(&self, device: u32) -> Result<u64> {
        // SAFETY: as above.
        let function = unsafe { self.0.get::<extern "C" fn(u32) -> u64>(b"fakecuda_used")? };
        Ok(function(device))
    }

    /// Holds a stream, or resumes it.
    pub fn hold(&self, stream: i64, is_held: bool) -> Result<()> {
        // SAFETY: as above.
        let function = unsafe { self.0.get::<extern "C" fn(usize, u32)>(b"fakecuda_hold")? };
        function(stream as usize, u32::from(is_held));
        Ok(())
    }

    /// Lets `times` calls of a function fail with `code`, after `after` more that do not.
    pub fn fail(&self, symbol: &str, after: u32, times: u32, code: u32) -> Result<()> {
        let symbol = CString::new(symbol)?;
        // SAFETY: as above.
        let function = unsafe { self.0.get::<unsafe extern "C" fn(*const c_char, u32, u32, u32)>(b"fakecuda_fail")? };
        // SAFETY: the text ends with 0 and outlives the call.
        unsafe { function(symbol.as_ptr(), after, times, code) };
        Ok(())
    }

    /// How often a function was called.
    pub fn calls(&self, symbol: &str) -> Result<u64> {
        let symbol = CString::new(symbol)?;
        // SAFETY: as above.
        let function = unsafe { self.0.get::<unsafe extern "C" fn(*const c_char) -> u64>(b"fakecuda_calls")? };
        // SAFETY: the text ends with 0 and outlives the call.
        Ok(unsafe { function(symbol.as_ptr()) })
    }

    /// How many things were not given back.
    pub fn leftovers(&self) -> Result<u64> {
        // SAFETY: as above.
        let function = unsafe { self.0.get::<extern "C" fn() -> u64>(b"fakecuda_leftovers")? };
        Ok(function())
    }

    /// Whether the device can read and write all of a range.
    pub fn is_open(&self, address: u64, size: u64) -> Result<bool> {
        // SAFETY: as above.
        let function = unsafe { self.0.get::<extern "C" fn(u64, u64) -> u32>(b"fakecuda_is_open")? };
        Ok(function(address, size) != 0)
    }
}
