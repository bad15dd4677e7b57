//! The life of a node: its phases, the newest first, with their states and steps.

use super::parts::NodePage;
use crate::address::part::LIFE;
use crate::html;
use crate::refusal::Refusal;
use crate::session::Visitor;
use axum::extract::{Extension, Path, State};
use farrier_conductor::model::clock::in_two_units;
use farrier_engine::Conductor;
use farrier_engine::evidence::timeline::{Phase, StepSpan};
use maud::{Markup, html};
use time::OffsetDateTime;

const HEAD: [&str; 5] = ["State or step", "Begun", "Duration", "Done", "Within the phase"];

/// Width of a picture of a phase, in its own units.
const WIDTH: f64 = 1000.0;

/// Least width of a span, so that a short one can be seen.
const NARROWEST: f64 = 8.0;

/// A state or a step of a phase, as a row shows it.
struct Span<'a> {
    name: Markup,
    begun_at: OffsetDateTime,
    ended_at: Option<OffsetDateTime>,
    step: Option<&'a StepSpan>,
}

/// `GET /page/nodes/{node}/timeline`
pub(crate) async fn show(
    State(conductor): State<Conductor>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Result<Markup, Refusal> {
    let page = NodePage::open(&conductor, &id).await?;
    let phases = page.timeline.phases.iter().enumerate().rev();
    let content = html! {
        div #(LIFE) data-version=(page.version) { @for (number, phase) in phases { (section(number, phase, page.now)) } }
    };
    Ok(page.show(&visitor, "/timeline", &content))
}

fn section(number: usize, phase: &Phase, now: OffsetDateTime) -> Markup {
    let id = format!("phase-{number}");
    let has_parts = phase.states.len() > 1 || !phase.steps.is_empty();
    html! {
        section aria-labelledby=(id) {
            h2 #(id) { (html::state(phase.state)) }
            p {
                "From " (html::when(phase.begun_at, now))
                @match phase.ended_at {
                    Some(ended_at) => { " to " (html::when(ended_at, now)) },
                    None => { " until now" },
                }
                ", " b { (in_two_units(phase.duration(now))) }
                @if let Some(user) = &phase.user { ", ordered by " (html::text(user)) }
                @if phase.ended_at.is_none() && let Some(percent) = phase.percent { " " (done(percent)) }
            }
            @if let Some(error) = &phase.error { p.failure { (html::text(error)) } }
            @if has_parts { (table(phase, now)) }
        }
    }
}

fn table(phase: &Phase, now: OffsetDateTime) -> Markup {
    let states = phase.states.iter().map(|state| Span {
        name: html::state(state.state),
        begun_at: state.begun_at,
        ended_at: state.ended_at,
        step: None,
    });
    let steps = phase.steps.iter().map(|step| Span {
        name: html! {
            "step " (html::text(&step.step))
            @if let Some(number) = step.number { " (" (number) " of " (step.of) ")" }
        },
        begun_at: step.begun_at,
        ended_at: step.ended_at,
        step: Some(step),
    });
    html! {
        table {
            caption { "States and steps" }
            (html::head(&HEAD))
            tbody { @for span in states.chain(steps) { (row(&span, phase, now)) } }
        }
    }
}

fn row(span: &Span<'_>, phase: &Phase, now: OffsetDateTime) -> Markup {
    let ended_at = span.ended_at.unwrap_or(now);
    let has_failed = span.step.is_some_and(|step| step.has_failed);
    html! {
        tr {
            th scope="row" { (span.name) }
            td data-label=(HEAD[1]) { (html::when(span.begun_at, now)) }
            td data-label=(HEAD[2]) { (in_two_units(ended_at - span.begun_at)) }
            td data-label=(HEAD[3]) {
                @if has_failed { strong.mark { "failed" } }
                @else if span.ended_at.is_some() { "yes" }
                @else if let Some(percent) = span.step.and_then(|step| step.percent) { (done(percent)) }
                @else { "not yet" }
            }
            td { (picture(span.begun_at, ended_at, phase, has_failed, now)) }
        }
    }
}

/// How much is done, in a picture and in words.
pub(super) fn done(percent: u8) -> Markup {
    html! { progress max="100" value=(percent) aria-label="done" {} " " (percent) " %" }
}

/// Where a span lies in its phase. The cells beside it say the same in words.
fn picture(
    begun_at: OffsetDateTime,
    ended_at: OffsetDateTime,
    phase: &Phase,
    has_failed: bool,
    now: OffsetDateTime,
) -> Markup {
    let whole = phase.duration(now).as_seconds_f64().max(f64::MIN_POSITIVE);
    let place = |at: OffsetDateTime| {
        ((at - phase.begun_at).as_seconds_f64() / whole).clamp(0.0, 1.0) * (WIDTH - NARROWEST)
    };
    let (left, right) = (place(begun_at), place(ended_at));
    let class = has_failed.then_some("failed");
    html! {
        svg.span viewBox=(format!("0 0 {WIDTH} 10")) preserveAspectRatio="none" aria-hidden="true" {
            rect class=[class] x=(format!("{left:.0}")) width=(format!("{:.0}", right - left + NARROWEST)) height="10" {}
        }
    }
}
