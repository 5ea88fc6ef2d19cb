//! A client of `warehouse.idl`, for a server in C: `call PATH`.

mod stubs {
    include!("warehouse.rs");
}

use std::os::unix::net::UnixStream;

use stubs::rt::{Failure, MALFORMED, Shared};
use stubs::*;

fn node(value: i32, next: Option<Box<node>>) -> node {
    node { value, next }
}

fn values(list: &node) -> Vec<i32> {
    let mut all = vec![list.value];
    let mut at = &list.next;
    while let Some(next) = at {
        all.push(next.value);
        at = &next.next;
    }
    all
}

/// How many nodes a list has, built without recursion.
fn long(count: i32) -> node {
    (1..count).fold(node(0, None), |list, value| node(value, Some(Box::new(list))))
}

fn main() {
    let path = std::env::args().nth(2).expect("`call PATH`");
    let connect = |_| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        UnixStream::connect(&path).ok()
    };
    let mut client = Warehouse::Client { transport: (0..1000).find_map(connect).expect("somebody serves") };
    assert_eq!(client.begin("abc", &None).unwrap(), 399);
    assert_eq!(client.begin("abc", &Some("de".into())).unwrap(), 302);
    assert_eq!(client.close(302).unwrap(), 0);
    assert_eq!(client.sum(3, &[1, 2, 3]).unwrap(), 6);
    for n in [2, 4, -1, i32::MIN] {
        assert!(matches!(client.sum(n, &[1, 2, 3]), Err(Failure::TooLong)), "{n}");
    }
    assert_eq!(client.fill(3, 0).unwrap(), (3, vec![0, 1, 2]));
    assert!(matches!(client.fill(3, 77), Err(Failure::Refused(MALFORMED))), "the server says more than there is room for");
    assert_eq!(client.both(1, &[10, 20], &[1, 2]).unwrap(), [11, 22]);
    client.grid(2, &[None, Some(vec![1, 2, 3])]).unwrap();
    assert!(matches!(client.grid(2, &[None, Some(vec![1, 2])]), Err(Failure::TooLong)));
    client.part(3, 5, &[1, 2, 3]).unwrap();
    assert!(matches!(client.part(5, 3, &[1, 2, 3]), Err(Failure::TooLong)));
    let list = node(1, Some(Box::new(node(2, Some(Box::new(node(3, None)))))));
    assert_eq!(values(&client.list(&list, &Some(Shared::new(10))).unwrap().unwrap()), [13, 12, 11]);
    // A list that is just deep enough; and deeper, which the server refuses.
    assert_eq!(values(&client.list(&long(64), &None).unwrap().unwrap()).len(), 64);
    assert!(client.list(&long(1000), &None).is_err());
    let what = any_u::text(Some("two".into()));
    let tagged = tagged { kind: 4, what: any_u::deep(4, node(1, None)) };
    let sized = client.choose(2, &what, &tagged).unwrap();
    assert_eq!(sized, stubs::sized::large(Some(2)));
    assert!(matches!(client.choose(1, &what, &tagged), Err(Failure::TooLong)));
    let names = [Some("a".to_owned()), None];
    assert_eq!(client.names(2, &names).unwrap(), (2, Some(names.to_vec())));
    assert_eq!(client.title(5).unwrap(), "abc");
    assert!(matches!(client.title(4), Err(Failure::Refused(MALFORMED))), "four characters need room for five");
}
