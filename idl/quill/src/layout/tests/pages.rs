//! Calls that hand flexpages over: those that no message carries are refused, each kernel part with its own words.

use super::*;

/// Why a call is refused over a kernel part; none if it is not.
fn refusal(source: &str, kernel: &dyn KernelPart) -> Option<String> {
    let (_, layouts) = lay_out(&format!("typedef sequence<long, 99> Many; {source}"), kernel);
    layouts.err().map(|refused| refused[0].message.clone())
}

/// Memory beside a flexpage, in its message or in the other one, and a second flexpage are refused alike: with all that there is room for.
#[test]
fn memory_beside_pages_and_several_of_them_are_refused_alike() {
    let by_ipc = "a message hands over one flexpage, beside which there are up to 6 words in registers, and up to 8 the other way; \
                  nothing of such a call is in memory";
    let by_door = "what comes back brings references to objects, or one flexpage, beside which there are up to 6 words in registers \
                   and nothing in memory";
    let to_door = "pages come back, and go there by ipc";
    for (method, over_door) in [
        ("void f(in fpage a, in fpage b);", Some(to_door)),
        ("void f(in fpage a, in string b);", Some(to_door)),
        ("void f(in fpage a, in Many b);", Some(to_door)),
        ("void f(in fpage a, out Many b);", Some(to_door)),
        ("fpage f(out fpage b);", Some(by_door)),
        ("fpage f(out string b);", Some(by_door)),
        ("fpage f(out Many b);", Some(by_door)),
        ("fpage f(in string b);", None),
        ("fpage f(in Many b);", None),
        ("fpage f(in long b) raises (E);", None),
    ] {
        let source = format!("exception E {{ string why; }}; interface I {{ {method} }};");
        for (kernel, expected) in [
            (&Linux as &dyn KernelPart, Some("pages cannot be handed over by `linux`")),
            (&L4V4, Some("pages cannot be handed over by `l4-v4`")),
            (&TernIpc, Some(by_ipc)),
            (&TernDoor, over_door),
            (&TernDoorPlain, over_door),
        ] {
            let refused = refusal(&source, kernel);
            let refused = refused.as_deref().map(|all| all.trim_start_matches("`f` cannot be translated: "));
            let alike = match (refused, expected) {
                (Some(refused), Some(expected)) => refused.ends_with(expected),
                (refused, expected) => refused == expected,
            };
            assert!(alike, "{method} over {}: {refused:?}", kernel.name());
        }
    }
}

/// One in each direction goes, with as many words as there is room for.
#[test]
fn a_flexpage_in_each_direction_is_carried() {
    let longs =
        |count: usize| (0..count).map(|i| format!("in long long n{i}")).collect::<Vec<_>>().join(", ");
    for (count, is_carried) in [(6, true), (7, false)] {
        let source = format!("interface I {{ fpage f(in fpage a, {}); }};", longs(count));
        assert_eq!(refusal(&source, &TernIpc).is_none(), is_carried, "{count}");
    }
    for (count, is_carried) in [(8, true), (9, false)] {
        let source = format!("interface I {{ fpage f({}); }};", longs(count));
        assert_eq!(refusal(&source, &TernIpc).is_none(), is_carried, "{count}");
    }
}
