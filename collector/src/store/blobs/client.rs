//! The client of an object store, and its time-outs.
//!
//! The client of `object_store` gives each request a fixed time. What fits into it depends on the network: several parts at
//! once on a slow one never do. So a part has no deadline here. Its request ends when nothing moves: see [`Transfer`].

use std::collections::VecDeque;
use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, SizeHint};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::{
    ClientConfigKey, ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService, ReqwestConnector,
};
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreScheme, RetryConfig};
use tokio::time::{Instant, sleep_until, timeout};
use trace::limits::ObjectLimits;
use url::Url;

use crate::store::{StoreError, StoreResult};

/// Opens the object store of a URL such as `s3://bucket/prefix`. Returns it with the path in it.
pub(super) fn open(
    url: &Url,
    options: impl Iterator<Item = (String, String)>,
    limits: ObjectLimits,
) -> object_store::Result<(Box<dyn ObjectStore>, Path)> {
    let (scheme, path) = ObjectStoreScheme::parse(url)?;
    let retry_timeout = Duration::from_secs(limits.repeat_seconds);
    let retry = RetryConfig { max_retries: limits.retries, retry_timeout, ..RetryConfig::default() };
    macro_rules! build {
        ($builder:ty) => {{
            let builder = <$builder>::new().with_url(url.to_string()).with_retry(retry);
            let builder = options.fold(builder, |builder, (key, value)| match key.to_ascii_lowercase().parse() {
                Ok(key) => builder.with_config(key, value),
                // The environment has other variables, too.
                Err(_) => builder,
            });
            Box::new(builder.with_http_connector(Connector(limits)).build()?)
        }};
    }
    let store: Box<dyn ObjectStore> = match scheme {
        ObjectStoreScheme::AmazonS3 => build!(AmazonS3Builder),
        ObjectStoreScheme::GoogleCloudStorage => build!(GoogleCloudStorageBuilder),
        ObjectStoreScheme::MicrosoftAzure => build!(MicrosoftAzureBuilder),
        _ => return object_store::parse_url_opts(url, options),
    };
    Ok((store, path))
}

/// Waits for a request with a small body and answer, up to a number of seconds.
pub(super) async fn within<T>(seconds: u64, request: impl Future<Output = object_store::Result<T>>) -> StoreResult<T> {
    match timeout(Duration::from_secs(seconds), request).await {
        Ok(done) => done.map_err(error_of),
        Err(_) => {
            let silent = format!("the object store has not answered for {seconds} s");
            Err(StoreError::Io(io::Error::new(io::ErrorKind::TimedOut, silent)))
        }
    }
}

/// Converts an error of an object store. If the store does not answer or can't be reached, the result has the kind
/// [`io::ErrorKind::TimedOut`].
pub(super) fn error_of(error: object_store::Error) -> StoreError {
    if matches!(error, object_store::Error::NotFound { .. }) {
        return StoreError::Missing;
    }
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(next) = cause {
        let kind = next.downcast_ref::<HttpError>().map(HttpError::kind);
        if matches!(kind, Some(HttpErrorKind::Timeout | HttpErrorKind::Connect | HttpErrorKind::Interrupted)) {
            return StoreError::Io(io::Error::new(io::ErrorKind::TimedOut, error));
        }
        cause = next.source();
    }
    StoreError::Io(io::Error::other(error))
}

/// Returns the sentence for people that says that an object store can't be used.
pub(in crate::store) fn failure(url: &str, error: &dyn fmt::Display) -> String {
    format!("The object store {url} can't be used: {error}. Check its name and the credentials in the environment.")
}

/// Makes the client of an object store.
#[derive(Debug)]
struct Connector(ObjectLimits);

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let failed = |error: reqwest::Error| object_store::Error::Generic { store: "HTTP", source: error.into() };
        let option = |key| options.get_config_value(&key);
        let is_set = |key| option(key).is_some_and(|value| value == "true");
        let mut parts = reqwest::Client::builder()
            .http1_only()
            .connect_timeout(Duration::from_secs(self.0.stall_seconds))
            .https_only(!is_set(ClientConfigKey::AllowHttp))
            .tls_danger_accept_invalid_certs(is_set(ClientConfigKey::AllowInvalidCertificates));
        if let Some(url) = option(ClientConfigKey::ProxyUrl) {
            let excluded = option(ClientConfigKey::ProxyExcludes).and_then(|text| reqwest::NoProxy::from_string(&text));
            parts = parts.proxy(reqwest::Proxy::all(url).map_err(failed)?.no_proxy(excluded));
        }
        if let Some(certificate) = option(ClientConfigKey::ProxyCaCertificate) {
            let certificate = reqwest::Certificate::from_pem(certificate.as_bytes()).map_err(failed)?;
            parts = parts.tls_certs_merge([certificate]);
        }
        let parts = parts.build().map_err(failed)?;
        Ok(HttpClient::new(Service { small: ReqwestConnector::default().connect(options)?, parts, limits: self.0 }))
    }
}

