//! Attributes in stubs that run: their names in both languages, beside an operation that is called like one of them, and their exceptions.

mod workshop;

use quill::kernel::Linux;
use workshop::{Workshop, compilers};

/// Interface of `programs/shop.c` and `programs/shop.rs`.
const SHOP: &str = "module Shop {
  exception Closed { string why; };
  exception Poor { long by; };
  interface Till {
    readonly attribute long total getraises (Closed);
    attribute string owner getraises (Closed) setraises (Poor, Closed);
    attribute long drawers;
    long get_total(in long of);
    void shut(in boolean how);
  };
};
";

#[test]
fn attributes_raise_and_have_plain_names() {
    let shop = Workshop::new("attributes");
    shop.emit_c_of("shop.idl", SHOP, &Linux);
    shop.emit_rust_of("shop.idl", SHOP, &Linux);
    shop.bring("shop.c", "shop.c");
    shop.bring("shop.rs", "main.rs");
    shop.rustc(&["main.rs"]);
    for compiler in compilers() {
        let strict = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-D_GNU_SOURCE"];
        shop.tool(&compiler, &[&strict[..], &["-o", "shop", "shop.c"]].concat());
        for [server, client] in [["shop", "shop"], ["shop", "main"], ["main", "shop"], ["main", "main"]] {
            shop.together([server, "serve", "socket"], [client, "call", "socket"]);
        }
    }
}
