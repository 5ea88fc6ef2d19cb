//! shuttles
