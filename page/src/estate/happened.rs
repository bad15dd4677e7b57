//! What happened in the period: states, deployments, failures and steps.

use super::{link, picture};
use crate::html;
use farrier_conductor::model::clock::in_two_units;
use farrier_engine::evidence::estate::{Deployment, Estate};
use maud::{Markup, html};
use time::{Duration, OffsetDateTime};

const FAILURES: [&str; 6] = ["Cause", "Operation", "Step", "Failures", "Last node", "Last failure"];
const DEPLOYMENTS: [&str; 5] = ["Node", "Begun", "Duration", "Result", "Compared"];
const STEPS: [&str; 6] = ["Step", "Runs", "Median", "Longest", "Slowest node", "Compared"];
const STATES: [&str; 5] = ["State", "Now", "Least", "Most", "Over time"];

/// Rows of a table.
const ROWS: usize = 20;

/// Why operations failed.
pub(super) fn failures(estate: &Estate, now: OffsetDateTime) -> Markup {
    let all: usize = estate.failures.iter().map(|failure| failure.count).sum();
    html! {
        section aria-labelledby="failures" {
            h2 #failures { "Failures by cause" }
            @if estate.failures.is_empty() { p { "No operation failed." } } @else {
                p { "Operations that failed: " b { (all) } "." }
                table {
                    caption { "Causes, the most frequent first" }
                    (html::head(&FAILURES))
                    tbody { @for failure in estate.failures.iter().take(ROWS) {
                        tr {
                            th scope="row" { (html::text(&failure.cause)) }
                            td data-label=(FAILURES[1]) { (html::state(failure.state)) }
                            td data-label=(FAILURES[2]) { (html::text_or_none(failure.step.as_deref())) }
                            td data-label=(FAILURES[3]) {
                                (failure.count) " " (picture::bar(failure.count as f64, all as f64, Some("failed")))
                            }
                            td data-label=(FAILURES[4]) { (link(&failure.last)) }
                            td data-label=(FAILURES[5]) { (html::when(failure.last_at, now)) }
                        }
                    } }
                }
            }
        }
    }
}

/// How long deployments took.
pub(super) fn deployments(estate: &Estate, now: OffsetDateTime) -> Markup {
    let (failed, done): (Vec<_>, Vec<_>) = estate.deployments.iter().partition(|one| one.has_failed);
    let mut durations: Vec<_> = done.iter().map(|one| one.duration).collect();
    durations.sort_unstable();
    let shown = &estate.deployments[..estate.deployments.len().min(ROWS)];
    let longest = shown.iter().map(|one| one.duration).max().unwrap_or_default();
    html! {
        section aria-labelledby="deployments" {
            h2 #deployments { "Deployments" }
            p {
                "Deployments that succeeded: " b { (done.len()) } ". Deployments that failed: " b { (failed.len()) } "."
                @if let (Some(median), Some(most)) = (durations.get(durations.len().saturating_sub(1) / 2), durations.last()) {
                    " Median of those that succeeded: " b { (in_two_units(*median)) } ", longest: " b { (in_two_units(*most)) } "."
                }
            }
            @if !shown.is_empty() {
                table {
                    caption { "Deployments that ended last" }
                    (html::head(&DEPLOYMENTS))
                    tbody { @for deployment in shown { (row(deployment, longest, now)) } }
                }
            }
        }
    }
}

fn row(deployment: &Deployment, longest: Duration, now: OffsetDateTime) -> Markup {
    let class = deployment.has_failed.then_some("failed");
    html! {
        tr {
            th scope="row" { (link(&deployment.node)) }
            td data-label=(DEPLOYMENTS[1]) { (html::when(deployment.begun_at, now)) }
            td data-label=(DEPLOYMENTS[2]) { (in_two_units(deployment.duration)) }
            td data-label=(DEPLOYMENTS[3]) { @if deployment.has_failed { strong.mark { "failed" } } @else { "succeeded" } }
            td { (picture::bar(deployment.duration.as_seconds_f64(), longest.as_seconds_f64(), class)) }
        }
    }
}

/// Which steps take long.
pub(super) fn steps(estate: &Estate) -> Markup {
    let longest = estate.steps.first().map(|step| step.median).unwrap_or_default();
    html! {
        section aria-labelledby="steps" {
            h2 #steps { "Slowest steps" }
            @if estate.steps.is_empty() { p { "No step ended." } } @else {
                table {
                    caption { "Steps, the one with the longest median first" }
                    (html::head(&STEPS))
                    tbody { @for step in estate.steps.iter().take(ROWS) {
                        tr {
                            th scope="row" { (html::text(&step.step)) }
                            td data-label=(STEPS[1]) { (step.count) }
                            td data-label=(STEPS[2]) { (in_two_units(step.median)) }
                            td data-label=(STEPS[3]) { (in_two_units(step.longest)) }
                            td data-label=(STEPS[4]) { (link(&step.slowest)) }
                            td { (picture::bar(step.median.as_seconds_f64(), longest.as_seconds_f64(), None)) }
                        }
                    } }
                }
            }
        }
    }
}

/// How many nodes were in each state.
pub(super) fn states(estate: &Estate) -> Markup {
    html! {
        section aria-labelledby="states-over-time" {
            h2 #states-over-time { "States over time" }
            @if estate.states.is_empty() { p { "There are no nodes yet." } } @else {
                table {
                    caption { "Nodes in each state" }
                    (html::head(&STATES))
                    tbody { @for (state, curve) in &estate.states {
                        tr {
                            th scope="row" { (html::state(*state)) }
                            td data-label=(STATES[1]) { (curve.last().copied().unwrap_or_default()) }
                            td data-label=(STATES[2]) { (curve.iter().min().copied().unwrap_or_default()) }
                            td data-label=(STATES[3]) { (curve.iter().max().copied().unwrap_or_default()) }
                            td { (picture::curve(curve)) }
                        }
                    } }
                }
            }
        }
    }
}
