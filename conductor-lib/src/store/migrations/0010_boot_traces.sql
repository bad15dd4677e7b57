-- How far machines came that boot from the network. It moves while nobody has their lease, so it is no part of a document.
CREATE TABLE boot_traces (
    node TEXT PRIMARY KEY NOT NULL REFERENCES nodes (uuid) ON DELETE CASCADE,
    document TEXT NOT NULL
);
