//! Who sends a request, and whether they may do what it asks for.

use std::net::{IpAddr, Ipv4Addr};

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::task::spawn_blocking;

use super::App;
use super::error::ApiError;
use super::peer::Peer;
use crate::access::{Caller, Denied, Grant, PeerSocket, Role, audit};

/// What a request has to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Nothing.
    Nothing,
    /// A token with a role.
    Role(Role),
    /// A token with a role, in the request or in the first message of its stream. The route checks the role.
    First(Role),
    /// A token with a role, unless the route finds another reason to let the request in: what is asked for is public, or a
    /// secret of its own is shown. The route checks the role.
    Unless(Role),
}

impl Need {
    /// Returns the role, if one is needed.
    pub(super) fn role(self) -> Option<Role> {
        match self {
            Self::Nothing => None,
            Self::Role(role) | Self::First(role) | Self::Unless(role) => Some(role),
        }
    }
}

/// What each method of a route needs.
pub(super) type Needs = &'static [(Method, Need)];

/// Passes on requests that show what their method of the route needs, with their [`Caller`].
pub(super) async fn check(State((app, needs)): State<(App, Needs)>, mut request: Request, next: Next) -> Response {
    let method = if *request.method() == Method::HEAD { Method::GET } else { request.method().clone() };
    let need = needs.iter().find(|(known, _)| *known == method).map_or(Need::Nothing, |(_, need)| *need);
    let Some(role) = need.role() else { return next.run(request).await };
    // Requests have no address where the router is called without a connection.
    let peer = request.extensions().get::<Peer>().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0);
    let socket = request.extensions().get::<PeerSocket>().cloned();
    let caller = Caller { peer, grant: shown(&app, peer, socket, request.headers()).await };
    let denied = match (&caller.grant, need) {
        (_, Need::Unless(_)) | (Err(Denied::User) | Ok(None), Need::First(_)) => None,
        (Err(denied), _) => Some(denied.clone()),
        (Ok(None), _) => Some(Denied::Missing),
        (Ok(Some(grant)), _) => grant.check(role).err(),
    };
    if let Some(denied) = denied {
        let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
        audit::request_denied(&caller, (&method, route), &denied);
        return ApiError::from(denied).into_response();
    }
    request.extensions_mut().insert(caller);
    next.run(request).await
}

/// Returns the grant that a request shows; `Ok(None)` if it shows no token.
async fn shown(
    app: &App,
    peer: IpAddr,
    socket: Option<PeerSocket>,
    headers: &HeaderMap,
) -> Result<Option<Grant>, Denied> {
    let access = app.sessions.access().clone();
    if !access.wants_token() {
        // Looking for the user reads a file.
        return spawn_blocking(move || access.anyone(socket.as_ref())).await.unwrap_or(Err(Denied::User)).map(Some);
    }
    let Some(value) = headers.get(AUTHORIZATION) else { return Ok(None) };
    let token = value.to_str().ok().and_then(|value| value.split_once(' '));
    match token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")) {
        Some((_, token)) => access.check(token.trim(), peer).map(Some),
        None => Err(Denied::Missing),
    }
}
