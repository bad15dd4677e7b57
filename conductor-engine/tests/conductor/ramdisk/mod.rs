//! The ramdisk: how it is booted and kept, what its agent calls, and its logs.

mod api;
mod boot_fallback;
mod fast_track;
mod logs;
