//! An interface in C, as far as all kernels have it in common: signatures, exceptions, the struct of a server's methods,
//! and where in a function each value is found.

use super::tree::{Expr, Item, Parameters, Stmt, Ty, name};
use super::{Emitter, names::is_macro_with_parameters, word};
use crate::layout::{Message, Method, RESULT};
use crate::model::{Direction, Operation, Type, TypeId};

/// How a call ended.
pub fn status() -> Ty {
    Ty::named("quill_status")
}

/// The interface that is being translated.
#[derive(Clone, Copy)]
pub struct Interface<'a> {
    /// The file.
    pub emitter: &'a Emitter<'a>,
    /// The interface's name.
    pub interface: &'a str,
}

/// A value of a message: its name in the interface, its type, and the expression for it.
pub type Spot<'a> = (&'a str, TypeId, Expr);

/// A [`Spot`] with a name of its own.
pub type OwnSpot = (String, TypeId, Expr);

/// As they are passed on.
pub fn borrowed(spots: &[OwnSpot]) -> Vec<Spot<'_>> {
    spots.iter().map(|(n, ty, e)| (n.as_str(), *ty, e.clone())).collect()
}

impl Interface<'_> {
    /// Unions of exceptions, and the struct of a server's methods. `second` is what each method gets behind the server's
    /// own data.
    pub fn declarations(&self, operations: &[&Operation], second: Option<&(Ty, String)>) -> Vec<Item> {
        self.declarations_with(operations, second, Vec::new())
    }

    /// These declarations with further functions of a server, behind its methods.
    pub fn declarations_with(
        &self,
        operations: &[&Operation],
        second: Option<&(Ty, String)>,
        further: Vec<(Ty, String, Parameters)>,
    ) -> Vec<Item> {
        let mut items = vec![Item::Comment(format!("The interface {}.", self.interface))];
        items.extend(self.unions(operations));
        let signatures = operations.iter().map(|operation| {
            let mut parameters = vec![(Ty::named("void *"), "_self".into())];
            parameters.extend(second.cloned());
            parameters.extend(self.parameters(operation));
            (status(), self.emitter.method(operation).to_owned(), parameters)
        });
        let methods = self.function("server");
        items.push(Item::Announce("struct", methods.clone()));
        items.push(Item::Methods(methods, signatures.chain(further).collect()));
        items
    }

    /// Unions of exceptions.
    pub fn unions(&self, operations: &[&Operation]) -> Vec<Item> {
        operations.iter().filter(|o| !o.raises.is_empty()).flat_map(|o| self.raised(o)).collect()
    }

    /// A local interface: the struct of methods, and functions that call them with what they are given, where it lies. Nothing
    /// is looked at, since caller and server trust each other.
    pub fn direct(&self, operations: &[&Operation]) -> Vec<Item> {
        let mut items = self.declarations(operations, None);
        for operation in operations {
            let server = Ty::named(self.function("server")).to().constant();
            let mut parameters = vec![(server, "_methods".into()), (Ty::named("void *"), "_self".into())];
            parameters.extend(self.parameters(operation));
            let arguments = parameters[1..].iter().map(|(_, parameter)| name(parameter)).collect();
            let called = Expr::Call(Box::new(self.method(operation)), arguments);
            let body = vec![Stmt::Return(Some(called))];
            items.push(Item::Function(status(), self.operation(operation), parameters, body));
        }
        items
    }

    /// Variables for all values of a method, in the function that calls it. An array for which `elsewhere` holds is not copied,
    /// so its variable is a pointer.
    pub fn variables(&self, operation: &Operation, elsewhere: impl Fn(&str) -> bool) -> Vec<Stmt> {
        let e = self.emitter;
        let mut body = Vec::new();
        for param in &operation.params {
            let mut ty = e.ty(param.ty);
            if matches!(e.kind(param.ty), Type::Array(..)) && elsewhere(&param.name) {
                ty.dims.remove(0);
                ty = ty.to();
            }
            body.push(Stmt::Let(ty, word(&param.name), None));
        }
        if !e.is_void(operation.result) {
            body.push(Stmt::Let(e.ty(operation.result), RESULT.into(), None));
        }
        if !operation.raises.is_empty() {
            let union = self.function(&format!("{}_raised", operation.name));
            body.push(Stmt::Let(Ty::named(union), "_raised".into(), None));
        }
        body
    }

    /// Values of a message as the variables that [`Interface::variables`] declares.
    pub fn local(&self, spots: Vec<Spot>) -> Vec<OwnSpot> {
        let of = |n: &str| if n == RESULT { name(RESULT) } else { name(word(n)) };
        spots.into_iter().map(|(n, ty, _)| (n.to_owned(), ty, of(n))).collect()
    }

    /// A call of a server's method with those variables.
    pub fn call_method(&self, operation: &Operation, mut arguments: Vec<Expr>) -> Expr {
        for (ty, parameter) in self.parameters(operation) {
            let value = name(parameter);
            arguments.push(if ty.pointer && ty.dims.is_empty() { value.address() } else { value });
        }
        Expr::Call(Box::new(self.method(operation)), arguments)
    }

    /// The pointer to a method, so that no macro with parameters takes its name for a call.
    fn method(&self, operation: &Operation) -> Expr {
        let method = self.emitter.method(operation);
        if is_macro_with_parameters(method) {
            name(format!("(_methods->{method})"))
        } else {
            name("_methods").deref().field(method)
        }
    }

    /// The exceptions of an operation: a union of them.
    fn raised(&self, operation: &Operation) -> Vec<Item> {
        let union = self.function(&format!("{}_raised", operation.name));
        let fields = self
            .variants(operation)
            .into_iter()
            .zip(&operation.raises)
            .map(|(variant, &id)| (Ty::named(self.emitter.exception(id)), variant));
        vec![Item::Announce("union", union.clone()), Item::Record("union", union, fields.collect())]
    }

    /// The name of an operation's function.
    pub fn operation(&self, operation: &Operation) -> String {
        self.emitter.function(self.interface, &operation.name)
    }

    /// The name of something that this interface has besides its operations.
    pub fn function(&self, function: &str) -> String {
        self.emitter.of_interface(self.interface, function)
    }

    /// Names of the exceptions of an operation, made distinct.
    pub fn variants(&self, operation: &Operation) -> Vec<String> {
        let mut variants: Vec<String> = Vec::new();
        for id in &operation.raises {
            let path = &self.emitter.model.exceptions[id.0 as usize].name;
            let mut variant = self.emitter.names.field(path.rsplit("::").next().unwrap_or(path));
            while variants.contains(&variant) {
                variant.push('_');
            }
            variants.push(variant);
        }
        variants
    }

    /// For a client of a method none of whose exceptions has anything in it: it has no use for the place where they go.
    pub fn unused_place(&self, operation: &Operation) -> Option<Stmt> {
        let exceptions = &self.emitter.model.exceptions;
        let is_empty = operation.raises.iter().all(|id| exceptions[id.0 as usize].fields.is_empty());
        let unused = || Stmt::Do(name("_raised").cast(Ty::named("void")));
        (is_empty && !operation.raises.is_empty()).then(unused)
    }

    /// Parameters behind the first, of client and server alike.
    pub fn parameters(&self, operation: &Operation) -> Vec<(Ty, String)> {
        let mut parameters = self.emitter.parameters(operation);
        if !operation.raises.is_empty() {
            let union = self.function(&format!("{}_raised", operation.name));
            parameters.push((Ty::named(union).to(), "_raised".into()));
        }
        parameters
    }

    /// What goes to the server, as expressions in a function that has the parameters.
    pub fn inputs<'o>(&self, operation: &'o Operation) -> Vec<Spot<'o>> {
        let ins = operation.params.iter().filter(|p| p.direction != Direction::Out);
        ins.map(|p| (p.name.as_str(), p.ty, self.emitter.value(&word(&p.name), p.ty, p.direction))).collect()
    }

    /// The value of the parameter with that place, in a function that has the parameters.
    pub fn parameter(&self, operation: &Operation, of: usize) -> Expr {
        let param = &operation.params[of];
        self.emitter.value(&word(&param.name), param.ty, param.direction)
    }

    /// What comes back.
    pub fn outputs<'o>(&self, operation: &'o Operation) -> Vec<Spot<'o>> {
        let outs = operation.params.iter().filter(|p| p.direction != Direction::In);
        let mut outputs: Vec<Spot> = outs
            .map(|p| (p.name.as_str(), p.ty, self.emitter.value(&word(&p.name), p.ty, p.direction)))
            .collect();
        if !self.emitter.is_void(operation.result) {
            let value = self.emitter.value(RESULT, operation.result, Direction::Out);
            outputs.push((RESULT, operation.result, value));
        }
        outputs
    }

    /// The expression for the value at a path.
    pub fn at(places: &[Spot], path: &[String]) -> Expr {
        let (first, fields) = path.split_first().map_or(("", &[][..]), |(f, rest)| (f.as_str(), rest));
        let base =
            places.iter().find(|(n, ..)| *n == first).map_or_else(|| name(word(first)), |p| p.2.clone());
        fields.iter().fold(base, |value, field| value.field(word(field)))
    }

    /// Cases for the exceptions of a method: the label of each, and what is made of its message and of the places of its fields in the union of all that
    /// the operation has `raised`.
    pub fn exception_cases(
        &self,
        operation: &Operation,
        method: &Method,
        raised: &Expr,
        make: impl Fn(&Message, &[Spot]) -> Vec<Stmt>,
    ) -> Vec<(Vec<i128>, Vec<Stmt>)> {
        let case = |(number, (_, message)): (usize, &(String, Message))| {
            let spots = self.exception_spots(operation, number, raised.clone());
            (vec![message.label.into()], make(message, &borrowed(&spots)))
        };
        method.exceptions.iter().enumerate().map(case).collect()
    }

    /// Places for the fields of an exception in the union of all that an operation has `raised`.
    pub fn exception_spots(&self, operation: &Operation, number: usize, raised: Expr) -> Vec<OwnSpot> {
        let whole = raised.field(&self.variants(operation)[number]);
        let id = operation.raises[number];
        let fields = &self.emitter.model.exceptions[id.0 as usize].fields;
        fields.iter().map(|f| (f.name.clone(), f.ty, whole.clone().field(word(&f.name)))).collect()
    }
}
