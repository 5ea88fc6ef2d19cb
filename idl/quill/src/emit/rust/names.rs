//! Names of the output, chosen before anything is written, as a copy of the model that has them.
//!
//! Rust has one space for types and modules and one for values, and a constant is looked for in every pattern: a variable must not be called
//! like one. What the file declares gives way where it cannot be told apart; keywords need nothing, since they are written raw.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::model::{Field, Model, Type, TypeId};

/// Values that Rust has everywhere, and that patterns are made of: no variable can be called like that.
const EVERYWHERE: [&str; 4] = ["Ok", "Err", "Some", "None"];

/// Variables of stubs: no constant can be called like that.
const VARIABLES: &str = "above answer bits bytes door e failure field fits good kept kind label message method n \
     name names number one other owned reply request requests room rounds s scalar seed server space stream text value values view \
     watch which width window wrong";

/// Generic parameters of stubs, and what these must be: no type in an interface can be called like that.
const PARAMETERS: [&str; 5] = ["S", "T", "W", "C", "Sized"];

/// Words that cannot be written raw.
pub fn escaped(text: &str) -> String {
    match text {
        "" => "unnamed".into(),
        "self" | "Self" | "super" | "crate" | "_" => format!("{text}_"),
        text => text.to_owned(),
    }
}

/// The modules around a name, and the name in Rust: what is declared inside of a type is beside it, with the type's name before its own.
pub fn place(type_names: &HashSet<String>, path: &str) -> (Vec<String>, String) {
    let parts: Vec<&str> = path.split("::").collect();
    let mut modules = Vec::new();
    let mut prefix = String::new();
    for (i, part) in parts.iter().enumerate() {
        if i > 0 {
            prefix.push_str("::");
        }
        prefix.push_str(part);
        if i + 1 == parts.len() || type_names.contains(&prefix) {
            return (modules, parts[i..].join("_"));
        }
        modules.push((*part).to_owned());
    }
    (modules, String::new())
}

/// The names of what has a type of its own.
pub fn type_names(model: &Model) -> HashSet<String> {
    let types = model.ids().filter_map(|id| match model.ty(id) {
        Type::Alias(..) => None,
        ty => ty.name().map(str::to_owned),
    });
    types.chain(model.exceptions.iter().map(|e| e.name.clone())).collect()
}

/// A copy of a model with the names that everything has in Rust.
pub fn renamed(model: &Model) -> Model {
    let mut renamed = model.clone();
    let mut paths = Paths::new(model);
    for interface in &mut renamed.interfaces {
        if let Some(chosen) = paths.chosen.get(&(false, interface.name.clone())) {
            interface.name = chosen.clone();
        }
    }
    for id in model.ids() {
        if let (Some(path), false) = (model.ty(id).name(), matches!(model.ty(id), Type::Alias(..))) {
            let is_value = matches!(model.ty(id), Type::Bitmask(..) | Type::Fixed(..));
            let chosen = paths.choose(path, Space::of(is_value));
            renamed.rename(id, chosen);
        }
    }
    for exception in &mut renamed.exceptions {
        exception.name = paths.choose(&exception.name, Space::Types);
    }
    for id in model.ids() {
        if let Type::Alias(path, _) = model.ty(id) {
            let chosen = paths.choose(path, Space::Types);
            renamed.rename(id, chosen);
        }
    }
    let mut values: HashSet<String> = HashSet::new();
    for constant in &mut renamed.consts {
        constant.name = paths.choose(&constant.name, Space::Values);
        values.insert(last(&constant.name).to_owned());
    }
    for id in model.ids() {
        if let Type::Bitmask(path, ..) | Type::Fixed(path, ..) = renamed.ty(id) {
            values.insert(last(path).to_owned());
        }
    }
    members(&mut renamed, &values);
    renamed
}

/// The paths around a path, the shortest first.
fn prefixes(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices("::").map(|(end, _)| &path[..end])
}

/// The path of a name in a scope, which is empty outside of everything.
fn within(scope: &str, own: &str) -> String {
    if scope.is_empty() { own.to_owned() } else { format!("{scope}::{own}") }
}

/// New paths of modules whose names Rust cannot write, and of all modules inside of them. None is called like something beside it.
fn modules(model: &Model, type_names: &HashSet<String>) -> HashMap<String, String> {
    let of_types = model.ids().filter_map(|id| model.ty(id).name());
    let of_consts = model.consts.iter().map(|constant| constant.name.as_str());
    let of_exceptions = model.exceptions.iter().map(|exception| exception.name.as_str());
    let interfaces = model.interfaces.iter().map(|interface| interface.name.as_str());
    let paths: Vec<&str> = of_types.chain(of_consts).chain(of_exceptions).chain(interfaces.clone()).collect();
    let around = paths.iter().flat_map(|path| prefixes(path)).chain(interfaces);
    let modules: BTreeSet<&str> = around.filter(|path| !type_names.contains(*path)).collect();
    let mut beside: HashSet<String> = paths.iter().chain(&modules).map(|path| (*path).to_owned()).collect();
    let mut now: HashMap<String, String> = HashMap::new();
    // In this order a module comes before those inside of it.
    for module in modules {
        let (scope, own) = module.rsplit_once("::").unwrap_or(("", module));
        let mut chosen = escaped(own);
        while chosen != own && !beside.insert(within(scope, &chosen)) {
            chosen.push('_');
        }
        let path = within(now.get(scope).map_or(scope, String::as_str), &chosen);
        if path != module {
            now.insert(module.to_owned(), path);
        }
    }
    now
}

