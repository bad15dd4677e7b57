//! The page of error codes.

use crate::access::CONNECTION_ERRORS;
use crate::failure::{COMMAND_ERRORS, START_ERRORS};
use farrier_conductor::error;
use farrier_conductor::model::ErrorCode;
use farrier_engine::error::{ENDED_OPERATIONS, RECORD_ERRORS, STORE_ERRORS};
use farrier_node_api::REQUEST_ERRORS;
use farrier_protocol::error_code::{agent, image_build};
use std::fmt::Write;

/// Each group of codes, with its title.
const GROUPS: [(&str, &[&ErrorCode]); 13] = [
    ("Requests to the node API", REQUEST_ERRORS),
    ("Nodes and other records", RECORD_ERRORS),
    ("Nodes, interfaces and drivers", error::TASK_ERRORS),
    ("Connection to the agent", error::CONNECTION_ERRORS),
    ("Errors that the agent reports", agent::AGENT_ERRORS),
    ("Requests to the agent", agent::REFUSALS),
    ("Operations that end early", ENDED_OPERATIONS),
    ("The database", STORE_ERRORS),
    ("The program `farrier-agent`", agent::PROGRAM_ERRORS),
    ("Start of the conductor", START_ERRORS),
    ("Connection of a command to the conductor", CONNECTION_ERRORS),
    ("Commands", COMMAND_ERRORS),
    ("The program `farrier-image`", image_build::BUILD_ERRORS),
];

/// The page of the book.
pub(super) fn page() -> String {
    let mut page = String::from(
        "# Errors\n\n\
         Each error has a code, which never changes its meaning:\n\n\
         - `last_error` of a node, its history and each error of `farrier`, `farrier-agent` and `farrier-image` have \
         the code in brackets at the end of the text;\n\
         - a refused request of the node API, or of the API of the agent, has it in the header `Farrier-Error-Code`. The \
         body is Ironic's.\n\n\
         A failed step has the code of its cause. \
         [Troubleshooting](../troubleshooting.md) has the commands that show more.\n",
    );
    for (title, codes) in GROUPS {
        let _ = write!(page, "\n## {title}\n\n| code | meaning | action |\n| --- | --- | --- |\n");
        for code in codes {
            let _ = writeln!(page, "| `{code}` | {} | {} |", code.meaning, code.action);
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_code_is_of_one_error_with_a_meaning_and_an_action() {
        let mut seen = BTreeSet::new();
        for code in GROUPS.iter().flat_map(|(_, codes)| *codes) {
            assert!(seen.insert(code.number), "{code} is there twice");
            for text in [code.meaning, code.action] {
                assert!(text.ends_with('.') && text.split_whitespace().count() <= 30, "{code}: {text}");
            }
        }
    }
}
