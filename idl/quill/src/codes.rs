//! Every code a message can have, with the text that `quill explain` prints.

/// One row of the table: the variant, its name, and its explanation.
macro_rules! codes {
    ($($variant:ident $name:literal $text:literal)*) => {
        /// What a message is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $(#[doc = concat!($name, "; see [`Code::explanation`].")] $variant,)*
        }

        impl Code {
            /// All codes, in order.
            pub const ALL: &[Code] = &[$(Code::$variant,)*];

            /// The code as printed.
            pub fn name(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }

            /// The explanation.
            pub fn explanation(self) -> &'static str {
                match self { $(Code::$variant => $text,)* }
            }
        }
    };
}

codes! {
Limit "E0001" "The input exceeds a limit.

Every run has limits on nesting, included files, macro expansion, expression size and inherited names, so that no input
can take the compiler's time or memory without end. Real interfaces stay far below them; the message names the limit
that was met. Usually something repeats itself: a file that includes itself, a macro that doubles its argument."

NotFound "E0002" "An included or imported file is not found.

    #include \"types.idl\"

The file is looked for beside the file that includes it, then beside the files that include that one, then in the
directories given by -I, in order. With <types.idl> the directories of -I come first."

Unreadable "E0003" "A file exists but cannot be read.

It may be a directory, too large, or protected."

Directive "E0004" "A preprocessor line has the wrong form.

A line that starts with # is for the preprocessor. Known are include, define, undef, if, ifdef, ifndef, elif, else,
endif, error, warning, pragma and line."

Conditional "E0005" "#if, #else and #endif do not match.

Each #if, #ifdef or #ifndef needs an #endif in the same file; #else comes at most once between them."

Condition "E0006" "The expression behind #if cannot be understood.

It consists of whole numbers, `defined NAME`, and C's operators. Names that are no macros count as 0."

ErrorDirective "E0007" "The file itself reports an error or warning.

    #error \"define PLATFORM first\"

The author of the file wrote this line for the case at hand. Often a macro must be defined with -D."

MacroCall "E0008" "A macro is called with the wrong arguments.

A macro with parameters takes exactly as many arguments, in parentheses, with commas between."

MacroRedefined "E0009" "A macro is defined a second time, differently.

The new definition holds from here on. Use #undef first if that is meant."

Unterminated "E0010" "A string, character or comment never ends.

Strings and characters end on the line on which they begin; a comment that begins with /* ends with */."

Character "E0011" "A character has no meaning in IDL.

Names consist of the letters a to z, digits and underscores. A character that looks right may be another one of the
same shape, such as a typographic quotation mark."

Syntax "E0101" "The text does not follow the grammar.

The message names what would be expected at that place. When the place looks right, look just before it: a missing `;`
or `}` is only noticed at the next word."

Keyword "E0102" "A keyword is used as a name.

    struct Port { long in; };

Keywords cannot be names, in any mixture of upper and lower case. Written with an underscore before it, `_in` is the
name `in`."

Literal "E0103" "A number, character or string is not well formed.

Octal numbers start with 0 and have digits up to 7, hexadecimal ones start with 0x. A character literal holds one
character. Escapes are \\n \\t \\v \\b \\r \\f \\a \\\\ \\? \\' \\\" \\ooo \\xhh \\uhhhh."

Direction "E0104" "A parameter does not say which way it goes.

    void f(long x);

Write `in long x` for a value that goes to the server, `out` for one that comes back, `inout` for both."

Stray "E0105" "Punctuation that does nothing.

An extra `;` or `,` is accepted, but other compilers may refuse it."

Pragma "E0106" "A pragma has the wrong form.

    #pragma prefix \"example.org\"
    #pragma version Name 1.2
    #pragma ID Name \"IDL:example.org/Name:1.0\""

Unknown "E0201" "A name is not declared.

Names must be declared before they are used. They are looked for in the scope where they are used, in what it
inherits, then in the scopes around it. `::Name` starts at the outermost."

Duplicate "E0202" "A name is declared twice in one scope.

A scope is a file, module, interface, struct, union, exception or the parameters of an operation. Names of an enum
belong to the scope around the enum."

CaseClash "E0203" "Two names differ only in upper and lower case.

Interfaces are mapped to languages that do not tell `name` from `Name`, so such names collide."

CaseUse "E0204" "A name is used in another case than declared.

Names match without regard to case, but must be written as in their declaration."

OwnName "E0205" "A name is that of the scope around it.

    interface Disk { void disk(); };

In several target languages the inner name would hide or be confused with the outer one."

UsedBefore "E0206" "A name is declared in a scope that already uses it from outside.

    typedef long Size;
    interface I { void f(in Size size); };

Using `Size` reserves the name in the operation; a parameter `size` would change what it means. Choose another name."

NotScope "E0207" "A name is qualified by something that contains no names.

Only modules, interfaces, value types, structs, unions and enums contain names."

Ambiguous "E0208" "A name is inherited from two bases.

Qualify it: `Base::Name`."

NotType "E0209" "Something that is no type stands where a type is needed.

Exceptions, modules and constants are no types. `void` is only the result of an operation."

Incomplete "E0210" "A type or interface is used before its definition is complete.

A struct can contain itself only through a sequence. An interface can be inherited only after its body."

NeverDefined "E0211" "A name is declared and never defined.

    struct Node;

The definition must follow in the same file or in one that it includes."

ConstType "E0301" "A value does not have the type that is needed.

    const double x = 14;
    const short s = \"text\";

Whole numbers are not converted to floating point: write 14.0. Fixed-point numbers end in d."

Range "E0302" "A value is out of range.

Every whole-number type has a smallest and a largest value; the message shows them. A range or a pair of limits that no value
can be within is an error, too.

In DCE IDL a constant that does not fit keeps its lowest bits, as C does it, and gets a warning:

    const short y = 40000;      // -25536

Write the value that is meant."

Arithmetic "E0303" "An expression cannot be computed.

It divides by zero, shifts by fewer than 0 or more than 63 places, overflows, or applies an operator to the wrong kind
of value."

Bound "E0304" "The size of an array, sequence or string is not positive.

Bounds and sizes are whole numbers from 1."

Switch "E0401" "A union has no discriminator, or one of a type that cannot be one.

    @flat union Word { long whole; octet bytes[4]; };

Without a discriminator nothing says which member a union holds. One that says `@flat` is meant so: its bytes travel, and
whatever they are has to be a value of each member."

Label "E0402" "The labels of a union do not work out.

Each value appears at most once, and `default` at most once."

BadBase "E0403" "Something is inherited that cannot be.

Interfaces inherit interfaces, each at most once; abstract ones only abstract ones; only local ones can inherit local
ones. Structs extend one struct. Value types inherit value types and support interfaces."

Anonymous "E0404" "A type needs a name here.

    void f(in sequence<long> x);

Parameters, results and attributes have types with names, since both sides need a name for the type:

    typedef sequence<long> Longs;
    void f(in Longs x);"

Inherited "E0405" "An operation or attribute has the name of an inherited one.

Operations cannot be overridden or overloaded, and two bases must not both have the name."

Raises "E0406" "Something is raised that is no exception."

Oneway "E0407" "A oneway operation promises something in return.

Nothing comes back from a oneway operation: its result is void, its parameters are `in`, and it raises nothing."

Flavour "E0408" "An interface is declared both with and without `local` or `abstract`."

NotTemplate "E0409" "Something is given parameters that is no template module.

    module Lists<typename T> { typedef sequence<T> List; };
    module Longs<long> Wrong;      // Longs is nothing
    module Lists<long> Right;"

Parameter "E0410" "A template module is not given the parameters that it declares.

There are as many as it declares, and each is of the kind that it declares: a type for `typename`, the name of a struct for `struct`, a
constant for `const`."

Attribute "E0501" "An attribute in brackets or an annotation is not known.

Unknown attributes and annotations are accepted, since many compilers have their own, and have no effect. An annotation that a file declares
with `@annotation` is known."

AttributeForm "E0502" "An attribute in brackets or an annotation has the wrong form or place.

It lacks a value or has one of the wrong kind, belongs to something else, or stands beside another one that says the same thing in another
way, as max_is does beside size_is."

SizeExpression "E0503" "An expression of size_is or the like names something that is not there.

The names in size_is, length_is, max_is, first_is, last_is, switch_is and iid_is are fields of the same struct or
parameters of the same operation."

Pointer "E0504" "A pointer does not make sense here.

An `out` parameter is a pointer or an array, since the server must have something to write to."

AcfTarget "E0505" "The attribute file names something that the interface does not have."

Foreign "E0601" "Understood, but nothing that stubs can carry.

Abstract and custom value types, native types, callbacks and the like are accepted in a file, so that it can be checked and
included. Stubs for an operation that uses one cannot be generated, and are refused by name rather than wrong."

Unsupported "E0701" "The construct is understood but not supported.

It is refused by name, so that nothing is translated wrongly."

OtherLanguage "E0702" "The file is written in another language.

Several languages share the suffix .idl: Web IDL (browsers), XPIDL (Mozilla), UNO IDL (LibreOffice), MIDL 3.0 (WinRT),
CamlIDL and more. quill reads OMG IDL and DCE IDL with its Microsoft descendant; files of others are refused whole."
}

/// The code with a given name, such as `E0101`.
pub fn find(name: &str) -> Option<Code> {
    Code::ALL.iter().copied().find(|c| c.name().eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_sorted() {
        assert!(Code::ALL.windows(2).all(|w| w[0].name() < w[1].name()));
        assert_eq!(find("e0101"), Some(Code::Syntax));
        assert_eq!(find("E9999"), None);
    }

    #[test]
    fn explanations_begin_with_a_sentence() {
        for code in Code::ALL {
            let first = code.explanation().lines().next().unwrap();
            assert!(first.ends_with('.'), "{}: {first}", code.name());
        }
    }
}
