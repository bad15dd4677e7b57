//! The words that texts must not have, and the lines that must not come back.

/// First words of noun clauses.
pub const CLAUSES: &str = "how that what whatever where wherever whether which whichever who whoever whom whose why whenever whomever";

/// Words and phrases that no text has, and better ones.
pub const LISTED: &[(&str, &str)] = &[
    ("all the same", "anyway"),
    ("anew", "again"),
    ("anybody", "anyone, every user"),
    ("are to", "must, should"),
    ("as ever", "as before"),
    ("beneath", "below, under"),
    ("by and by", "later, asynchronously"),
    ("everybody", "everyone, every client"),
    ("go on", "continue, resume"),
    ("goes on", "continues, resumes"),
    ("going on", "continuing, resuming"),
    ("gone on", "continued, resumed"),
    ("in place of", "instead of"),
    ("in the place of", "instead of"),
    ("is to", "must, should"),
    ("its like", "name them"),
    ("its likes", "name them"),
    ("likewise", "also"),
    ("looked at", "checked, examined"),
    ("nobody", "no one, no user, no client"),
    ("of our own", "name the stand-in"),
    ("so many seconds", "this many seconds"),
    ("somebody", "someone, a user, an operator"),
    ("tells", "reports, shows, returns"),
    ("the like", "name them"),
    ("told", "name who reports it"),
    ("whereof", "of which"),
    ("whoever", "a user who, a client that"),
    ("whom", "name the user or client"),
    ("whomever", "a user who, a client that"),
];

/// Lines that were rewritten and must not come back, from `../shared/reference/words.md`.
pub const REWRITTEN: &[&str] = &[
    "Boot a machine all the same whose agent was not heard of",
    "How long no agent may call after a boot before the next boot interface",
    "another conductor over the same database goes on with the nodes of this one",
    "Compare the power of all machines with their records each so many seconds",
    "Look each so many seconds whether such a machine can be read again",
    "hands the data of one user to the next one",
    "tells machines by DHCP what to load",
    "Have machines with an instance on their disk boot that",
    "logs in to disks that agents export",
    "Answer ramdisks; else lookups",
    "Whoever shows a password or a token of the file of operators",
    "steps of the deployments of instances that want their names as traits",
    "when an order goes on that was waited for long enough",
    "Prove that a machine is under control, or take it out of the hands of users",
    "switches no light of its machine",
    "no node was taken in time; those that are as wanted",
    "cannot be a base",
    "no image is ever taken from there",
    "needs no file for a machine that boots from the network",
    "It goes on with what it was doing, whatever ended it",
    "Somebody calls at night: a machine is not there",
    "It leads those nodes alone that have its name as a trait",
    "takes what it shows from the environment or from a file",
    "which can be removed but not replaced; undeploy it first",
    "look at the service that has the networks",
];

/// Sources in which none of them may stand, beside the book. The last two lines are still in the conductor's crates.
pub const REWRITTEN_IN: [&str; 9] = [
    "access/src",
    "agent/src",
    "conductor-engine/src",
    "conductor-lib/src",
    "drivers/src",
    "farrier/src",
    "image-build/src",
    "node-api/src",
    "page/src",
];
