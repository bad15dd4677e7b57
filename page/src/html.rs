//! Pieces of HTML that every page has.

use farrier_conductor::model::clock::in_two_units;
use farrier_conductor::model::{ProvisionState, masked_text};
use maud::{Markup, html};
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Stands for a value that is not there.
const NONE: &str = "–";

/// Units of a size, the smallest first.
const SIZES: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/// A text of a record or a machine: without secrets, and in its own direction of writing.
pub(crate) fn text(text: &str) -> Markup {
    html! { bdi { (masked_text(text)) } }
}

/// A text that may be missing.
pub(crate) fn text_or_none(given: Option<&str>) -> Markup {
    match given.filter(|given| !given.is_empty()) {
        Some(given) => text(given),
        None => html! { span.none { (NONE) } },
    }
}

/// A text, a number or a flag of a JSON document.
pub(crate) fn value(value: Option<&Value>) -> Markup {
    match value {
        None | Some(Value::Null) => text_or_none(None),
        Some(Value::String(given)) => text_or_none(Some(given)),
        Some(other) => text(&other.to_string()),
    }
}

/// A size in bytes, in words and exact.
pub(crate) fn size(bytes: Option<&Value>) -> Markup {
    let Some(bytes) = bytes.and_then(Value::as_u64) else { return value(bytes) };
    let (mut scaled, mut unit) = (bytes as f64, 0);
    while scaled >= 1024.0 && unit + 1 < SIZES.len() {
        (scaled, unit) = (scaled / 1024.0, unit + 1);
    }
    html! { span title=(format!("{bytes} bytes")) { (format!("{scaled:.1}")) " " (SIZES[unit]) } }
}

/// The name of a provision state. The class is for the colour; the text has all of the information.
pub(crate) fn state(state: ProvisionState) -> Markup {
    let class = format!("state {}", format!("{:?}", state.activity()).to_lowercase());
    html! { span class=(class) { (state.as_str()) } }
}

/// A moment, and how far it is from now. Browsers show the title on request.
pub(crate) fn when(at: OffsetDateTime, now: OffsetDateTime) -> Markup {
    let exact = exact(at);
    let shown = exact.get(..16).unwrap_or_default().replacen('T', " ", 1);
    html! { time datetime=(exact) title=(exact) { (shown) " UTC" } " (" (distance(at, now)) ")" }
}

/// How far a moment is from now.
pub(crate) fn ago(at: OffsetDateTime, now: OffsetDateTime) -> Markup {
    html! { time datetime=(exact(at)) { (distance(at, now)) } }
}

/// A moment to the second.
fn exact(at: OffsetDateTime) -> String {
    at.replace_nanosecond(0).unwrap_or(at).format(&Rfc3339).unwrap_or_default()
}

fn distance(at: OffsetDateTime, now: OffsetDateTime) -> String {
    let distance = in_two_units(now - at);
    if (at - now).whole_seconds() > 0 { format!("in {distance}") } else { format!("{distance} ago") }
}

/// Names and their values.
pub(crate) fn facts(facts: &[(&str, Markup)]) -> Markup {
    html! {
        dl.facts {
            @for (name, value) in facts { div { dt { (name) } dd { (value) } } }
        }
    }
}

/// The head of a table.
pub(crate) fn head(names: &[&str]) -> Markup {
    html! { thead { tr { @for name in names { th scope="col" { (name) } } } } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn moments_have_a_distance_in_both_directions() {
        let at = OffsetDateTime::from_unix_timestamp(1_795_000_000).unwrap();
        let shown = |seconds: i64| when(at, at + time::Duration::seconds(seconds)).into_string();
        assert!(shown(90).ends_with("UTC</time> (1 min 30 s ago)"), "{}", shown(90));
        assert!(shown(-90).ends_with("(in 1 min 30 s)"));
        assert!(shown(0).starts_with("<time datetime=\"2026-11-18T11:06:40Z\""), "{}", shown(0));
    }

    #[test]
    fn values_are_escaped_masked_and_isolated() {
        let hostile = text("<script>alert(1)</script>").into_string();
        assert_eq!(hostile, "<bdi>&lt;script&gt;alert(1)&lt;/script&gt;</bdi>");
        assert_eq!(text("ipa-agent-token=oats").into_string(), "<bdi>ipa-agent-token=******</bdi>");
        let digits = "9".repeat(40);
        let number: Value = serde_json::from_str(&digits).unwrap();
        assert!(size(Some(&number)).into_string().starts_with("<bdi>"), "no size");
        assert!(size(Some(&json!(512_u64 << 30))).into_string().contains("512.0 GiB"));
        assert_eq!(value(None).into_string(), value(Some(&json!(""))).into_string());
    }
}
