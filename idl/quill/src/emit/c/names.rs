//! Names of the output, chosen before anything is written: those of types, constants and functions, which share one space with
//! each other and with all that headers declare; and those of fields and parameters, which macros reach as well.
//!
//! What is chosen goes into a copy of the model, so that whoever writes code finds each field and parameter under the name that it has in
//! C. Only declared types, whose names say what references and sequences are called, keep the file's names there and have others in [`Names`].

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use crate::model::{Binding, Called, Field, Model, Type, TypeId, Value};

/// Words that mean something in C or in C++, or that common headers define in some way or other; and what stubs call their own variables.
const RESERVED: &str = "auto break case char const continue default do double else enum extern float for goto if inline int \
     long register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while \
     bool true false nullptr asm typeof typeof_unqual alignas alignof constexpr static_assert thread_local unix linux i386 \
     errno stdin stdout stderr NULL EOF assert offsetof signal major minor catch class delete new private protected public \
     template this throw try using virtual namespace operator friend explicit export and or not xor and_eq or_eq xor_eq \
     not_eq bitand bitor compl const_cast dynamic_cast reinterpret_cast static_cast decltype mutable noexcept typeid \
     typename wchar_t char8_t char16_t char32_t concept consteval constinit co_await co_return co_yield requires \
     defined __label__ __asm__ __asm __attribute__ __attribute __typeof__ __typeof __inline__ __inline __const __const__ __volatile \
     __volatile__ __signed __signed__ __restrict __restrict__ __extension__ __real__ __imag__ __complex__ __thread __alignof \
     __alignof__ __auto_type __int128 __func__ __FUNCTION__ __PRETTY_FUNCTION__ __FILE__ __LINE__ __COUNTER__ __DATE__ \
     __TIME__ __BASE_FILE__ __INCLUDE_LEVEL__ __TIMESTAMP__ __null __builtin_va_arg __builtin_offsetof _Bool _Complex \
     _Imaginary _Noreturn _Static_assert _Thread_local _Alignas _Alignof _Atomic _Generic _Float128 _Pragma \
     _server _out _in _label _status _result _raised _self _methods _memory _silent _d _u _length _buffer _bits _nothing";

/// What the standard headers declare, in three parts: macros, macros with parameters, everything else.
const STANDARD: &str = include_str!("standard_names.txt");

/// How names begin that headers of quill's own making, and Tern's, declare.
const OWN: [&str; 5] = ["quill_", "QUILL_", "tern_", "TERN_", "sequence_"];

/// How the names of types that have none begin inside of other such names.
const WITHIN: [&str; 4] = ["array_", "string_", "elements_", "quill"];

/// What the headers' functions for numbers are called by.
const NUMBERS: [&str; 12] =
    ["bool", "wchar", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f32", "f64"];

struct Standard {
    macros: HashSet<&'static str>,
    with_parameters: HashSet<&'static str>,
    all: HashSet<&'static str>,
}

fn standard() -> &'static Standard {
    static FOUND: OnceLock<Standard> = OnceLock::new();
    FOUND.get_or_init(|| {
        let (mut macros, mut all) = (HashSet::from_iter(RESERVED.split_whitespace()), HashSet::new());
        let mut with_parameters = HashSet::new();
        let mut part = "";
        for line in STANDARD.lines() {
            match line.strip_prefix("# ") {
                Some(title) => part = title,
                None if part == "macros" => macros.extend(line.split_whitespace()),
                None if part == "macros with parameters" => with_parameters.extend(line.split_whitespace()),
                None => all.extend(line.split_whitespace()),
            }
        }
        all.extend(macros.iter().chain(&with_parameters));
        Standard { macros, with_parameters, all }
    })
}

/// Whether a name means something else where a parenthesis follows.
pub fn is_macro_with_parameters(name: &str) -> bool {
    standard().with_parameters.contains(name)
}

