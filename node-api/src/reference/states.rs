//! The page of provision states and its picture, both drawn from the table of transitions.

use std::collections::BTreeMap;
use std::fmt::Write;

use farrier_conductor::model::{Activity, Event, Family, ProvisionState};

/// Families of operations, each a row of the picture, from top to bottom.
const ROWS: [Family; 9] = [
    Family::Verify,
    Family::Inspect,
    Family::Clean,
    Family::Delete,
    Family::Deploy,
    Family::Service,
    Family::Rescue,
    Family::Unrescue,
    Family::Adopt,
];

/// States at rest, with the row beside which each is drawn.
const REST: [(ProvisionState, usize); 5] = [
    (ProvisionState::Enroll, 0),
    (ProvisionState::Manageable, 1),
    (ProvisionState::Available, 2),
    (ProvisionState::Active, 5),
    (ProvisionState::Rescue, 6),
];

/// Columns: the title and the left edge of each, for states at rest and four activities.
const COLUMNS: [(Activity, &str, i32); 5] = [
    (Activity::Rest, "at rest", 20),
    (Activity::Work, "conductor works", 270),
    (Activity::Wait, "waits for the agent", 470),
    (Activity::Hold, "held", 660),
    (Activity::Failed, "failed", 830),
];

/// Sizes in pixels.
const WIDTH: i32 = 990;
const BOX: i32 = 140;
const HEIGHT: i32 = 28;
const ROW: i32 = 66;
const TOP: i32 = 44;

/// Kinds of transitions: the colour of each, and its name.
const KINDS: [(&str, &str); 4] = [
    ("#1b62a5", "operator"),
    ("#2e7d32", "success"),
    ("#b23b3b", "failure or abort"),
    ("#6b7580", "wait and hold"),
];

fn kind(event: Event) -> usize {
    match event {
        Event::Done | Event::Resume => 1,
        Event::Fail | Event::Abort => 2,
        Event::Wait | Event::Hold => 3,
        _ => 0,
    }
}

/// The page.
pub(super) fn page() -> String {
    let mut page = "# Provision states\n\nThe provision states are Ironic's. `retry` is Farrier's own verb. An operation has a state in \
        which a conductor works on it,\nand may have states in which it waits or is held. The other states are at rest.\n\n\
        ![All provision states and the transitions between them](states.svg)\n\n\
        The table of transitions in the conductor is the only source of this page and of the picture.\n\n\
        | state | kind | transitions |\n| --- | --- | --- |\n"
        .to_owned();
    for state in ProvisionState::ALL {
        let title = COLUMNS.iter().find(|(activity, ..)| *activity == state.activity());
        let title = title.map(|(_, title, _)| *title).unwrap_or_default();
        let transitions = state.transitions().iter().map(|(event, to)| format!("`{event}` → `{to}`"));
        let transitions = transitions.collect::<Vec<_>>().join(", ");
        let _ = writeln!(page, "| `{state}` | {title} | {transitions} |");
    }
    page
}

/// The left upper corner of a state's box.
fn place(state: ProvisionState) -> Option<(i32, i32)> {
    let row = match REST.iter().find(|(rest, _)| *rest == state) {
        Some((_, row)) => *row,
        None => ROWS.iter().position(|family| state.family() == Some(*family))?,
    };
    let activity =
        if REST.iter().any(|(rest, _)| *rest == state) { Activity::Rest } else { state.activity() };
    let (_, _, x) = COLUMNS.iter().find(|(column, ..)| *column == activity)?;
    Some((*x, TOP + i32::try_from(row).ok()? * ROW))
}

