//! Layouts of messages with references to objects.

use super::*;

/// An answer has one reference beside words in registers, or all of them in memory, those within what is read piece by piece among them.
/// Then its request is in memory, too, so that who serves knows where its windows are.
#[test]
fn references_within_values_are_in_memory() {
    let source =
        "interface I {}; struct S { long a; I it; }; typedef sequence<S, 3> L; typedef sequence<I> Many;
        union U switch (boolean) { case TRUE: I one; case FALSE: L some; }; exception E { I by; S more; };
        interface J {
            I one(in long a);
            S two(in long a);
            void three(in L all, in I beside, in U either);
            void four(out I a, out I b);
            string<99> five(out I a);
            void six(in Many all) raises (E);
            void seven(in S it);
        };";
    for kernel in [&TernDoor as &dyn KernelPart, &TernDoorPlain] {
        let (_, layouts) = lay_out(source, kernel);
        let methods = layouts.unwrap()[1].methods.clone();
        let shape = |number: usize| {
            let method = &methods[number];
            let most = |message: &Message| (message.long, message.handed_max());
            let exceptions = method.exceptions.iter().map(|(_, message)| most(message));
            (most(&method.request), most(&method.reply), exceptions.collect::<Vec<_>>())
        };
        let is_plain = kernel.name() == TernDoorPlain.name();
        assert_eq!(shape(0), ((is_plain, 0), (false, 1), vec![]));
        assert_eq!(shape(1), ((true, 0), (true, 1), vec![]));
        assert_eq!(shape(2), ((true, 7), (false, 0), vec![]));
        assert_eq!(shape(3), ((true, 0), (true, 2), vec![]));
        assert_eq!(shape(4), ((true, 0), (true, 1), vec![]));
        assert_eq!(shape(5), ((true, 16), (false, 0), vec![(true, 2)]));
        assert_eq!(shape(6), ((true, 1), (false, 0), vec![]));
        assert!(methods[4].replies_from_memory() && !methods[0].replies_from_memory());
    }
}
