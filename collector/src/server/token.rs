//! Identifies the sender of a request, and checks its role.

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

/// The authorization that a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Nothing.
    Nothing,
    /// A token with a role.
    Role(Role),
    /// A token with the role `admin`. On a server that was given no tokens, who is let in may do this as well: the page does.
    Manage,
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
            Self::Manage => Some(Role::Admin),
            Self::Role(role) | Self::First(role) | Self::Unless(role) => Some(role),
        }
    }
}

/// The authorization that each method of a route needs.
pub(super) type Needs = &'static [(Method, Need)];

/// Forwards requests that show the authorization that their method of the route needs, with their [`Caller`].
pub(super) async fn check(State((app, needs)): State<(App, Needs)>, mut request: Request, next: Next) -> Response {
    let method = if *request.method() == Method::HEAD { Method::GET } else { request.method().clone() };
    let need = needs.iter().find(|(known, _)| *known == method).map_or(Need::Nothing, |(_, need)| *need);
    let Some(role) = need.role() else { return next.run(request).await };
    // Requests have no address where the router is called without a connection.
    let peer = request.extensions().get::<Peer>().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0);
    let socket = request.extensions().get::<PeerSocket>().cloned();
    let (grant, wrong) = shown(&app, peer, socket, request.headers()).await;
    let caller = Caller { peer, grant };
    let denied = match (&caller.grant, need) {
        (_, Need::Unless(_)) | (Err(Denied::User) | Ok(None), Need::First(_)) => None,
        (Err(denied), _) => Some(denied.clone()),
        (Ok(None), _) => Some(Denied::Missing),
        (Ok(Some(grant)), Need::Manage) => grant.check_managing().err(),
        // Without the token that was shown, more would be permitted: what is wrong with it is the reason.
        (Ok(Some(grant)), _) => grant.check(role).err().map(|lacking| wrong.unwrap_or(lacking)),
    };
    if let Some(denied) = denied {
        let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
        audit::request_denied(&caller, (&method, route), &denied);
        return ApiError::from(denied).into_response();
    }
    request.extensions_mut().insert(caller);
    next.run(request).await
}

/// Returns the grant that a request shows, or `Ok(None)` if it shows no token and needs one; and what is wrong with the token
/// that it shows, if it is let in without.
async fn shown(
    app: &App,
    peer: IpAddr,
    socket: Option<PeerSocket>,
    headers: &HeaderMap,
) -> (Result<Option<Grant>, Denied>, Option<Denied>) {
    let access = app.sessions.access().clone();
    let checked = bearer(headers).map(|token| token.and_then(|token| access.check(token, peer)));
    match checked {
        Some(Ok(grant)) => (Ok(Some(grant)), None),
        checked if access.wants_token() => (checked.transpose(), None),
        checked => {
            // Looking for the user reads a file.
            let anyone = spawn_blocking(move || access.anyone(socket.as_ref())).await.unwrap_or(Err(Denied::User));
            (anyone.map(Some), checked.and_then(Result::err))
        }
    }
}

/// Returns the token in the headers of a request, if they show one.
fn bearer(headers: &HeaderMap) -> Option<Result<&str, Denied>> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok().and_then(|value| value.split_once(' '));
    let token = value.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    Some(token.map(|(_, token)| token.trim()).ok_or(Denied::Missing))
}