/// Fields, parameters, and what stands in enums.
fn members(model: &mut Model, values: &HashSet<String>) {
    let field = |text: &str| {
        let mut name = escaped(text);
        while values.contains(&name) || EVERYWHERE.contains(&name.as_str()) {
            name.push('_');
        }
        name
    };
    let fields = |fields: &mut [Field]| distinct(fields.iter_mut().map(|f| &mut f.name), field);
    let ids: Vec<TypeId> = model.ids().filter(|&id| !model.is_any(id) && !model.is_any_kind(id)).collect();
    for id in ids {
        match model.ty_mut(id) {
            Type::Struct(_, all) | Type::Flat(_, all) => fields(all),
            Type::Union { branches, .. } => distinct(branches.iter_mut().map(|b| &mut b.field.name), escaped),
            Type::Enum(_, all) | Type::Bitmask(_, _, all) => {
                distinct(all.iter_mut().map(|m| &mut m.0), escaped);
            }
            _ => {}
        }
    }
    // They are variables where stubs are, beside what these have themselves.
    let variable = |text: &str| {
        let name = field(text);
        if looks_local(&name) || OWN_VARIABLES.contains(&name.as_str()) { name + "_" } else { name }
    };
    for exception in &mut model.exceptions {
        distinct(exception.fields.iter_mut().map(|f| &mut f.name), variable);
    }
    for operation in model.interfaces.iter_mut().flat_map(|i| &mut i.operations) {
        distinct(operation.params.iter_mut().map(|p| &mut p.name), variable);
    }
}

/// What stubs have beside the variables of the file: types that are values or functions, too.
const OWN_VARIABLES: [&str; 5] = ["Method", "Strings", "ReplyStrings", "Table", "Watched"];

/// Whether a name could be one of a stub's own variables, none of which ends in an underscore.
fn looks_local(text: &str) -> bool {
    let begins =
        text.strip_prefix('_').is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_uppercase()));
    begins && !text.ends_with('_')
}

/// Gives names that stand side by side those that they can have. Each that can keep its own does, whichever comes first.
fn distinct<'a>(names: impl Iterator<Item = &'a mut String>, choose: impl Fn(&str) -> String) {
    let mut names: Vec<&mut String> = names.collect();
    let mut taken: HashSet<String> = HashSet::new();
    let chosen: Vec<String> = names.iter().map(|name| choose(name)).collect();
    let kept: Vec<bool> =
        names.iter().zip(&chosen).map(|(name, new)| **name == *new && taken.insert(new.clone())).collect();
    for ((name, mut wanted), kept) in names.iter_mut().zip(chosen).zip(kept) {
        while !kept && !taken.insert(wanted.clone()) {
            wanted.push('_');
        }
        **name = wanted;
    }
}

fn last(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}

/// What two things must not be called alike for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    Types,
    Values,
    /// A struct without names of its fields is a function, too.
    Both,
}

impl Space {
    fn of(is_value: bool) -> Space {
        if is_value { Space::Both } else { Space::Types }
    }
}

/// Declared names, and what they have become.
struct Paths {
    type_names: HashSet<String>,
    interfaces: HashSet<String>,
    variables: HashSet<&'static str>,
    /// By whether it is a value, and place.
    taken: HashSet<(bool, String)>,
    chosen: HashMap<(bool, String), String>,
}

impl Paths {
    fn new(model: &Model) -> Paths {
        let type_names = type_names(model);
        let modules = modules(model, &type_names);
        let mut taken = HashSet::new();
        let interfaces: HashSet<String> = model.interfaces.iter().map(|i| i.name.clone()).collect();
        // An interface is a module, and so is what is around it.
        for prefix in interfaces.iter().flat_map(|path| prefixes(path).chain([path.as_str()])) {
            let now = modules.get(prefix).map_or(prefix, String::as_str);
            taken.insert((false, now.to_owned()));
        }
        let chosen = modules.into_iter().map(|(path, now)| ((false, path), now)).collect();
        let variables = VARIABLES.split_whitespace().collect();
        Paths { type_names, interfaces, variables, taken, chosen }
    }

    fn choose(&mut self, path: &str, space: Space) -> String {
        let key = (space == Space::Values, path.to_owned());
        // A tag and another name of DCE may be one.
        if let Some(chosen) = self.chosen.get(&key) {
            return chosen.clone();
        }
        let (scope, own) = path.rsplit_once("::").map_or(("", path), |(scope, own)| (scope, own));
        let scope_now = self.chosen.get(&(false, scope.to_owned())).map_or(scope, String::as_str).to_owned();
        let mut item = escaped(own);
        loop {
            let now = within(&scope_now, &item);
            let places = self.places(&now, space);
            let is_free = places.iter().all(|place| !self.taken.contains(place));
            if is_free && !self.is_reserved(scope, &item, space) {
                self.taken.extend(places);
                if self.type_names.contains(path) {
                    self.type_names.insert(now.clone());
                }
                self.chosen.insert(key, now.clone());
                return now;
            }
            item.push('_');
        }
    }

    fn is_reserved(&self, scope: &str, item: &str, space: Space) -> bool {
        let is_variable = || {
            let number = item.strip_prefix('e').is_some_and(|rest| rest.parse::<u32>().is_ok());
            number || self.variables.contains(item) || EVERYWHERE.contains(&item) || looks_local(item)
        };
        (space != Space::Types && is_variable())
            || (space != Space::Values && self.interfaces.contains(scope) && PARAMETERS.contains(&item))
    }

    fn places(&self, path: &str, space: Space) -> Vec<(bool, String)> {
        let (mut modules, item) = place(&self.type_names, path);
        modules.push(item);
        let place = modules.join("::");
        match space {
            Space::Types => vec![(false, place)],
            Space::Values => vec![(true, place)],
            Space::Both => vec![(false, place.clone()), (true, place)],
        }
    }
}
