//! Instances that run: adopted, rescued, and serviced.

mod adopt;
mod rescue;
mod service;
