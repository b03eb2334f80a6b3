//! Compression of the page's files.
//!
//! A file is compressed once and sent often, so the slowest settings are the right ones. Results are kept in a folder under the hash
//! of their content, so that a build compresses only what has changed. Brotli is for what is published: the page of a program that
//! somebody builds goes to this machine or one nearby, where a quarter more bytes are not worth a compiler's seconds.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;

/// A content coding of HTTP.
#[derive(Clone, Copy)]
pub(crate) enum Coding {
    #[cfg(feature = "published-page")]
    Brotli,
    Gzip,
}

impl Coding {
    /// The codings of this build.
    pub(crate) const ALL: &[Self] = &[
        #[cfg(feature = "published-page")]
        Self::Brotli,
        Self::Gzip,
    ];

    /// The extension of files in this coding.
    const fn extension(self) -> &'static str {
        match self {
            #[cfg(feature = "published-page")]
            Self::Brotli => "br",
            Self::Gzip => "gz",
        }
    }
}

/// Compresses files, and keeps the results.
pub(crate) struct Packer {
    folder: PathBuf,
    used: BTreeSet<OsString>,
}

impl Packer {
    /// Creates a packer that keeps its results in `folder`.
    pub(crate) fn new(folder: PathBuf) -> Result<Self> {
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        Ok(Self { folder, used: BTreeSet::new() })
    }

    /// Compresses what is not kept yet, on all cores, so that [`Packer::pack`] finds it. `files` are contents and their hashes.
    pub(crate) fn prepare(&self, files: &[(Vec<u8>, String)]) -> Result<()> {
        let next = AtomicUsize::new(0);
        let work = || -> Result<()> {
            loop {
                let place = next.fetch_add(1, Ordering::Relaxed);
                let Some((plain, hash)) = files.get(place) else { return Ok(()) };
                // Of equal files, the first alone: two threads must not write one result.
                if files.iter().position(|(_, other)| other == hash) != Some(place) {
                    continue;
                }
                for &coding in Coding::ALL {
                    self.packed(plain, hash, coding)?;
                }
            }
        };
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        thread::scope(|scope| {
            let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("no compression panics"))
        })
    }

    /// Returns the file that holds the compressed form of `plain`; `None` if compression doesn't make it smaller.
    pub(crate) fn pack(&mut self, plain: &[u8], hash: &str, coding: Coding) -> Result<Option<PathBuf>> {
        let path = self.packed(plain, hash, coding)?;
        self.used.extend(path.file_name().map(OsString::from));
        let is_smaller = fs::metadata(&path)?.len() < plain.len() as u64;
        Ok(is_smaller.then_some(path))
    }

    /// Returns the file that holds the compressed form of `plain`, which is made if it is not there.
    fn packed(&self, plain: &[u8], hash: &str, coding: Coding) -> Result<PathBuf> {
        let path = self.folder.join(format!("{hash}.{}", coding.extension()));
        if !path.exists() {
            let packed = match coding {
                #[cfg(feature = "published-page")]
                Coding::Brotli => brotli(plain)?,
                Coding::Gzip => gzip(plain)?,
            };
            // Renamed when it is whole: a build that is interrupted must not leave half a file.
            let mut part = path.clone();
            part.as_mut_os_string().push(".part");
            fs::write(&part, packed).with_context(|| format!("writing {}", part.display()))?;
            fs::rename(&part, &path).with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(path)
    }

    /// Deletes results of earlier builds.
    pub(crate) fn prune(self) -> Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if !self.used.contains(&entry.file_name()) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

/// Compresses in three ways, and returns the shortest result. Which one that is differs from file to file.
#[cfg(feature = "published-page")]
fn brotli(plain: &[u8]) -> Result<Vec<u8>> {
    use brotli::enc::BrotliEncoderParams;
    use brotli::enc::backward_references::BrotliEncoderMode;

    use BrotliEncoderMode::{BROTLI_MODE_FONT as FONT, BROTLI_MODE_GENERIC as GENERIC};

    let with = |(mode, lgblock)| {
        let params = BrotliEncoderParams {
            quality: 11,
            mode,
            lgblock,
            size_hint: plain.len(),
            ..BrotliEncoderParams::default()
        };
        let mut packed = Vec::new();
        brotli::BrotliCompress(&mut &plain[..], &mut packed, &params).context("compressing with Brotli").map(|_| packed)
    };
    let all = [(FONT, 16), (FONT, 19), (GENERIC, 18)].map(with).into_iter().collect::<Result<Vec<_>>>()?;
    Ok(all.into_iter().min_by_key(Vec::len).unwrap_or_default())
}

fn gzip(plain: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain)?;
    Ok(encoder.finish()?)
}
