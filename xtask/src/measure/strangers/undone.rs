//! What was undone by hand to see whether rows turn red.

/// A fix that was undone.
#[derive(Debug)]
pub struct Undone {
    /// The fix and where it is.
    pub what: &'static str,
    /// The row that was run.
    pub row: &'static str,
    /// What was seen, where at most so much is allowed.
    pub seen: &'static str,
}

/// All of them.
pub const UNDONE: &[Undone] = &[
    Undone {
        what: "values of an agent's answer are limited (`LIMITS` of `agent/client/answer.rs`)",
        row: "agent's answer of 1 MiB: nests",
        seen: "128,448 KiB more, not 65,536",
    },
    Undone {
        what: "a report becomes values only when its node waits for it (`Report::identified`)",
        row: "report of 16 MiB: nests",
        seen: "2,065,052 KiB more, not 16,384",
    },
    Undone {
        what: "the client that holds the most memory gives up its largest body (`grow` of `serve/memory.rs`)",
        row: "one address: bodies of 16 MiB that do not end",
        seen: "an honest client is answered 503",
    },
    Undone {
        what: "an address has an eighth of the transfers, and a network half of them (`may_have` of `network/turns.rs`)",
        row: "one address: unread transfers by HTTP",
        seen: "112,868 KiB more, not 98,304; others wait 2,127 ms, and 50 without the stranger",
    },
    Undone {
        what: "the oldest sender that has not answered makes room for another one (`admit` of `tftp/table.rs`)",
        row: "forged senders: requests by TFTP",
        seen: "an honest client gets no file within 60 s",
    },
];
