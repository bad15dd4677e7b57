//! Operations of every kind: their orders, deadlines, pauses, and what follows a failure.

mod attention;
mod cost;
mod deadlines;
mod disk_export;
mod driver_faults;
mod leases;
mod orders;
mod pause;
mod retry;
mod tear_down;
