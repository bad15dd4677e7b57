//! A laboratory for black-box tests: the reference conductor as a process, emulated machines it
//! deploys, and an image server that can misbehave.
//!
//! It uses the programs as an operator does and nothing else of the project.

pub mod console;
pub mod image_server;
pub mod lab;
