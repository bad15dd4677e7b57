-- What machines are made of. `received` is what a ramdisk has posted last, which nobody may have looked at yet; what an
-- inspection that is done has kept is `document`. Both may have megabytes.
CREATE TABLE inspections (
    node TEXT PRIMARY KEY NOT NULL REFERENCES nodes (uuid) ON DELETE CASCADE,
    received TEXT,
    document TEXT
);
