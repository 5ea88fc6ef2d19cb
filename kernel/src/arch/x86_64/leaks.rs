//! Leaks of a processor, by what CPUID and IA32_ARCH_CAPABILITIES say.
//!
//! Only the decision is made here, from plain numbers, so that it is tested on any machine; `cpu.rs` and `extended.rs` act on it
//! (decisions 0033 and 0053).

/// Whether no processor of this maker lets users read protected memory by speculation. Those of other makers say so one by one.
pub fn is_safe(vendor: &[u8; 12]) -> bool {
    [b"AuthenticAMD", b"HygonGenuine"].contains(&vendor)
}

/// Whether buffers leak, by what IA32_ARCH_CAPABILITIES says: MDS; TAA, where there are transactions; and the leaks of
/// registers and devices' data that were found later, where VERW is offered against them.
pub fn buffers(says: impl Fn(u32) -> bool, transactions: bool) -> bool {
    let (mds, taa) = (!says(5), transactions && !says(8));
    let devices = says(17) && !(says(13) && says(14) && says(15));
    let registers = says(28) && !says(27);
    mds || taa || devices || registers
}

/// Whether FXSAVE, XSAVE and their counterparts leave the x87 error pointers (FIP, FDP, FOP) as they are unless an exception is
/// pending, so that a program finds where another one has last used the x87 (CVE-2006-1056). AMD's do, and Hygon's, but for those
/// that say otherwise: `sizes_ebx` is EBX of leaf 8000_0008h. AMD64 manual volume 2, 11.4.4; volume 3, CPUID.
pub fn x87_pointers(vendor: &[u8; 12], sizes_ebx: u32) -> bool {
    const ALWAYS_SAVED: u32 = 1 << 2;
    [b"AuthenticAMD", b"HygonGenuine"].contains(&vendor) && sizes_ebx & ALWAYS_SAVED == 0
}

/// Whether there is a command that lets the processor forget what it has learned of branches (IBPB). `features_edx` is EDX of leaf 7,
/// where Intel says so, `sizes_ebx` EBX of leaf 8000_0008h, where AMD does.
pub fn has_barrier(features_edx: u32, sizes_ebx: u32) -> bool {
    features_edx >> 26 & 1 != 0 || sizes_ebx >> 12 & 1 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const AMD: &[u8; 12] = b"AuthenticAMD";
    const HYGON: &[u8; 12] = b"HygonGenuine";
    const INTEL: &[u8; 12] = b"GenuineIntel";
    const OTHERS: [&[u8; 12]; 4] = [b"CentaurHauls", b"  Shanghai  ", b"TCGTCGTCGTCG", &[0; 12]];

    #[test]
    fn x87_pointers_leak_on_amds_without_the_bit() {
        for vendor in [AMD, HYGON] {
            assert!(x87_pointers(vendor, 0));
            assert!(x87_pointers(vendor, !(1 << 2)), "other bits say nothing about it");
            assert!(!x87_pointers(vendor, 1 << 2));
            assert!(!x87_pointers(vendor, u32::MAX));
        }
        for vendor in OTHERS.into_iter().chain([INTEL]) {
            assert!(!x87_pointers(vendor, 0) && !x87_pointers(vendor, 1 << 2));
        }
    }

    #[test]
    fn either_maker_says_where_the_barrier_is() {
        assert!(has_barrier(1 << 26, 0) && has_barrier(0, 1 << 12));
        assert!(!has_barrier(!(1 << 26), !(1 << 12)));
    }

    #[test]
    fn speculation_leaks_where_nothing_denies_it() {
        assert!(is_safe(AMD) && is_safe(HYGON) && !is_safe(INTEL));
        assert!(OTHERS.into_iter().all(|vendor| !is_safe(vendor)));
        let bits = |set: &'static [u32]| move |bit: u32| set.contains(&bit);
        assert!(buffers(bits(&[]), false), "who says nothing has MDS");
        assert!(!buffers(bits(&[5]), false));
        assert!(buffers(bits(&[5]), true), "transactions without TAA_NO");
        assert!(!buffers(bits(&[5, 8]), true));
        assert!(buffers(bits(&[5, 17]), false) && buffers(bits(&[5, 17, 13, 14]), false));
        assert!(!buffers(bits(&[5, 17, 13, 14, 15]), false));
        assert!(buffers(bits(&[5, 28]), false) && !buffers(bits(&[5, 28, 27]), false));
    }
}
