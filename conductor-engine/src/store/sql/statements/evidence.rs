//! What happened to nodes.

statements! {
    INSPECTION = "SELECT document FROM inspections WHERE node = $1";
    RECEIVED_INSPECTION = "SELECT received FROM inspections WHERE node = $1";
    RECEIVE_INSPECTION = "INSERT INTO inspections (node, received) VALUES ($1, $2) \
    ON CONFLICT (node) DO UPDATE SET received = $2";
    PUT_INSPECTION = "INSERT INTO inspections (node, document) VALUES ($1, $2) \
    ON CONFLICT (node) DO UPDATE SET document = $2, received = NULL";
    HISTORY = "SELECT uuid, created_at, severity, event_type, event, conductor, by_user, beginning \
    FROM node_history WHERE node = $1 ORDER BY place";
    INSERT_HISTORY = "INSERT INTO node_history (uuid, node, created_at, severity, event_type, \
    event, conductor, by_user, beginning, place) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, \
    (SELECT COALESCE(MAX(place), -1) + 1 FROM node_history WHERE node = $2))";
    /// A node, and how many entries stay.
    TRIM_HISTORY = "DELETE FROM node_history WHERE node = $1 \
    AND place <= (SELECT MAX(place) FROM node_history WHERE node = $1) - $2";
    CERTIFICATES = "SELECT document FROM erase_certificates WHERE node = $1 ORDER BY disk, step";
    PUT_CERTIFICATE = "INSERT INTO erase_certificates (node, disk, step, document) \
    VALUES ($1, $2, $3, $4) ON CONFLICT (node, disk, step) DO UPDATE SET document = $4";
    DELETE_CERTIFICATES = "DELETE FROM erase_certificates WHERE node = $1";
    BOOT_TRACE = "SELECT document FROM boot_traces WHERE node = $1";
    /// Traces of machines whose nodes wait for an agent that has not called.
    AWAITED_BOOTS = "SELECT boot_traces.document FROM nodes CROSS JOIN boot_traces CROSS JOIN agent_sessions \
    WHERE nodes.provision_state IN ('wait call-back', 'clean wait', 'inspect wait', 'rescue wait', 'service wait') \
    AND boot_traces.node = nodes.uuid AND agent_sessions.node = nodes.uuid AND agent_sessions.agent_url IS NULL";
    WITH_BOOT_TRACE = "SELECT node FROM boot_traces ORDER BY node";
    BEGIN_BOOT_TRACE = "INSERT INTO boot_traces (node, document) VALUES ($1, $2) \
    ON CONFLICT (node) DO UPDATE SET document = $2";
    /// The trace before comes last: another conductor may have added to it.
    UPDATE_BOOT_TRACE = "UPDATE boot_traces SET document = $2 WHERE node = $1 AND document = $3";
    DELETE_BOOT_TRACE = "DELETE FROM boot_traces WHERE node = $1";
    DIAGNOSIS = "SELECT document FROM diagnoses WHERE node = $1";
    PUT_DIAGNOSIS = "INSERT INTO diagnoses (node, document) VALUES ($1, $2) \
    ON CONFLICT (node) DO UPDATE SET document = $2";
    DELETE_DIAGNOSIS = "DELETE FROM diagnoses WHERE node = $1";
}
