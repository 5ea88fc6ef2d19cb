//! Annotations that quill does not follow: those that nobody knows, those that contradict themselves, and those that would change
//! what travels.

use super::*;

/// The annotations of OMG IDL 4.2 and of DDS, those of common compilers, and quill's own.
const KNOWN: [&str; 3] = [
    "id autoid optional position value extensibility final appendable mutable key must_understand default_literal default range min \
     max unit bit_bound external nested verbatim service oneway ami",
    "hashid default_nested ignore_literal_names try_construct non_serialized data_representation topic copy_c copy_cpp \
     resolve_name use_vector shared dds_service",
    "flat max_size typ_size relevant_bits caches map grant fpage copy_on_write",
];

fn known() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().flat_map(|names| names.split_whitespace())
}

/// Whether a value lies below another one; values that cannot be compared do not.
fn below(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => left < right,
        (Value::Char(left), Value::Char(right)) | (Value::WideChar(left), Value::WideChar(right)) => {
            left < right
        }
        (Value::Float(left), Value::Float(right)) => left < right,
        _ => false,
    }
}

impl Checker<'_> {
    /// Warns once of each annotation that has no effect: because of what it says, or since it is neither known nor declared in the file.
    pub(super) fn unknown_annotations(&mut self) {
        let mut told = std::mem::take(&mut self.s.own_annotations);
        for annotation in std::mem::take(&mut self.s.annotations) {
            let name = self.text(annotation.name).to_owned();
            let is_known = known().any(|known| known.eq_ignore_ascii_case(&name));
            if self.imported(annotation.span) || !told.insert(annotation.name) {
                continue;
            }
            if effects::warn_in_corba(self.s, annotation.name, annotation.span) || is_known {
                continue;
            }
            let near = if self.s.diags.full() { None } else { nearest(&name, known()) };
            let message = format!("the annotation `@{name}` is not known and has no effect");
            self.s.diags.push(Diagnostic::warning(Code::Attribute, annotation.span, message).maybe(near));
        }
    }

    /// The type of a member that may be absent.
    pub(super) fn optional(&mut self, annotations: &[ast::Annotation], ty: TypeId) -> TypeId {
        let Some(optional) = annotations.iter().find(|a| self.text(a.name.name) == "optional") else {
            return ty;
        };
        if let Some((_, value)) = optional.arguments.first()
            && self.eval(value, self.error) == Value::Bool(false)
        {
            return ty;
        }
        // One that may be absent anyhow, as values are, is not absent in two ways.
        let resolved = self.model.resolved(ty);
        match self.model.ty(resolved) {
            Type::Optional(_) | Type::Shared(_) | Type::Error => ty,
            Type::Forward(_) if self.value_forwards.contains(&resolved) => ty,
            _ => self.model.add(Type::Optional(ty)),
        }
    }

    /// Checks that no member has the number of another one.
    pub(super) fn member_number(
        &mut self,
        annotations: &[ast::Annotation],
        names: &[ast::Declarator],
        taken: &mut HashMap<i128, Span>,
    ) {
        let Some(expr) = annotation(self.s, annotations, "id") else { return };
        let span = expr.span;
        let Some(number) = self.number(expr) else { return };
        if !(0..1 << 32).contains(&number) {
            let message = format!("the `id` of a member is a whole number from 0 to {}", u32::MAX);
            return self.error(Code::AttributeForm, span, message);
        }
        // One annotation may stand before several names.
        for at in names.iter().enumerate().map(|(i, name)| if i == 0 { span } else { name.name.span }) {
            if let Some(first) = taken.insert(number, at) {
                let message = format!("the `id` {number} is taken by another member");
                let diagnostic = Diagnostic::error(Code::Duplicate, at, message);
                self.s.diags.push(diagnostic.note(first, "by this one"));
            }
        }
    }

    /// Checks `@range`, `@min` and `@max` against the type that they stand before, and against each other.
    pub(super) fn limits(&mut self, annotations: &[ast::Annotation], ty: TypeId) {
        let (mut least, mut most) = (None, None);
        for annotation in annotations {
            let name = self.text(annotation.name.name).to_owned();
            for (place, (argument, value)) in annotation.arguments.iter().enumerate() {
                let argument = argument.map_or("", |argument| self.text(argument.name));
                let which = match (name.as_str(), argument, place) {
                    ("range", "min", _) | ("range", "", 0) | ("min", "" | "value", 0) => &mut least,
                    ("range", "max", _) | ("range", "", 1) | ("max", "" | "value", 0) => &mut most,
                    _ => continue,
                };
                let number = self.limit(value, ty);
                *which = Some((number, annotation.span));
            }
        }
        if let (Some((least, first)), Some((most, span))) = (least, most)
            && below(&most, &least)
        {
            let diagnostic = Diagnostic::error(Code::Range, span, "no value can be within these limits");
            let diagnostic = diagnostic.help("the least value stands above the greatest");
            self.s.diags.push(if first == span {
                diagnostic
            } else {
                diagnostic.note(first, "the other limit is here")
            });
        }
    }

    /// A limit of values of a type, which is one of them.
    fn limit(&mut self, expr: &Expr, ty: TypeId) -> Value {
        let is_number = matches!(
            self.model.ty(self.model.resolved(ty)),
            Type::Int { .. } | Type::Octet | Type::Char | Type::WideChar | Type::Float(_)
        );
        let value = self.eval(expr, ty);
        match (is_number, self.model.ty(self.model.resolved(ty)), value) {
            // A bound may be written without a point.
            (_, Type::Float(_), Value::Int(value)) => Value::Float(value as f64),
            (true, _, value) => value::convert(&self.model, &mut self.s.diags, value, ty, expr.span),
            (false, _, value) => value,
        }
    }
}
