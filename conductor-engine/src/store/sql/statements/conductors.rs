//! The conductors of a site.

statements! {
    CONDUCTORS = "SELECT name, process, host_process, conductor_group, hardware, counter, registered_at, updated_at \
    FROM conductors ORDER BY name";
    /// The record of a process, and process and counter of the one that it may follow.
    RENEW_CONDUCTOR = "INSERT INTO conductors (name, process, host_process, conductor_group, hardware, \
    registered_at, updated_at, counter) VALUES ($1, $2, $3, $4, $5, $6, $7, 0) ON CONFLICT (name) DO UPDATE SET \
    process = $2, host_process = $3, conductor_group = $4, hardware = $5, registered_at = $6, updated_at = $7, \
    counter = conductors.counter + 1 \
    WHERE conductors.process = $2 OR (conductors.process = $8 AND conductors.counter = $9)";
    /// A process, its counter, and whether the counter does not matter.
    DELETE_CONDUCTOR = "DELETE FROM conductors WHERE name = $1 AND process = $2 AND (counter = $3 OR $4)";
}
