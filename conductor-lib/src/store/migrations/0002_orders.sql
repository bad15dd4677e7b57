-- What an operator wants of a node, from the request until it is done or has failed.
CREATE TABLE orders (
    node TEXT PRIMARY KEY NOT NULL REFERENCES nodes (uuid) ON DELETE CASCADE,
    verb TEXT NOT NULL,
    ordered_at BIGINT NOT NULL,
    attempts BIGINT NOT NULL
);