/// A name of a field or parameter, as far as the name alone decides.
pub fn word(text: &str) -> String {
    let mut clean = spelled(text);
    while standard().macros.contains(clean.as_str()) {
        clean.push('_');
    }
    clean
}

/// Name of a function or method, or what belongs to one: those of an attribute `a`, `_get_a` and `_set_a` in the model, are without their underscore.
pub fn without_underscore(name: &str) -> &str {
    let plain = name.strip_prefix('_').unwrap_or(name);
    if plain.starts_with("get_") || plain.starts_with("set_") { plain } else { name }
}

/// A name in the letters that C has.
fn spelled(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if clean.is_empty() { "unnamed".into() } else { clean }
}

/// All identifiers in a text of C, and the macros that it defines.
fn identifiers(text: &str) -> (HashSet<&str>, HashSet<&str>) {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let all = text.split(|c| !is_part(c)).filter(|word| word.starts_with(|c: char| !c.is_ascii_digit()));
    let defined = text.lines().filter_map(|line| line.trim_start().strip_prefix("#define "));
    let macros = defined.filter_map(|rest| rest.split(|c| !is_part(c)).next());
    (all.collect(), macros.collect())
}

/// Whether a name could be one of a stub's own variables, none of which ends in an underscore.
fn looks_local(text: &str) -> bool {
    let begins =
        text.strip_prefix('_').is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_uppercase()));
    begins && !text.ends_with('_')
}

/// The key for what belongs to a type, by its name in C.
pub fn belonging(of: &str, what: &str) -> String {
    format!("{of}::({what})")
}

/// The key for what belongs to an interface, by its path in the file.
pub fn belonging_to_interface(path: &str, what: &str) -> String {
    format!("({path})::({what})")
}

/// The names that have been chosen.
#[derive(Debug, Default)]
pub struct Names {
    /// Of declared types.
    pub types: HashMap<TypeId, String>,
    /// Of exceptions, by their place in the model.
    pub exceptions: Vec<String>,
    /// Of constants, by their place in the model.
    pub constants: Vec<String>,
    /// Of the members of enums and bitmasks, in their order.
    pub members: HashMap<TypeId, Vec<String>>,
    /// Of the pointers to methods, by operation.
    pub methods: HashMap<String, String>,
    /// What belongs to types and that the file does not declare, by a key that no function has; see [`belonging`].
    pub belongings: HashMap<String, String>,
    /// Names that are taken.
    pub taken: HashSet<String>,
    /// Macros that stubs and the file's own constants are.
    macros: HashSet<String>,
}

impl Names {
    /// Chooses names for all that a file declares beside a text that is there already. The copy has the fields and parameters as they are called.
    pub fn choose(model: &Model, runtime: &str) -> (Names, Model) {
        let (used, macros) = identifiers(runtime);
        let mut names = Names {
            taken: standard().all.iter().map(|&name| name.to_owned()).collect(),
            macros: macros.into_iter().map(str::to_owned).collect(),
            ..Names::default()
        };
        // What is not the file's own has its name before everybody.
        for id in model.ids().filter(|&id| model.is_any(id) || model.is_any_kind(id)) {
            if let Type::Struct(path, _) | Type::Enum(path, _) = model.ty(id) {
                names.types.insert(id, path.replace("::", "_"));
            }
        }
        for id in model.ids() {
            if let Type::Fixed(path, ..) = model.ty(id) {
                names.types.insert(id, path.replace("::", "_"));
            }
        }
        names.choose_types(model, &used);
        names.choose_constants(model, &used);
        names.choose_methods(model);
        let renamed = names.renamed(model);
        (names, renamed)
    }

