//! The REST interface of the agent (section 1).

mod body;
mod connections;
pub mod description;
mod limits;
mod patient;
pub mod routes;
pub mod server;
mod texts;

#[cfg(test)]
mod bad_input_tests;
#[cfg(test)]
mod concurrency_tests;
#[cfg(test)]
mod contract_tests;
#[cfg(test)]
pub mod form;
#[cfg(test)]
mod hostility_tests;
#[cfg(test)]
mod lockdown_tests;
#[cfg(test)]
pub mod recording;
#[cfg(test)]
mod replay_tests;
#[cfg(test)]
mod stand_in;
#[cfg(test)]
mod test_server;
