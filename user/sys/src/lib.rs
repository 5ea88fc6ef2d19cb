//! System calls of Tern as Rust functions.
#![no_std]
