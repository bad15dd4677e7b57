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
CREATE INDEX allocations_by_node ON allocations (node_uuid);
