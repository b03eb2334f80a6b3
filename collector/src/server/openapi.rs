//! The description of the API, generated from the routes.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{OpenApi as Document, RefOr, Response};
use utoipa::{Modify, OpenApi};

use super::api_routes::{Route, api_routes};
use super::routes;
use crate::access::Role;

/// The description as JSON. A test compares it with the router.
pub(super) static OPENAPI: LazyLock<String> =
    // Every key of the description is a string, so that it can always be written as JSON.
    LazyLock::new(|| Api::openapi().to_pretty_json().unwrap_or_default());

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Vramscope",
        version = "1",
        description = "The sessions of running jobs: how collectors send them, what is kept of them, and how they are \
                       watched. And traces that are shared by links. Fields that end in _us are microseconds since the epoch. Sizes are in bytes."
    ),
    paths(
        routes::docs::docs,
        routes::docs::openapi,
        routes::health::live,
        routes::health::ready,
        routes::ingest::ingest_socket,
        routes::ingest::ingest_post,
        routes::sessions::list,
        routes::sessions::one,
        routes::sessions::delete,
        routes::stats::stats,
        routes::trace::trace,
        routes::live::live,
        routes::ask::ask,
        routes::pin::pin,
        routes::demo::demo,
        routes::explain::explain,
        routes::files::offer,
        routes::files::file,
        routes::shares::upload::share_trace,
        routes::shares::links::sharing,
        routes::shares::uploads::begin_upload,
        routes::shares::uploads::upload_progress,
        routes::shares::uploads::send_part,
        routes::shares::uploads::cancel_upload,
        routes::shares::uploads::finish_upload,
        routes::shares::links::link,
        routes::shares::links::delete_link,
        routes::shares::links::open_link,
        routes::shares::links::set_expiry,
        routes::shares::trace::shared_trace,
        routes::shares::picture::link_picture,
        routes::baselines::list,
        routes::baselines::one,
        routes::baselines::keep,
        routes::baselines::delete,
        routes::metrics::metrics,
    ),
    modifiers(&TokenScheme, &Denials)
)]
struct Api;

/// Adds the way in which a client shows its token.
struct TokenScheme;

impl Modify for TokenScheme {
    fn modify(&self, document: &mut Document) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(
                "Required only if the server was started with a token, or made one because its system does not tell users \
                 apart. For files of the server's machine it is the server's secret.",
            ))
            .build();
        let components = document.components.get_or_insert_default();
        components.security_schemes.insert("token".to_owned(), SecurityScheme::Http(scheme).into());
    }
}

/// Adds the answers to requests that may not do what they ask for, by the table of routes.
struct Denials;

impl Modify for Denials {
    fn modify(&self, document: &mut Document) {
        for Route { path, needs, .. } in api_routes() {
            let Some(item) = document.paths.paths.get_mut(path) else { continue };
            for (method, need) in needs {
                let operation = match method.as_str() {
                    "GET" => &mut item.get,
                    "POST" => &mut item.post,
                    "PUT" => &mut item.put,
                    "DELETE" => &mut item.delete,
                    _ => continue,
                };
                if let (Some(operation), Some(role)) = (operation, need.role()) {
                    describe_denials(&mut operation.responses.responses, role);
                }
            }
        }
    }
}