/// A line from a state to another one: straight to the next column, else an arc beside the boxes.
fn line(from: (i32, i32), to: (i32, i32)) -> String {
    let (from_y, to_y) = (from.1 + HEIGHT / 2, to.1 + HEIGHT / 2);
    let is_forward = to.0 > from.0;
    let (start, end) = match is_forward {
        true => (from.0 + BOX, to.0),
        false => (from.0, to.0 + BOX),
    };
    if from.0 == to.0 {
        // Beside the column, on its left.
        let (x, bend) = (from.0, from.0 - 16);
        return format!("M{x} {from_y} C{bend} {from_y} {bend} {to_y} {x} {to_y}");
    }
    let is_next = (end - start).abs() < 120;
    match (from_y == to_y, is_next, is_forward) {
        (true, true, true) => format!("M{start} {} L{end} {}", from_y - 5, to_y - 5),
        (true, true, false) => format!("M{start} {} L{end} {}", from_y + 5, to_y + 5),
        (true, false, true) => {
            let (x, far, top) = (from.0 + BOX - 20, to.0 + 20, from.1);
            format!("M{x} {top} C{x} {0} {far} {0} {far} {top}", top - 20)
        }
        (true, false, false) => {
            let (x, far, low) = (from.0 + 20, to.0 + BOX - 20, from.1 + HEIGHT);
            format!("M{x} {low} C{x} {0} {far} {0} {far} {low}", low + 20)
        }
        (false, ..) => {
            let bend = (end - start) / 2;
            format!("M{start} {from_y} C{} {from_y} {} {to_y} {end} {to_y}", start + bend, end - bend)
        }
    }
}

/// The picture as SVG.
pub(super) fn picture() -> String {
    let height = TOP + i32::try_from(ROWS.len()).unwrap_or_default() * ROW + 10;
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\" role=\"img\" aria-label=\"Provision states and their transitions\">\n<defs>\n"
    );
    for (index, (colour, _)) in KINDS.iter().enumerate() {
        let _ = writeln!(
            picture,
            "<marker id=\"a{index}\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"6\" markerHeight=\"6\" \
             orient=\"auto\"><path d=\"M0 0 10 5 0 10z\" fill=\"{colour}\"/></marker>"
        );
    }
    let _ = writeln!(picture, "</defs>\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>");
    for (_, title, x) in COLUMNS {
        let middle = x + BOX / 2;
        let _ = writeln!(
            picture,
            "<text x=\"{middle}\" y=\"20\" text-anchor=\"middle\" fill=\"#445\">{title}</text>"
        );
    }
    for state in ProvisionState::ALL {
        let mut lines: BTreeMap<(ProvisionState, usize), Vec<&str>> = BTreeMap::new();
        for (event, to) in state.transitions() {
            lines.entry((*to, kind(*event))).or_default().push(event.as_str());
        }
        for ((to, kind), events) in lines {
            let (Some(from), Some(end)) = (place(*state), place(to)) else { continue };
            let _ = writeln!(
                picture,
                "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1\" marker-end=\"url(#a{kind})\"><title>{state}, \
                 {} → {to}</title></path>",
                line(from, end),
                KINDS[kind].0,
                events.join(" or ")
            );
        }
    }
    for state in ProvisionState::ALL {
        let Some((x, y)) = place(*state) else { continue };
        let (middle, baseline) = (x + BOX / 2, y + HEIGHT / 2 + 4);
        let _ = writeln!(
            picture,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{BOX}\" height=\"{HEIGHT}\" rx=\"4\" fill=\"#eef3f8\" stroke=\"#345\"/>\
             <text x=\"{middle}\" y=\"{baseline}\" text-anchor=\"middle\" fill=\"#123\">{state}</text>"
        );
    }
    let baseline = height - 12;
    for (index, (colour, name)) in KINDS.iter().enumerate() {
        let x = 20 + i32::try_from(index).unwrap_or_default() * 150;
        let _ = writeln!(picture, "<text x=\"{x}\" y=\"{baseline}\" fill=\"{colour}\">— {name}</text>");
    }
    picture + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_a_box_of_its_own_and_every_transition_a_line() {
        let mut places: Vec<_> = ProvisionState::ALL.iter().map(|state| place(*state).unwrap()).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), ProvisionState::ALL.len());
        let picture = picture();
        for state in ProvisionState::ALL {
            for (event, to) in state.transitions() {
                let start = format!("<title>{state}, ");
                let end = format!("→ {to}</title>");
                let is_there = picture.lines().any(|line| {
                    line.contains(&start) && line.contains(&end) && line.contains(event.as_str())
                });
                assert!(is_there, "{state} {event} {to}");
            }
        }
    }
}
