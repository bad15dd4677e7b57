//! BMCs whose replies others recorded or published, which are in the folder `mockups`.

mod orders;
mod readings;