/// Describes the denials of an operation that needs a role. They have the same body as its answer to a missing token.
fn describe_denials(responses: &mut BTreeMap<String, RefOr<Response>>, role: Role) {
    let Some(RefOr::T(unauthorized)) = responses.get("401").cloned() else { return };
    let mut forbidden = format!(
        "The token lacks the role {role}; or the server requires no token, and another user of its machine started it"
    );
    if let Some(RefOr::T(Response { description, .. })) = responses.get("403") {
        forbidden += &format!("; or: {description}");
    } else {
        forbidden.push('.');
    }
    let slowed = "Too many wrong tokens came from this address. Retry-After has the seconds to wait.".to_owned();
    for (status, description) in [("403", forbidden), ("429", slowed)] {
        let mut response = unauthorized.clone();
        response.description = description;
        responses.insert(status.to_owned(), RefOr::T(response));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_operation_is_described_with_its_responses() {
        let api: Value = serde_json::from_str(&OPENAPI).unwrap();
        let mut lines = Vec::new();
        for (path, methods) in api["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                let summary = operation["summary"].as_str().unwrap();
                assert!(summary.ends_with('.'), "{method} {path}: {summary}");
                let parameters = operation["parameters"].as_array().into_iter().flatten();
                let parameters: Vec<_> = parameters.map(|parameter| parameter["name"].as_str().unwrap()).collect();
                let responses = operation["responses"].as_object().unwrap();
                let statuses: Vec<_> = responses.keys().map(String::as_str).collect();
                for (status, response) in responses {
                    assert!(!response["description"].as_str().unwrap().is_empty(), "{method} {path} {status}");
                }
                let lock = if operation["security"].is_array() { "token" } else { "-" };
                let line = format!("{method:6} {path:30} {lock:5} {:23} {}", parameters.join(" "), statuses.join(" "));
                lines.push(line);
            }
        }
        insta::assert_snapshot!(lines.join("\n"), @r"
        get    /api/v1/                       -                             200
        get    /api/v1/baselines              token                         200 401 403 429
        delete /api/v1/baselines/{name}       token name                    204 401 403 404 429 503
        get    /api/v1/baselines/{name}       token name                    200 401 403 404 429
        put    /api/v1/baselines/{name}       token name if-match if-none-match 204 400 401 403 412 413 429 503 507
        post   /api/v1/demo                   token                         200 201 401 403 429 503
        post   /api/v1/explain                token                         200 400 401 403 413 429
        post   /api/v1/files                  token                         200 400 401 403 429
        get    /api/v1/files/{id}/{name}      token id name                 200 401 403 404 429
        get    /api/v1/health/live            -                             200
        get    /api/v1/health/ready           -                             200 503
        get    /api/v1/ingest                 -                             101 401 403 426 429 503
        post   /api/v1/ingest                 -                             200 401 403 408 413 429 503
        get    /api/v1/openapi.json           -                             200
        get    /api/v1/sessions               token limit after             200 400 401 403 404 429
        delete /api/v1/sessions/{id}          token id                      204 401 403 404 409 429
        get    /api/v1/sessions/{id}          token id                      200 401 403 404 429
        post   /api/v1/sessions/{id}/ask      token id                      202 400 401 403 404 409 429
        get    /api/v1/sessions/{id}/live     -     id                      101 401 403 404 426 429 503
        put    /api/v1/sessions/{id}/pin      token id                      204 400 401 403 404 429
        get    /api/v1/sessions/{id}/stats    token id                      200 401 403 404 429
        get    /api/v1/sessions/{id}/trace    token id format from_us to_us 200 400 401 403 404 413 429 503
        post   /api/v1/traces                 token name expires_seconds is_public x-vramscope-password 201 400 401 403 408 411 413 422 429 504 507
        get    /api/v1/traces/sharing         token                         200 401 403 429
        post   /api/v1/traces/uploads         token                         201 400 401 403 413 429 507
        delete /api/v1/traces/uploads/{id}    token id                      204 401 403 404 429
        get    /api/v1/traces/uploads/{id}    token id                      200 401 403 404 429
        put    /api/v1/traces/uploads/{id}    token id from                 200 400 401 403 404 408 409 413 429 507
        post   /api/v1/traces/uploads/{id}/finish token id                      200 201 401 403 404 409 422 429 504 507
        delete /api/v1/traces/{token}         -     token x-vramscope-delete-token 204 401 403 404 410 429 504
        get    /api/v1/traces/{token}         -     token x-vramscope-key   200 401 403 404 410 429 504
        put    /api/v1/traces/{token}/expiry  -     token x-vramscope-delete-token 200 400 401 403 404 410 429 504
        post   /api/v1/traces/{token}/open    -     token                   200 400 401 403 404 410 429 504
        get    /api/v1/traces/{token}/picture.png -     token x-vramscope-key   200 401 403 404 410 429 504
        get    /api/v1/traces/{token}/trace   -     token range x-vramscope-key 200 206 401 403 404 410 416 429 503 504
        get    /metrics                       token                         200 401 403 429
        ");
    }

    #[test]
    fn every_reference_leads_to_a_schema() {
        let api: Value = serde_json::from_str(&OPENAPI).unwrap();
        let names: Vec<_> = api["components"]["schemas"].as_object().unwrap().keys().map(String::as_str).collect();
        insta::assert_snapshot!(names.join(" "), @"Baseline Baselines Device DeviceStats Error Expiry ExplainedError ExplainedFact ExplainedHelp ExplainedText Key Link LocalFile LocalFileAddress Password Pin Progress Question Session Sessions Sharing Stats Topic Upload");
        for reference in OPENAPI.split("\"$ref\": \"").skip(1) {
            let name = reference.split('"').next().unwrap().trim_start_matches("#/components/schemas/");
            assert!(names.contains(&name), "{name}");
        }
    }
}
