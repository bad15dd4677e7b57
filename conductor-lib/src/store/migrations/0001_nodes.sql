-- What is searched for, changes often or guards the record. Times are microseconds since 1970.
CREATE TABLE nodes (
    uuid TEXT PRIMARY KEY NOT NULL,
    name TEXT UNIQUE NOT NULL,
    driver TEXT NOT NULL,
    conductor_group TEXT NOT NULL,
    resource_class TEXT,
    owner TEXT,
    lessee TEXT,
    instance_uuid TEXT UNIQUE,
    provision_state TEXT NOT NULL,
    target_provision_state TEXT,
    provision_updated_at BIGINT NOT NULL,
    power_state TEXT,
    target_power_state TEXT,
    maintenance BOOLEAN NOT NULL,
    fault TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    reservation TEXT,
    lease_epoch BIGINT NOT NULL,
    lease_expires_at BIGINT
);
CREATE INDEX nodes_by_state ON nodes (provision_state);
CREATE INDEX nodes_by_reservation ON nodes (reservation);

-- Everything else of a record, as JSON.
CREATE TABLE node_documents (
    node TEXT PRIMARY KEY NOT NULL REFERENCES nodes (uuid) ON DELETE CASCADE,
    document TEXT NOT NULL
);

-- Up to 64 MiB each; read when one is written to a disk.
CREATE TABLE config_drives (
    node TEXT PRIMARY KEY NOT NULL REFERENCES nodes (uuid) ON DELETE CASCADE,
    content TEXT NOT NULL
);

-- The mailbox: what the agent said last. What the conductor learned by asking it is in the document.
CREATE TABLE agent_sessions (
    node TEXT PRIMARY KEY NOT NULL REFERENCES nodes (uuid) ON DELETE CASCADE,
    agent_secret_token TEXT,
    agent_url TEXT,
    agent_version TEXT,
    agent_last_heartbeat BIGINT,
    agent_verify_ca TEXT,
    agent_status TEXT,
    agent_status_message TEXT,
    document TEXT NOT NULL
);

CREATE TABLE ports (
    address TEXT PRIMARY KEY NOT NULL,
    node TEXT NOT NULL REFERENCES nodes (uuid) ON DELETE CASCADE,
    place BIGINT NOT NULL,
    document TEXT NOT NULL
);
CREATE INDEX ports_by_node ON ports (node, place);