/// Sends parts as long as they move, and all other requests as `object_store` does.
#[derive(Debug)]
struct Service {
    small: HttpClient,
    parts: reqwest::Client,
    limits: ObjectLimits,
}

impl HttpService for Service {
    fn call<'a, 'b>(
        &'a self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        let is_part = request.body().content_length() > self.limits.piece_bytes;
        Box::pin(async move { if is_part { self.part(request).await } else { self.small.execute(request).await } })
    }
}

impl Service {
    /// Sends a part. Its answer is short, so it is read at once.
    async fn part(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (head, body) = request.into_parts();
        let drain = body.content_length() as u64 / self.limits.least_bytes_per_second.max(1);
        let transfer = Arc::new(Transfer::new(Duration::from_secs(drain)));
        let body = PartBody { left: frames(body), piece: self.limits.piece_bytes, transfer: Arc::clone(&transfer) };
        let request = self.parts.request(head.method, head.uri.to_string()).headers(head.headers);
        let answer = async move {
            let answer = request.body(reqwest::Body::wrap(body)).send().await?;
            let (status, headers) = (answer.status(), answer.headers().clone());
            let mut response = hyper::Response::new(HttpResponseBody::from(answer.bytes().await?));
            (*response.status_mut(), *response.headers_mut()) = (status, headers);
            Ok(response)
        };
        tokio::select! {
            answer = answer => answer.map_err(http_error),
            stalled = transfer.stalled(Duration::from_secs(self.limits.stall_seconds)) => {
                Err(HttpError::new(HttpErrorKind::Timeout, stalled))
            }
        }
    }
}

/// A part can be sent again whatever broke, so all that is no time-out and no refused connection counts as interrupted.
fn http_error(error: reqwest::Error) -> HttpError {
    let kind = match (error.is_timeout(), error.is_connect()) {
        (true, _) => HttpErrorKind::Timeout,
        (_, true) => HttpErrorKind::Connect,
        _ => HttpErrorKind::Interrupted,
    };
    HttpError::new(kind, error.without_url())
}

/// Nothing moved for so many seconds.
#[derive(Debug, thiserror::Error)]
#[error("nothing moved for {0} s")]
struct Stalled(u64);

/// The progress of a part that is being sent.
#[derive(Debug)]
struct Transfer(Mutex<Progress>);

#[derive(Debug)]
struct Progress {
    begun: Instant,
    /// When the connection took a piece last.
    last: Instant,
    /// Whether it has taken the last one.
    is_sent: bool,
    /// The time that the last bytes may take from the connection to the store.
    drain: Duration,
}

impl Transfer {
    fn new(drain: Duration) -> Self {
        let now = Instant::now();
        Self(Mutex::new(Progress { begun: now, last: now, is_sent: false, drain }))
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        // Every change is complete at every moment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when nothing has moved for a time.
    async fn stalled(&self, stall: Duration) -> Stalled {
        loop {
            let due = self.progress().due(stall);
            if Instant::now() >= due {
                return Stalled(stall.as_secs());
            }
            sleep_until(due).await;
        }
    }
}

impl Progress {
    /// Returns the time at which the part counts as stalled. The last bytes may still be in buffers on the way, which take as
    /// long again to drain as the part took, or as the slowest network needs.
    fn due(&self, stall: Duration) -> Instant {
        let on_its_way = if self.is_sent { self.drain.max(self.last - self.begun) } else { Duration::ZERO };
        self.last + stall + on_its_way
    }
}

/// A part as the body of a request, piece by piece.
struct PartBody {
    left: VecDeque<Bytes>,
    /// Bytes of a piece.
    piece: usize,
    transfer: Arc<Transfer>,
}

impl Body for PartBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Self { left, piece, transfer } = &mut *self;
        let Some(mut bytes) = left.pop_front() else { return Poll::Ready(None) };
        let rest = bytes.split_off(bytes.len().min(*piece));
        if !rest.is_empty() {
            left.push_front(rest);
        }
        let piece = Piece { bytes, is_last: left.is_empty(), transfer: Arc::clone(transfer) };
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.iter().map(|bytes| bytes.len() as u64).sum())
    }
}

/// A piece, which the connection drops when it has written it.
struct Piece {
    bytes: Bytes,
    is_last: bool,
    transfer: Arc<Transfer>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let mut progress = self.transfer.progress();
        progress.last = Instant::now();
        progress.is_sent |= self.is_last;
    }
}

/// Returns the frames of a body that is in memory.
fn frames(mut body: HttpRequestBody) -> VecDeque<Bytes> {
    let mut context = Context::from_waker(Waker::noop());
    let mut frames = VecDeque::new();
    while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut context) {
        frames.extend(frame.into_data().ok().filter(|bytes| !bytes.is_empty()));
    }
    frames
}
