//! Its logs: one with what happened to the machine, in pages, and one with who logged in.

use super::{Inner, Manner, Seen, json_answer};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

pub(super) const SERVICES: &str = "/redfish/v1/Managers/1/LogServices";

/// Entries on a page.
const PAGE: usize = 50;

impl Inner {
    pub(super) fn event_log(&mut self, seen: &Seen) -> Option<Response> {
        let rest = seen.path.strip_prefix(SERVICES)?;
        let link = |path: &str| json!({"@odata.id": format!("{SERVICES}{path}")});
        let body = match rest {
            "" => json!({"Members": [link("/AuditLog"), link("/Sel")]}),
            "/Sel" => json!({"ServiceEnabled": true, "Entries": link("/Sel/Entries")}),
            "/Sel/Entries" => self.page(&seen.query),
            entry => self.entry(entry.strip_prefix("/Sel/Entries/")?.parse().ok()?),
        };
        Some(json_answer(StatusCode::OK, &body))
    }

    /// What its clock shows, or showed some seconds ago.
    pub(super) fn clock(&self, ago: i64) -> String {
        let ahead = if self.has(Manner::FastClock) { Duration::HOUR } else { Duration::ZERO };
        (OffsetDateTime::now_utc() - Duration::seconds(ago) + ahead).format(&Rfc3339).unwrap()
    }

    fn page(&self, query: &str) -> Value {
        let skip: usize = query.strip_prefix("$skip=").map_or(0, |skip| skip.parse().unwrap());
        let mut places: Vec<_> = (0..self.log.len()).collect();
        if self.has(Manner::NewestFirst) {
            places.reverse();
        }
        let is_last = places.len() <= skip + PAGE;
        let by_path = self.has(Manner::EntriesByPath);
        let member = |place: usize| match by_path {
            true => json!({"@odata.id": format!("{SERVICES}/Sel/Entries/{place}")}),
            false => self.entry(place),
        };
        let members: Vec<_> = places.into_iter().skip(skip).take(PAGE).map(member).collect();
        let mut page = json!({"Members": members, "Members@odata.count": self.log.len()});
        if !is_last {
            page["Members@odata.nextLink"] = json!(format!("{SERVICES}/Sel/Entries?$skip={}", skip + PAGE));
        }
        page
    }

    fn entry(&self, place: usize) -> Value {
        let (ago, said) = &self.log[place];
        json!({
            "@odata.id": format!("{SERVICES}/Sel/Entries/{place}"), "EntryType": "SEL", "Severity": "Warning",
            "Created": self.clock(*ago), "Message": said, "MessageId": "SEL.1.0.Oem",
        })
    }
}
