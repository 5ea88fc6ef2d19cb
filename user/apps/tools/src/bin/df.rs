//! Shows how much space there is: `df [PATH...]`, each a directory; without one, the working directory.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

use rt::println;
use tools::each_or_here;

rt::entry!(main);

fn main() -> i32 {
    println!("{:>12} {:>12} {:>10}  PATH", "KIB", "FREE", "FILES FREE");
    each_or_here(&rt::arguments(), |root, path, typed| {
        let space = root.enter(path)?.space()?;
        println!("{:>12} {:>12} {:>10}  {typed}", space.total >> 10, space.free >> 10, space.files_free);
        Ok(())
    })
}
