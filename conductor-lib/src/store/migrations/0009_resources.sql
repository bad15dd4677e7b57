-- Plain resources, of which deploy templates and runbooks are two kinds. Names are unique within each, and so is what
-- else a kind is known by: the address of a port group, the identifier of a volume connector, the place of a volume.
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
INSERT INTO resources (uuid, kind, name, document) SELECT uuid, kind, name, document FROM workflows;
DROP TABLE workflows;
CREATE INDEX resources_by_node ON resources (node);
ALTER TABLE nodes ADD COLUMN chassis_uuid TEXT;
CREATE INDEX nodes_by_chassis ON nodes (chassis_uuid);
