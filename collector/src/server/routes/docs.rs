//! `/api/v1/`: the description of the API as a page.

use std::fmt::Write;

use axum::response::Html;
use serde_json::Value;

use super::openapi::OPENAPI;

/// The description of the API as a page.
#[utoipa::path(
    get,
    path = "/api/v1/",
    operation_id = "get_docs",
    responses(
        (status = 200, description = "The page.", content_type = "text/html", body = String),
    )
)]
pub(crate) async fn docs() -> Html<String> {
    Html(page(&serde_json::from_str(&OPENAPI).unwrap_or_default()))
}

fn page(api: &Value) -> String {
    let mut html =
        String::from("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Vramscope API</title>");
    // Writing to a string can't fail.
    let _ = write!(
        html,
        "<h1>{}</h1><p>{}</p><p><a href=\"/api/v1/openapi.json\">openapi.json</a></p>",
        text(&api["info"]["title"]),
        text(&api["info"]["description"])
    );
    for (path, methods) in api["paths"].as_object().into_iter().flatten() {
        for (method, route) in methods.as_object().into_iter().flatten() {
            let _ = write!(
                html,
                "<h2><code>{} {}</code></h2><p>{} {}</p>",
                escaped(&method.to_uppercase()),
                escaped(path),
                text(&route["summary"]),
                text(&route["description"])
            );
            parameters(&mut html, &route["parameters"]);
            html.push_str("<ul>");
            for (status, answer) in route["responses"].as_object().into_iter().flatten() {
                let _ = write!(html, "<li>{}: {}</li>", escaped(status), text(&answer["description"]));
            }
            html.push_str("</ul>");
        }
    }
    html.push_str("</html>\n");
    html
}

fn parameters(html: &mut String, list: &Value) {
    let Some(list) = list.as_array().filter(|list| !list.is_empty()) else { return };
    html.push_str("<dl>");
    for item in list {
        let _ = write!(html, "<dt><code>{}</code></dt><dd>{}</dd>", text(&item["name"]), text(&item["description"]));
    }
    html.push_str("</dl>");
}

fn text(value: &Value) -> String {
    escaped(value.as_str().unwrap_or_default())
}

/// Escapes text for HTML, attributes included.
fn escaped(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut html, c| {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            c => html.push(c),
        }
        html
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        assert_eq!(escaped("<a href='x'>\"&"), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;");
    }

    #[test]
    fn the_page_names_every_route() {
        let api: Value = serde_json::from_str(&OPENAPI).unwrap();
        let html = page(&api);
        for path in api["paths"].as_object().unwrap().keys() {
            assert!(html.contains(&escaped(path)), "{path}");
        }
    }
}
