//! Rewrites texts so that they say less.

use super::Paths;
use super::who::{NAME_BYTES, Who, home, is_gap, is_separator};
use trace::Settings;

/// Folders of installed packages: a package may be named like a user.
const PACKAGES: [&[u8]; 2] = [b"site-packages", b"dist-packages"];

/// Rewrites paths and names in texts.
#[derive(Debug)]
pub(super) struct Rewriter<'a> {
    paths: Paths,
    keeps_hosts: bool,
    who: &'a Who,
}

impl<'a> Rewriter<'a> {
    pub(super) fn new(paths: Paths, keeps_hosts: bool, who: &'a Who) -> Self {
        Self { paths, keeps_hosts, who }
    }

    /// Rewrites a text.
    pub(super) fn text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.bytes(text.as_bytes())).into_owned()
    }

    /// Rewrites the bytes of a text, which may be no UTF-8.
    pub(super) fn bytes(&self, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let length = rest.iter().position(|byte| is_gap(*byte)).unwrap_or(rest.len());
            let (token, after) = rest.split_at(length);
            self.token(token, &mut out);
            let (gap, after) = after.split_at(after.len().min(1));
            out.extend_from_slice(gap);
            rest = after;
        }
        out
    }

    /// Rewrites the texts of settings.
    pub(super) fn settings(&self, settings: &Settings) -> Settings {
        let written = settings.as_written.iter().map(|(name, value)| (self.text(name), self.text(value)));
        Settings { conf: self.text(&settings.conf), as_written: written.collect(), ..settings.clone() }
    }

    /// Rewrites a path, which may have spaces.
    pub(super) fn path(&self, path: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(path.len());
        self.token(path, &mut out);
        out
    }

    /// Rewrites a part of a text without gaps: a path, or a word.
    fn token(&self, token: &[u8], out: &mut Vec<u8>) {
        let is_path = token.iter().any(|byte| is_separator(*byte));
        let (mut rest, paths) = (token, if is_path { self.paths } else { Paths::Whole });
        match paths {
            Paths::FileNames => rest = token.rsplit(|byte| is_separator(*byte)).next().unwrap_or(token),
            Paths::WithoutHomes => {
                if let Some((_, end)) = home(token) {
                    out.push(b'~');
                    rest = token.get(end..).unwrap_or(&[]);
                }
            }
            Paths::Whole => {}
        }
        // Parts of a path, and the words in each.
        let mut is_package = false;
        let mut at = 0_usize;
        for part in rest.split(|byte| is_separator(*byte)) {
            if let Some(separator) = at.checked_sub(1).and_then(|before| rest.get(before)) {
                out.push(*separator);
            }
            at += part.len() + 1;
            if is_package {
                out.extend_from_slice(part);
            } else {
                self.part(part, out);
            }
            is_package |= PACKAGES.contains(&part);
        }
    }

    /// Rewrites one component of a path, or a single word.
    fn part(&self, part: &[u8], out: &mut Vec<u8>) {
        let is_user = self.paths != Paths::Whole && part.len() >= NAME_BYTES && self.who.users.contains(part);
        if is_user {
            return out.extend_from_slice(b"user");
        }
        // A host stands within a name, too: `run-node17-3`.
        let host = |from: usize| {
            let hosts = self.who.hosts.iter().filter(|_| !self.keeps_hosts);
            let rest = part.get(from..).unwrap_or(&[]);
            hosts.filter(|host| rest.starts_with(host)).map(Vec::len).max()
        };
        let mut at = 0_usize;
        while let Some(&byte) = part.get(at) {
            let before = at.checked_sub(1).and_then(|before| part.get(before));
            let is_start = before.is_none_or(|byte| !byte.is_ascii_alphanumeric());
            match host(at).filter(|_| is_start) {
                Some(length) if part.get(at + length).is_none_or(|byte| !byte.is_ascii_alphanumeric()) => {
                    out.extend_from_slice(b"host");
                    at += length;
                }
                _ => {
                    out.push(byte);
                    at += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who() -> Who {
        let set = |names: &[&str]| names.iter().map(|name| name.as_bytes().to_vec()).collect();
        Who { users: set(&["alice", "torch"]), hosts: set(&["node17", "node17.example.org"]) }
    }

    #[test]
    fn texts_say_less() {
        let who = who();
        // A text; without home folders; file names only.
        for (text, without_homes, file_names) in [
            ("/home/alice/train.py", "~/train.py", "train.py"),
            ("/mnt/alice/train.py", "/mnt/user/train.py", "train.py"),
            ("C:\\Users\\alice\\a b.py", "~\\a b.py", "a b.py"),
            ("/usr/lib/site-packages/torch/nn.py", "/usr/lib/site-packages/torch/nn.py", "nn.py"),
            ("/opt/torch/x.py", "/opt/user/x.py", "x.py"),
            ("step of alice on node17", "step of user on host", "step of user on host"),
            ("node17.example.org:5000", "host:5000", "host:5000"),
            ("node170 run-node17-3", "node170 run-host-3", "node170 run-host-3"),
            ("load(\"/home/alice/w.pt\")", "load(\"~/w.pt\")", "load(\"w.pt\")"),
            ("forward", "forward", "forward"),
            ("", "", ""),
        ] {
            let rewrite = |paths, keeps| Rewriter::new(paths, keeps, &who).text(text);
            assert_eq!(rewrite(Paths::WithoutHomes, false), without_homes);
            assert_eq!(rewrite(Paths::FileNames, false), file_names);
            assert_eq!(rewrite(Paths::Whole, true), text);
        }
        let bytes = Rewriter::new(Paths::WithoutHomes, false, &who).bytes(b"/home/alice/\xff.py");
        assert_eq!(bytes, b"~/\xff.py");
    }
}
