//! A small S3 server for tests, which is slow, silent or broken where a test wants it.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// The most that a test waits.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the server does with a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Reaction {
    /// Reads it and answers.
    Answer,
    /// Reads so many bytes of it a second, then answers.
    Slow(usize),
    /// Reads it and answers with this status.
    Status(u16),
    /// Reads it and does what it should, but closes the connection instead of answering.
    Lose,
    /// Reads so many bytes of it a second, then closes the connection.
    LoseLate(usize),
    /// Reads it and never answers.
    Silent,
    /// Does not even read it.
    Deaf,
}

/// Tells how to react to a request: its method, what it is about, and how often the same came before.
pub(super) type React = fn(&str, &str, usize) -> Reaction;

#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Each request: its method and what it is about.
    pub(super) requests: Vec<String>,
    /// The parts of the upload, by their number.
    pub(super) parts: BTreeMap<usize, Vec<u8>>,
    pub(super) object: Option<Vec<u8>>,
    /// Whether the upload was aborted: parts that arrive later are refused.
    is_aborted: bool,
    /// Parts that are being received, and the most of them at once.
    pub(super) receiving: usize,
    pub(super) most: usize,
}

/// A server of one bucket. It runs until the process ends.
#[derive(Clone)]
pub(super) struct S3 {
    url: String,
    seen: Arc<(Mutex<Seen>, Condvar)>,
    react: React,
}

