//! fast_path
