-- Deploy templates and runbooks: steps by name. `kind` says which of both; names are unique within each.
CREATE TABLE workflows (
    uuid TEXT PRIMARY KEY NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    document TEXT NOT NULL,
    UNIQUE (kind, name)
);
