//! The conductors of a site.

statements! {
    /// A process, its counter, and whether the counter does not matter.
    DELETE_CONDUCTOR = "DELETE FROM conductors WHERE name = $1 AND process = $2 AND (counter = $3 OR $4)";
}
