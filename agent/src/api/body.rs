//! Receiving the body of a command: in time, and no more of it than the machine's memory holds.

use super::connections::Reception;
use super::limits::Limits;
use crate::commands::Refusal;
use axum::body::{Body, BodyDataStream, HttpBody};
use futures_util::StreamExt;
use serde_json::Value;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// How often a text is in memory at a time while its command runs: as it came or as what is echoed, as
/// parameters, and in up to two copies that a step makes of them.
const COPIES: usize = 4;
/// Most values in a body, at any depth; a node's record with all its steps has some thousands.
const MOST_VALUES: usize = 1 << 15;
/// Most bytes of a name in an object: names are copied once more than the memory of a body has room for.
const LONGEST_NAME: usize = 1024;
/// Bytes that a value takes besides its text, with the room that lists and objects keep for more.
const VALUE: usize = 160;
/// Bytes that an object takes whatever is in it.
const OBJECT: usize = 640;

/// Receives and parses a body; the memory is taken until `reception` is over, or who takes it over lets it go.
///
/// # Errors
///
/// 400: it is not JSON. 408: it comes too slowly. 413: it has too many bytes or values.
pub async fn receive(body: Body, reception: &Reception, limits: &Limits) -> Result<Value, Refusal> {
    let text = read(body, reception, limits).await?;
    reception.complete();
    let values = Values::count(&text);
    if values.all > MOST_VALUES {
        return Err(too_large(&format!("a body may have {MOST_VALUES} values")));
    }
    if values.longest_name > LONGEST_NAME {
        return Err(too_large(&format!("a name in a body may have {LONGEST_NAME} bytes")));
    }
    if !reception.take(COPIES * text.len() + values.memory()) {
        return Err(out_of_memory(reception));
    }
    serde_json::from_slice(&text)
        .map_err(|error| Refusal::bad_request(&format!("the body is not JSON: {error}")))
}

async fn read(body: Body, reception: &Reception, limits: &Limits) -> Result<Vec<u8>, Refusal> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let most = limits.body_bytes.min(reception.capacity() / COPIES);
    let (mut text, mut chunks) = (Vec::new(), body.into_data_stream());
    let started = Instant::now();
    loop {
        if announced.max(text.len()) > most {
            pass_over(chunks, limits.patience);
            return Err(too_large(&format!("a body may have {most} bytes on this machine")));
        }
        let steady = Duration::from_secs_f64(text.len() as f64 / f64::from(limits.body_rate));
        let deadline = (Instant::now() + limits.patience).min(started + limits.patience + steady);
        match timeout_at(deadline, chunks.next()).await {
            Ok(None) => return Ok(text),
            Ok(Some(Ok(chunk))) => text.extend_from_slice(&chunk),
            Ok(Some(Err(error))) => {
                return Err(Refusal::bad_request(&format!("the body broke off: {error}")));
            }
            Err(_) => return Err(too_slow(limits)),
        }
        // What was announced and did not come takes nothing.
        if !reception.take(COPIES * text.len()) {
            pass_over(chunks, limits.patience);
            return Err(out_of_memory(reception));
        }
    }
}

/// Lets a client speak on for a while, so that it gets to read why it is refused: what closes a connection on
/// which more comes in also takes back the answer.
fn pass_over(mut chunks: BodyDataStream, patience: Duration) {
    tokio::spawn(timeout(patience, async move { while let Some(Ok(_)) = chunks.next().await {} }));
}

fn too_slow(limits: &Limits) -> Refusal {
    let text = format!(
        "408 Request Timeout: a body must not pause for {:?}, and after that time have come with {} bytes a second",
        limits.patience, limits.body_rate
    );
    Refusal::new(408, text)
}

fn out_of_memory(reception: &Reception) -> Refusal {
    too_large(&format!(
        "requests have {} MiB of this machine's memory, and take {COPIES} times their size; \
         send less, or wait for what is under way",
        reception.capacity() >> 20
    ))
}

fn too_large(reason: &str) -> Refusal {
    Refusal::new(413, format!("413 Content Too Large: {reason}"))
}

/// The maximum number of values of a JSON text, without parsing it.
#[derive(Debug, PartialEq, Eq)]
struct Values {
    all: usize,
    objects: usize,
    /// Bytes of the longest name in an object, as it is written.
    longest_name: usize,
}

impl Values {
    fn count(text: &[u8]) -> Self {
        let mut values = Self { all: 1, objects: 0, longest_name: 0 };
        let (mut is_text, mut is_escaped, mut length) = (false, false, 0);
        for byte in text {
            length += usize::from(is_text);
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = is_text,
                b'"' if is_text => (is_text, length) = (false, length - 1),
                b'"' => (is_text, length) = (true, 0),
                _ if is_text => {}
                b':' => values.longest_name = values.longest_name.max(length),
                b',' | b'[' => values.all += 1,
                b'{' => {
                    values.all += 1;
                    values.objects += 1;
                }
                _ => {}
            }
        }
        values
    }

    fn memory(&self) -> usize {
        self.all * VALUE + self.objects * OBJECT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// Values of which there are so many.
    fn count(value: &Value) -> usize {
        1 + match value {
            Value::Array(entries) => entries.iter().map(count).sum(),
            Value::Object(fields) => fields.values().map(count).sum(),
            _ => 0,
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let text = "[a\"\\\\,{}\\[\\]:]{0,8}";
        let leaf =
            prop_oneof![Just(Value::Null), any::<i64>().prop_map(Value::from), text.prop_map(Value::from)];
        leaf.prop_recursive(4, 64, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(text, inner, 0..6)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    #[test]
    fn x43_values_are_counted_and_texts_are_not() {
        for (text, all, objects, longest_name) in [
            ("1", 1, 0, 0),
            ("[]", 2, 0, 0),
            ("[1,2]", 3, 0, 0),
            (r#"{"a":"[,{"}"#, 2, 1, 1),
            (r#"{"abc" :"abcdef","d":{"ab\":c":1}}"#, 4, 2, 6),
            (r#"["\",","\\",{}]"#, 5, 1, 0),
        ] {
            let expected = Values { all, objects, longest_name };
            assert_eq!(Values::count(text.as_bytes()), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn x43_no_text_has_more_values_than_were_counted(value in any_value()) {
            for text in [value.to_string(), format!("{value:#}")] {
                let counted = Values::count(text.as_bytes()).all;
                prop_assert!((count(&value)..=2 * count(&value)).contains(&counted), "{text}: {counted}");
            }
        }

        #[test]
        fn x43_whatever_comes_is_counted(text: Vec<u8>) {
            prop_assert!(Values::count(&text).all <= text.len() + 1);
        }
    }

    #[test]
    fn x43_a_node_record_has_far_fewer_values() {
        let step = json!({"step": "x", "interface": "deploy", "priority": 1, "argsinfo": {"a": {"description": "x"}}});
        let record = json!({"steps": vec![step; 1000]});
        assert!(Values::count(record.to_string().as_bytes()).all < MOST_VALUES);
    }
}
