//! BMCs whose replies others recorded or published, beside this file.

mod orders;
mod readings;