    fn choose_types(&mut self, model: &Model, used: &HashSet<&str>) {
        let is_free = |name: &str| {
            let functions = ["quill_get_", "quill_put_", "quill_packed_get_", "quill_packed_put_"];
            let functions = functions.map(|of| format!("{of}{name}"));
            !NUMBERS.contains(&name) && !functions.iter().any(|function| used.contains(function.as_str()))
        };
        let mut named: HashSet<&str> = HashSet::new();
        for id in model.ids() {
            let path = match model.ty(id) {
                Type::Struct(path, _)
                | Type::Flat(path, _)
                | Type::Enum(path, _)
                | Type::Bitmask(path, ..) => path,
                Type::Union { name, .. } => name,
                _ => continue,
            };
            named.insert(path);
            if !self.types.contains_key(&id) {
                let name = unique(&mut self.taken, &outside(path), is_free);
                self.types.insert(id, name);
            }
        }
        for exception in &model.exceptions {
            self.exceptions.push(unique(&mut self.taken, &outside(&exception.name), is_free));
        }
        // Aliases last: a struct whose tag and typedef share a name keeps it for itself.
        for id in model.ids() {
            if let Type::Alias(path, _) = model.ty(id)
                && named.insert(path)
            {
                let name = unique(&mut self.taken, &outside(path), is_free);
                self.types.insert(id, name);
            }
        }
        for id in model.ids() {
            let what = match model.ty(id) {
                Type::Union { .. } => "u",
                Type::Enum(..) if !model.is_any_kind(id) => "is_value",
                _ => continue,
            };
            let of = &self.types[&id];
            let name = unique(&mut self.taken, &format!("{of}_{what}"), |_| true);
            self.belongings.insert(belonging(of, what), name);
        }
    }

    /// Constants and members of bitmasks are macros, and so reach into everything that is written behind them.
    fn choose_constants(&mut self, model: &Model, used: &HashSet<&str>) {
        let is_free = |name: &str| !used.contains(name) && !looks_local(name);
        for id in model.ids().filter(|&id| !model.is_any_kind(id)) {
            let (path, members, is_macro) = match model.ty(id) {
                Type::Enum(path, members) => (path, members, false),
                Type::Bitmask(path, _, members) => (path, members, true),
                _ => continue,
            };
            let scope = match path.rsplit_once("::") {
                // Two bitsets may have fields of one name.
                _ if model.is_bitset(id) => format!("{path}::"),
                Some((scope, _)) => format!("{scope}::"),
                None => String::new(),
            };
            let mut chosen = Vec::new();
            for (member, _) in members {
                let wanted = format!("{scope}{member}");
                chosen.push(unique(&mut self.taken, &wanted, |name| !is_macro || is_free(name)));
            }
            if is_macro {
                self.macros.extend(chosen.iter().cloned());
            }
            self.members.insert(id, chosen);
        }
        for constant in &model.consts {
            let name = match constant.value {
                Value::Error => String::new(),
                _ => unique(&mut self.taken, &constant.name, is_free),
            };
            self.macros.insert(name.clone());
            self.constants.push(name);
        }
    }

    /// A pointer to a method is called like its operation, in all interfaces that have it.
    fn choose_methods(&mut self, model: &Model) {
        let all = || model.interfaces.iter().flat_map(|i| &i.operations).map(|o| o.name.as_str());
        let mut taken: HashSet<String> = all().map(spelled).collect();
        for operation in all() {
            if self.methods.contains_key(operation) {
                continue;
            }
            let mut name = self.field(without_underscore(operation));
            while name != operation && !taken.insert(name.clone()) {
                name.push('_');
            }
            self.methods.insert(operation.to_owned(), name);
        }
    }

    /// A name of a field that no macro has.
    pub fn field(&self, text: &str) -> String {
        let mut name = word(text);
        let own = ["QUILL_", "TERN_"].iter().any(|own| name.starts_with(own));
        if own && !name.ends_with('_') {
            name.push('_');
        }
        while self.macros.contains(&name) || standard().macros.contains(name.as_str()) {
            name.push('_');
        }
        name
    }

