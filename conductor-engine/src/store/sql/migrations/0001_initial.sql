-- What is searched for, changes often or guards the record. Times are microseconds since 1970. Nodes may have no name.
-- A version grows with every change.
CREATE TABLE nodes (
    uuid TEXT PRIMARY KEY NOT NULL,
    name TEXT UNIQUE,
    driver TEXT NOT NULL,
    conductor_group TEXT NOT NULL,
    resource_class TEXT,
    owner TEXT,
    lessee TEXT,
    shard TEXT,
    parent_node TEXT,
    chassis_uuid TEXT,
    instance_uuid TEXT UNIQUE,
    instance_name TEXT,
    allocation_uuid TEXT,
    provision_state TEXT NOT NULL,
    target_provision_state TEXT,
    provision_updated_at BIGINT NOT NULL,
    power_state TEXT,
    target_power_state TEXT,
    maintenance BOOLEAN NOT NULL,
    fault TEXT,
    console_enabled BOOLEAN NOT NULL,
    retired BOOLEAN NOT NULL,
    protected BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    reservation TEXT,
    lease_epoch BIGINT NOT NULL,
    lease_expires_at BIGINT,
    version BIGINT NOT NULL
);
CREATE INDEX nodes_by_state ON nodes (provision_state, created_at, uuid);
CREATE INDEX nodes_by_class ON nodes (resource_class, provision_state, created_at, uuid);
CREATE INDEX nodes_by_allocation ON nodes (allocation_uuid);
CREATE INDEX nodes_by_fault ON nodes (fault);
CREATE INDEX nodes_by_console ON nodes (console_enabled);
CREATE INDEX nodes_by_shard ON nodes (shard);
CREATE INDEX nodes_by_reservation ON nodes (reservation);
CREATE INDEX nodes_by_age ON nodes (created_at, uuid);
CREATE INDEX nodes_by_chassis ON nodes (chassis_uuid);

-- What nodes are searched for by and may have several of: traits, and addresses of their BMCs while they are inspected.
CREATE TABLE node_keys (
    node TEXT NOT NULL REFERENCES nodes (uuid) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (node, kind, value)
);
CREATE INDEX node_keys_by_value ON node_keys (kind, value, node);

-- The conductors that run, or did not end in order. `counter` is renewed by the process that has the name: others see by it
-- whether that process lives. `hardware` is what it has of hardware types and their interfaces, as JSON.
CREATE TABLE conductors (
    name TEXT PRIMARY KEY NOT NULL,
    process TEXT NOT NULL,
    host_process TEXT NOT NULL,
    conductor_group TEXT NOT NULL,
    hardware TEXT NOT NULL,
    counter BIGINT NOT NULL,
    registered_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

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
    document TEXT NOT NULL,
    version BIGINT NOT NULL
);

-- What an operator wants of a node, from the request until it is done or has failed.
CREATE TABLE orders (
    node TEXT PRIMARY KEY NOT NULL REFERENCES nodes (uuid) ON DELETE CASCADE,
    verb TEXT NOT NULL,
    ordered_at BIGINT NOT NULL,
    attempts BIGINT NOT NULL
);

CREATE TABLE ports (
    uuid TEXT PRIMARY KEY NOT NULL,
    node TEXT NOT NULL REFERENCES nodes (uuid) ON DELETE CASCADE,
    place BIGINT NOT NULL,
    address TEXT UNIQUE NOT NULL,
    name TEXT UNIQUE,
    created_at BIGINT,
    updated_at BIGINT,
    document TEXT NOT NULL
);
CREATE INDEX ports_by_node ON ports (node, place);

-- What users want of any node. The node that an allocation has is a column, so that it ends with what its node keeps.
CREATE TABLE allocations (
    uuid TEXT PRIMARY KEY NOT NULL,
    name TEXT UNIQUE,
    state TEXT NOT NULL,
    node_uuid TEXT REFERENCES nodes (uuid) ON DELETE CASCADE,
    resource_class TEXT,
    owner TEXT,
    document TEXT NOT NULL
);
CREATE INDEX allocations_by_node ON allocations (node_uuid, state, uuid);
CREATE INDEX allocations_by_state ON allocations (state, uuid);

-- What machines are made of. `received` is what a ramdisk has posted last, which nobody may have looked at yet; what an
-- inspection that is done has kept is `document`. Both may have megabytes.
CREATE TABLE inspections (
    node TEXT PRIMARY KEY NOT NULL REFERENCES nodes (uuid) ON DELETE CASCADE,
    received TEXT,
    document TEXT
);

-- What happened to a node, the oldest first by its place.
CREATE TABLE node_history (
    uuid TEXT PRIMARY KEY NOT NULL,
    node TEXT NOT NULL REFERENCES nodes (uuid) ON DELETE CASCADE,
    place BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    severity TEXT NOT NULL,
    event_type TEXT NOT NULL,
    event TEXT NOT NULL,
    conductor TEXT NOT NULL,
    by_user TEXT
);
CREATE UNIQUE INDEX node_history_by_node ON node_history (node, place);

-- What its agents have signed of the disks that they erased: the last of each step for each disk.
CREATE TABLE erase_certificates (
    node TEXT NOT NULL REFERENCES nodes (uuid) ON DELETE CASCADE,
    disk TEXT NOT NULL,
    step TEXT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (node, disk, step)
);

-- Plain resources, such as chassis and runbooks. Names are unique within each kind, and so is what else a kind is known
-- by: the address of a port group, the identifier of a volume connector, the place of a volume.
CREATE TABLE resources (
    uuid TEXT PRIMARY KEY NOT NULL,
    kind TEXT NOT NULL,
    name TEXT,
    node TEXT REFERENCES nodes (uuid) ON DELETE CASCADE,
    natural_key TEXT,
    document TEXT NOT NULL,
    UNIQUE (kind, name),
    UNIQUE (kind, natural_key)
);
CREATE INDEX resources_by_kind ON resources (kind, uuid);
CREATE INDEX resources_by_node ON resources (node, kind, uuid);

-- How far machines came that boot from the network. It moves while nobody has their lease, so it is no part of a document.
CREATE TABLE boot_traces (
    node TEXT PRIMARY KEY NOT NULL REFERENCES nodes (uuid) ON DELETE CASCADE,
    document TEXT NOT NULL
);

-- What could be had of machines that stayed silent, until they boot the ramdisk again.
CREATE TABLE diagnoses (
    node TEXT PRIMARY KEY NOT NULL REFERENCES nodes (uuid) ON DELETE CASCADE,
    document TEXT NOT NULL
);
