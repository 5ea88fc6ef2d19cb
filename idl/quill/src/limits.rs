//! What one run may use up: every limit with its value and its reason.
//!
//! The promise they keep together: one megabyte of any input ends within two seconds and 256 MB. Real
//! interface files stay below a tenth of each.

/// All files of a run together. The largest real import closure seen is under 4 MB.
pub const SOURCE_BYTES_MAX: usize = 32 << 20;
/// Files that include or import one another, at once.
pub const INCLUDE_DEPTH_MAX: usize = 100;
/// Files read in a run, each repetition counted.
pub const INCLUDES_MAX: usize = 4_000;
/// Text read in a run, that of a file each time it is included. Files with guards are read again only to be skipped.
pub const READ_BYTES_MAX: usize = 64 << 20;
/// Bytes of a name with the modules around it.
pub const PATH_BYTES_MAX: usize = 1_024;
/// Tokens after preprocessing, of one file with its includes. A token takes 24 bytes.
pub const TOKENS_MAX: usize = 2_500_000;
/// Tokens that macro expansion may produce in a run, those of arguments and of macros within macros counted each time.
/// The largest real file seen needs 1.2 million.
pub const EXPANDED_TOKENS_MAX: usize = 3_000_000;
/// Tokens of the bodies of template modules, counted in each instance.
pub const INSTANCE_TOKENS_MAX: usize = 200_000;
/// Macro calls within arguments of macro calls.
pub const MACRO_DEPTH_MAX: usize = 64;
/// Conditionals within conditionals.
pub const CONDITIONAL_DEPTH_MAX: usize = 1_000;
/// Braces, parentheses, template brackets within each other. The parser and everything behind it recurse
/// once a level, so this bounds their stack.
pub const NESTING_MAX: usize = 128;
/// Operators and operands in one expression.
pub const EXPRESSION_ITEMS_MAX: usize = 4_096;
/// Interfaces above an interface, all paths merged.
pub const BASES_MAX: usize = 1_000;
/// Names that interfaces of a run inherit, in total: bounds the check for clashes.
pub const INHERITED_NAMES_MAX: usize = 300_000;
/// Methods of all interfaces that are translated, inherited ones counted in each. Code for more would be tens of
/// megabytes.
pub const METHODS_MAX: usize = 2_000;
/// Methods that interfaces are looked at for as each of their bases, with something for each base.
pub const VIEWS_MAX: usize = 1_000_000;
/// Elements of an array that a message holds; the largest message of any kernel part has so many bytes.
pub const ELEMENTS_MAX: u64 = 16 << 20;
/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4096;
/// Types of a file, nameless ones counted, for which Rust is written.
pub const TYPES_MAX: usize = 10_000;
/// Bytes of one string constant.
pub const STRING_BYTES_MAX: usize = 1 << 16;
/// Errors shown before a run gives up.
pub const ERRORS_MAX: usize = 50;
/// Warnings shown; further ones are counted only.
pub const WARNINGS_MAX: usize = 50;

const _: () = assert!(NESTING_MAX < INCLUDE_DEPTH_MAX * 100);
const _: () = assert!(SOURCE_BYTES_MAX < u32::MAX as usize / 2, "spans are 32 bits wide");