    /// Whether a parameter would hide something that stubs need; what an interface has begins with the interface's name.
    fn hides(&self, name: &str, interfaces: &HashSet<String>) -> bool {
        let begins = name.match_indices('_').map(|(end, _)| &name[..end]);
        looks_local(name)
            || self.taken.contains(name)
            || OWN.iter().any(|own| name.starts_with(own))
            || begins.chain([name]).any(|begin| interfaces.contains(begin))
    }

    fn renamed(&self, model: &Model) -> Model {
        let mut renamed = model.clone();
        let rename = |fields: &mut [Field]| {
            let mut all = fields.iter_mut().map(|field| &mut field.name).collect::<Vec<_>>();
            choose_all(&mut all, |text| self.field(text));
        };
        for id in model.ids().filter(|&id| !model.is_any(id)) {
            match renamed.ty_mut(id) {
                Type::Struct(_, fields) | Type::Flat(_, fields) => rename(fields),
                Type::Union { branches, .. } => {
                    let mut all: Vec<&mut String> = branches.iter_mut().map(|b| &mut b.field.name).collect();
                    choose_all(&mut all, |text| self.field(text));
                }
                _ => {}
            }
        }
        renamed.exceptions.iter_mut().for_each(|exception| rename(&mut exception.fields));
        let flat = |interface: &crate::model::Interface| spelled(&interface.name.replace("::", "_"));
        let mut interfaces: HashSet<String> = model.interfaces.iter().map(flat).collect();
        // A parameter must not hide the variable or the function that says whom to call.
        interfaces.extend(model.interfaces.iter().filter_map(|interface| match &interface.binding {
            Some(Binding::Named(variable)) => Some(word(variable)),
            _ => None,
        }));
        let all = model.interfaces.iter().flat_map(|interface| &interface.operations);
        interfaces.extend(all.flat_map(|operation| match &operation.called {
            Called::Found(of) => ["bind", "unbind"].map(|what| format!("{}_{what}", word(of))).to_vec(),
            _ => Vec::new(),
        }));
        for operation in renamed.interfaces.iter_mut().flat_map(|i| &mut i.operations) {
            let mut all: Vec<&mut String> = operation.params.iter_mut().map(|p| &mut p.name).collect();
            choose_all(&mut all, |text| {
                let mut name = self.field(text);
                while self.hides(&name, &interfaces) && name.len() < text.len() + 3 {
                    name.push('_');
                }
                name
            });
        }
        renamed
    }
}

/// Gives names that stand side by side those that they can have. Each that can keep its own does, whichever comes first.
fn choose_all(names: &mut [&mut String], choose: impl Fn(&str) -> String) {
    let mut taken: HashSet<String> = HashSet::new();
    let chosen: Vec<String> = names.iter().map(|name| choose(name)).collect();
    let kept: Vec<bool> = names.iter().zip(&chosen).map(|(name, chosen)| **name == *chosen).collect();
    let kept: Vec<bool> =
        kept.into_iter().zip(&chosen).map(|(k, name)| k && taken.insert(name.clone())).collect();
    for ((name, mut wanted), kept) in names.iter_mut().zip(chosen).zip(kept) {
        while !kept && !taken.insert(wanted.clone()) {
            wanted.push('_');
        }
        **name = wanted;
    }
}

/// The name of a declared type, out of the way of those that lists get from what they consist of.
fn outside(path: &str) -> String {
    let text = spelled(&path.replace("::", "_"));
    let is_within = WITHIN.iter().any(|begin| text.starts_with(begin)) || text == "string";
    if is_within { format!("_{text}") } else { text }
}

/// A name that nothing else has.
pub fn unique(taken: &mut HashSet<String>, path: &str, is_free: impl Fn(&str) -> bool) -> String {
    let mut wanted = spelled(&path.replace("::", "_"));
    if OWN.iter().any(|own| wanted.starts_with(own)) {
        wanted.insert(0, '_');
    }
    while standard().all.contains(wanted.as_str()) || !is_free(&wanted) || !taken.insert(wanted.clone()) {
        wanted.push('_');
    }
    wanted
}
