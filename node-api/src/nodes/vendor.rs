//! What only one vendor's machines understand.

use crate::wire::asked::Asked;
use crate::wire::reply::{Refusal, read_json};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::Method;
use farrier_engine::Conductor;
use serde_json::{Map, Value, json};

/// `GET /nodes/{node}/vendor_passthru/methods`
pub(super) async fn methods(
    State(conductor): State<Conductor>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let methods = conductor.machines().vendor_methods(&id).await?.into_iter().map(|method| {
        let description = json!({
            "http_methods": method.http_methods,
            "description": method.description,
            "async": false,
            "attach": false,
            "require_exclusive_lock": true,
        });
        (method.name.to_owned(), description)
    });
    Ok(Json(Value::Object(methods.collect::<Map<_, _>>())))
}

/// `POST`, `PUT` and `DELETE /nodes/{node}/vendor_passthru?method=…`
pub(super) async fn call(
    State(conductor): State<Conductor>,
    mut asked: Asked,
    http_method: Method,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    let name =
        asked.take("method", 1)?.ok_or_else(|| Refusal::bad_request("method: is missing in the query"))?;
    let known = conductor.machines().vendor_methods(&id).await?;
    let Some(method) = known.iter().find(|method| method.name == name) else {
        let known: Vec<_> = known.iter().map(|method| method.name).collect();
        let text = format!(
            "method {name:?} is not known to the node's vendor interface; it has: {}",
            known.join(", ")
        );
        return Err(Refusal::bad_request(text));
    };
    if !method.http_methods.contains(&http_method.as_str()) {
        let text =
            format!("method {name:?} is called by {}, not by {http_method}", method.http_methods.join(", "));
        return Err(Refusal::bad_request(text));
    }
    let body = if body.is_empty() { json!({}) } else { read_json(&body)? };
    Ok(Json(conductor.machines().call_vendor(&id, &name, &body).await?))
}
