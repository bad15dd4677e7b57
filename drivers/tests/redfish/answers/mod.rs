//! What a BMC answers wrongly: what one answer decides ([`believed`]), and one wrong answer after the other in everything that a
//! machine is asked for ([`cells`], [`sequence`]).

mod believed;
mod cells;
mod sequence;
