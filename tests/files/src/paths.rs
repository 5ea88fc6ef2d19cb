//! Paths that Linux would follow out of a folder.
