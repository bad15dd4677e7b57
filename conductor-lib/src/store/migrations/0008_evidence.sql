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
