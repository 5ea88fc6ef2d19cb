//! Tests of file systems on the host.
#![cfg(test)]

mod as_on_linux;
mod damaged;
mod directories;
mod ext4_on_disk;
mod hostile;
mod journals;
mod kept;
mod large;
mod paths;
mod quota;
mod read_only;
mod sandbox;
mod served;
mod stacked;
mod sums;
mod two_clients;
mod watches;
mod xattrs;