impl S3 {
    pub(super) fn start(react: React) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let listener: TcpListener = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.set_recv_buffer_size(16 << 10).unwrap();
            socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
            socket.listen(64).unwrap().into_std().unwrap()
        });
        listener.set_nonblocking(false).unwrap();
        let s3 = Self { url: format!("http://{}", listener.local_addr().unwrap()), seen: Arc::default(), react };
        let server = s3.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = server.clone();
                // Ends when the client has closed the connection.
                thread::spawn(move || while server.serve(&stream).is_ok() {});
            }
        });
        s3
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.0.lock().unwrap()
    }

    /// Waits until something was seen.
    pub(super) fn wait(&self, is_seen: impl Fn(&Seen) -> bool) {
        let waited = self.seen.1.wait_timeout_while(self.seen(), PATIENCE, |seen| !is_seen(seen)).unwrap();
        assert!(!waited.1.timed_out(), "{:?}", waited.0.requests);
    }

    /// Returns how many requests there were of a kind.
    pub(super) fn count(&self, kind: &str) -> usize {
        self.seen().requests.iter().filter(|request| request.starts_with(kind)).count()
    }

    /// Returns the variables that a client needs.
    pub(super) fn variables(&self) -> impl Iterator<Item = (String, String)> {
        let variables = [
            ("aws_access_key_id", "k"),
            ("aws_secret_access_key", "s"),
            ("aws_region", "us-east-1"),
            ("aws_allow_http", "true"),
            ("aws_endpoint", &self.url),
        ];
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter()
    }

    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        let mut reader = BufReader::with_capacity(4 << 10, stream);
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
            if head.is_empty() {
                head = line;
            }
        }
        let mut words = head.split(' ');
        let (method, target) = (words.next().unwrap().to_ascii_uppercase(), words.next().unwrap());
        let number = target.split(['?', '&']).find_map(|field| field.strip_prefix("partnumber="));
        let about = match (number, target.contains("uploadid="), target.contains("?uploads")) {
            (Some(number), ..) => format!("part {number}"),
            (None, true, _) => "upload".to_owned(),
            (None, _, true) => "uploads".to_owned(),
            _ if target.contains("list-type") => "list".to_owned(),
            _ => "object".to_owned(),
        };
        let request = format!("{method} {about}");
        let before = self.seen().requests.iter().filter(|earlier| **earlier == request).count();
        {
            let mut seen = self.seen();
            seen.requests.push(request);
            if number.is_some() {
                seen.receiving += 1;
                seen.most = seen.most.max(seen.receiving);
            }
            self.seen.1.notify_all();
        }
        let reaction = (self.react)(&method, &about, before);
        let body = if reaction == Reaction::Deaf { Ok(Vec::new()) } else { read(&mut reader, length, reaction) };
        if number.is_some() {
            self.seen().receiving -= 1;
        }
        let body = body?;
        match reaction {
            Reaction::Silent | Reaction::Deaf => {
                // Until the client gives up.
                thread::sleep(PATIENCE);
                return Err(io::ErrorKind::TimedOut.into());
            }
            Reaction::LoseLate(_) => return Err(io::ErrorKind::ConnectionReset.into()),
            Reaction::Status(status) => return answer(stream, status, &[], b"<Error><Code>X</Code></Error>"),
            _ => {}
        }
        let (status, headers, body) = self.act(&method, &about, body);
        self.seen.1.notify_all();
        if reaction == Reaction::Lose {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        answer(stream, status, &headers, &body)
    }

    /// Does what a request asks for.
    fn act(&self, method: &str, about: &str, body: Vec<u8>) -> (u16, Vec<String>, Vec<u8>) {
        let mut seen = self.seen();
        let xml = |text: &str| (200, Vec::new(), text.as_bytes().to_vec());
        match (method, about.strip_prefix("part ")) {
            ("PUT", Some(_)) if seen.is_aborted => (404, Vec::new(), Vec::new()),
            ("PUT", Some(number)) => {
                seen.parts.insert(number.parse().unwrap(), body);
                (200, vec!["ETag: \"x\"".to_owned()], Vec::new())
            }
            ("POST", _) if about == "uploads" => xml(
                "<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><UploadId>u</UploadId></InitiateMultipartUploadResult>",
            ),
            ("POST", _) => {
                seen.object = Some(std::mem::take(&mut seen.parts).into_values().flatten().collect());
                xml(
                    "<CompleteMultipartUploadResult><Location>l</Location><Bucket>b</Bucket><Key>k</Key><ETag>\"x\"</ETag></CompleteMultipartUploadResult>",
                )
            }
            ("DELETE", _) => {
                seen.parts.clear();
                seen.is_aborted = true;
                (204, Vec::new(), Vec::new())
            }
            ("GET", _) if about == "list" => {
                xml("<ListBucketResult><Name>b</Name><IsTruncated>false</IsTruncated></ListBucketResult>")
            }
            ("HEAD", _) => match &seen.object {
                Some(object) => {
                    let dated = "Last-Modified: Sun, 01 Nov 2026 00:00:00 GMT".to_owned();
                    (
                        200,
                        vec![format!("Content-Length: {}", object.len()), "ETag: \"x\"".to_owned(), dated],
                        Vec::new(),
                    )
                }
                None => (404, Vec::new(), Vec::new()),
            },
            _ => (400, Vec::new(), Vec::new()),
        }
    }
}

fn read(reader: &mut impl Read, length: usize, reaction: Reaction) -> io::Result<Vec<u8>> {
    let (mut body, begun) = (Vec::new(), Instant::now());
    while body.len() < length {
        let mut piece = vec![0; (length - body.len()).min(8 << 10)];
        reader.read_exact(&mut piece)?;
        body.extend(piece);
        if let Reaction::Slow(rate) | Reaction::LoseLate(rate) = reaction {
            let due = begun + Duration::from_secs_f64(body.len() as f64 / rate as f64);
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
    }
    Ok(body)
}

fn answer(mut stream: &TcpStream, status: u16, headers: &[String], body: &[u8]) -> io::Result<()> {
    let has_length = headers.iter().any(|header| header.starts_with("Content-Length"));
    let length = if has_length { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    stream.write_all(format!("HTTP/1.1 {status} X\r\n{headers}{length}\r\n").as_bytes())?;
    stream.write_all(body)
}
