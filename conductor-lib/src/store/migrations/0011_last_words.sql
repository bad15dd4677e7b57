-- What could be had of machines that stayed silent, until they boot the ramdisk again.
CREATE TABLE last_words (
    node TEXT PRIMARY KEY NOT NULL REFERENCES nodes (uuid) ON DELETE CASCADE,
    document TEXT NOT NULL
);
