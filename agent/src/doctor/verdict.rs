//! What the checks found, as lines and as an object.

use serde::Serialize;
use std::fmt;

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// As it should be.
    Good,
    /// It works and will make trouble.
    Doubtful,
    /// It does not work, and nothing needs it.
    Unused,
    /// It keeps the agent from its conductor.
    Failed,
    /// Something it rests on does not work.
    NotTried,
}

/// What one check found of one subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    state: State,
    text: String,
    action: Option<String>,
}

/// A finding with its place in the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Name of the check.
    pub check: &'static str,
    /// Interface or URL; empty where the machine as a whole is meant.
    pub subject: String,
    /// How it went.
    pub state: State,
    /// What was found.
    pub finding: String,
    /// The next action, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
}

impl Finding {
    /// It is as it should be.
    pub fn good(text: impl Into<String>) -> Self {
        Self { state: State::Good, text: text.into(), action: None }
    }

    /// It does not work, and nothing needs it.
    pub fn unused(text: impl Into<String>) -> Self {
        Self { state: State::Unused, text: text.into(), action: None }
    }

    /// It works and will make trouble.
    pub fn doubtful(text: impl Into<String>, action: impl Into<String>) -> Self {
        Self { state: State::Doubtful, text: text.into(), action: Some(action.into()) }
    }

    /// It keeps the agent from its conductor.
    pub fn failed(text: impl Into<String>, action: impl Into<String>) -> Self {
        Self { state: State::Failed, text: text.into(), action: Some(action.into()) }
    }

    /// The verdict about this subject.
    pub fn of(self, check: &'static str, subject: &str) -> Verdict {
        let Self { state, text: finding, action } = self;
        Verdict { check, subject: subject.to_owned(), state, finding, action }
    }
}

impl State {
    /// Whether checks that rest on this one can be tried.
    pub fn passes(self) -> bool {
        matches!(self, Self::Good | Self::Doubtful)
    }

    fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Doubtful => "CAUTION",
            Self::Unused => "unused",
            Self::Failed => "FAILED",
            Self::NotTried => "not tried",
        }
    }
}

impl Verdict {
    /// A check that was not tried.
    pub fn not_tried(check: &'static str, subject: String, needs: &str) -> Self {
        let finding = format!("needs {needs}");
        Self { check, subject, state: State::NotTried, finding, action: None }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<10}{:<8}", self.state.word(), self.check)?;
        if !self.subject.is_empty() {
            write!(f, "{}: ", self.subject)?;
        }
        write!(f, "{}", self.finding)?;
        match &self.action {
            Some(action) => write!(f, ". {action}"),
            None => Ok(()),
        }
    }
}

/// Every verdict of an examination, in the order of the checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whether the machine is known to a conductor that it reaches.
    pub is_healthy: bool,
    /// The verdicts.
    pub verdicts: Vec<Verdict>,
}

impl Report {
    /// A report; healthy is a machine that passes the check that all others lead to, under one of its
    /// URLs at least.
    pub fn new(verdicts: Vec<Verdict>, last_check: &str) -> Self {
        let is_healthy = verdicts.iter().any(|one| one.check == last_check && one.state.passes());
        Self { is_healthy, verdicts }
    }

    /// The first failure: the one to mend first.
    pub fn cause(&self) -> Option<&Verdict> {
        self.verdicts.iter().find(|verdict| !self.is_healthy && verdict.state == State::Failed)
    }

    /// The verdicts, one line each.
    pub fn text(&self) -> String {
        self.verdicts.iter().map(|verdict| format!("{verdict}\n")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report(last: Finding) -> Report {
        let url = "http://192.0.2.1:6385";
        let verdicts = vec![
            Finding::unused("no carrier").of("link", "eth1"),
            Finding::failed("refused", "Start it").of("tcp", url),
            last.of("lookup", "http://192.0.2.2:6385"),
            Verdict::not_tried("tls", url.to_owned(), "tcp"),
        ];
        Report::new(verdicts, "lookup")
    }

    #[test]
    fn a_line_says_what_where_and_what_next() {
        let lines = "unused    link    eth1: no carrier\n\
                     FAILED    tcp     http://192.0.2.1:6385: refused. Start it\n\
                     ok        lookup  http://192.0.2.2:6385: found\n\
                     not tried tls     http://192.0.2.1:6385: needs tcp\n";
        assert_eq!(report(Finding::good("found")).text(), lines);
        assert_eq!(Finding::good("x").of("address", "").to_string(), "ok        address x");
    }

    #[test]
    fn one_conductor_that_knows_the_machine_is_enough() {
        let healthy = report(Finding::doubtful("locked", "Wait"));
        assert!(healthy.is_healthy && healthy.cause().is_none());
        let ill = report(Finding::failed("unknown", "Enrol it"));
        assert_eq!(ill.cause().map(|cause| cause.check), Some("tcp"));
    }

    #[test]
    fn the_object_has_what_the_lines_have() {
        let object = serde_json::to_value(report(Finding::good("found"))).unwrap();
        assert_eq!(object["is_healthy"], json!(true));
        let expected = json!({"check": "tcp", "subject": "http://192.0.2.1:6385", "state": "failed",
                              "finding": "refused", "action": "Start it"});
        assert_eq!(object["verdicts"][1], expected);
        assert_eq!(object["verdicts"][3]["state"], json!("not-tried"));
    }
}
