//! The scripts of boot loaders: [`render`] writes those of a machine, by [`templates`] that an operator may replace, and
//! [`root_script`] those that every machine reads first.

pub mod render;
pub mod root_script;
pub mod templates;
