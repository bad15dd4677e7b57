//! The database of conductors: its commands, and a full disk.

mod commands;
mod full_disk;
