//! The attributes that are known, and what stands in their parentheses.

use super::ast::Attr;
use crate::codes::Code;
use crate::cursor::{Cursor, Parse};
use crate::diag::{Diagnostic, nearest};
use crate::effects;
use crate::expr::{Expr, Style};
use crate::lex::{Kind, Token};
use crate::model::Binding;
use crate::session::Session;

/// The attributes of DCE, of MS IDL (type libraries and WinRT included), and of other compilers that read the same
/// language, by where they come from.
const KNOWN: [(&str, &str); 6] = [
    (
        "DCE",
        "in out ref unique ptr full string size_is max_is min_is length_is first_is last_is switch_is \
         switch_type case default uuid version endpoint exceptions local pointer_default idempotent \
         broadcast maybe reflect_deletions handle context_handle ignore transmit_as v1_array \
         v1_string v1_struct v1_enum align unaligned range cs_char cs_drtag cs_rtag cs_stag \
         represent_as",
    ),
    (
        "ACF, which some compilers accept here too",
        "implicit_handle explicit_handle auto_handle code nocode comm_status fault_status encode \
         decode enable_allocate heap in_line out_of_line extern_exceptions notify notify_flag \
         optimize strict_context_handle type_strict_context_handle allocate byte_count client_memory",
    ),
    (
        "MS",
        "aggregatable annotation appobject async async_uuid bindable callback call_as clear coclass \
         control contextless context_handle_serialize context_handle_noserialize cpp_quote custom \
         defaultbind defaultcollelem defaultvalue defaultvtable dispinterface displaybind \
         disable_consistency_check dllname dual entry force_allocate helpcontext helpfile helpstring \
         helpstringcontext helpstringdll hidden id iid_is immediatebind importlib input_sync \
         interpret lcid licensed message ms_union nonbrowsable noncreatable nonextensible object odl \
         oleautomation optional partial_ignore predeclid propget propput propputref proxy public \
         readonly reflect requestedit restricted retval satype source switch system_handle threading \
         uidefault usesgetlasterror user_marshal vararg vi_progid progid wire_marshal fixed_array \
         declare_guid supports_dual_iunknown no_injected_text typedef union",
    ),
    (
        "WinRT",
        "activatable agile allow_for_web apicontract composable contract contractversion \
         default_interface default_overload deprecated eventadd eventremove exclusiveto exportable \
         feature flags experimental marshaling_behavior muse noexcept overload overridable protected \
         remote_async static static_name variant platform gc_pressure requires webhosthidden delegate \
         dual_api_partition",
    ),
    (
        "Samba",
        "authservice bitmap8bit bitmap16bit bitmap32bit bitmap64bit bitsize charset compression \
         compression_alg depends enum8bit enum16bit flag gensize helper noejs nodiscriminant noheader \
         noopnum noprint nopull nopush nopython nosize pyhelper property print relative relative_base \
         relative_rap_convert relative_short sizeis skip skip_noinit subcontext subcontext_size todo \
         nopidl unused value warn absolute no_srv_register pointer_default_top to_null missing \
         max_recursion no_unreferenced_warn ndr_no_compression bitmap enum struct",
    ),
    (
        "Extensions for microkernels",
        "fpage typ_size max_size relevant_bits caches flat map grant copy_on_write oneway",
    ),
];

fn known() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().flat_map(|(_, names)| names.split_whitespace())
}

/// Attributes whose parentheses hold expressions over fields or parameters, commas between dimensions.
pub(super) const SIZES: [&str; 8] =
    ["size_is", "max_is", "min_is", "length_is", "first_is", "last_is", "switch_is", "iid_is"];

/// Attributes that only Samba's compiler knows.
pub(super) const SAMBA: [&str; 16] = [
    "noprint",
    "nopush",
    "nopull",
    "subcontext",
    "relative",
    "gensize",
    "nodiscriminant",
    "bitmap8bit",
    "bitmap16bit",
    "bitmap32bit",
    "enum8bit",
    "enum16bit",
    "pyhelper",
    "nopython",
    "flag",
    "charset",
];

/// The attribute of that name.
pub(super) fn find<'a>(s: &Session, attrs: &'a [Attr], name: &str) -> Option<&'a Attr> {
    attrs.iter().find(|a| s.names.text(a.name).eq_ignore_ascii_case(name))
}

/// Whether there is an attribute of that name.
pub(super) fn has(s: &Session, attrs: &[Attr], name: &str) -> bool {
    find(s, attrs, name).is_some()
}

/// How clients are bound, if an attribute says it: by `implicit_handle(handle_t NAME)` or `auto_handle`. Other forms have no effect.
pub(crate) fn binding(s: &Session, attrs: &[Attr]) -> Option<Binding> {
    attrs.iter().find_map(|attr| match (s.names.text(attr.name), attr.arguments.as_deref()) {
        ("auto_handle", None) => Some(Binding::Asked),
        ("implicit_handle", Some([ty, name])) if name.kind == Kind::Ident => {
            (s.names.text(ty.text) == "handle_t").then(|| Binding::Named(s.names.text(name.text).to_owned()))
        }
        _ => None,
    })
}

/// Whether an attribute of an attribute file is known, or one of `more`. Of those that are, none has an effect on quill's stubs.
pub(crate) fn check_configuration(s: &mut Session, attr: &Attr, more: &[&'static str]) {
    let name = s.names.text(attr.name).to_owned();
    let diagnostic = if known().any(|k| k.eq_ignore_ascii_case(&name)) {
        let why = effects::of_dce(&name).map_or(String::new(), |why| format!(": {why}"));
        let message =
            format!("`{name}` is understood and has no effect on the stubs that are made here{why}");
        Diagnostic::warning(Code::Attribute, attr.span, message)
    } else {
        let message = format!("the attribute `{name}` is not known");
        let near = nearest(&name, known().chain(more.iter().copied()));
        Diagnostic::error(Code::Attribute, attr.span, message).maybe(near)
    };
    s.diags.push(diagnostic);
}

/// Warns of an attribute that no compiler is known to have.
pub(super) fn check_name(s: &mut Session, attr: &Attr) {
    if crate::l4::warn(s, attr.name, attr.span) || effects::warn_in_dce(s, attr.name, attr.span) {
        return;
    }
    let name = s.names.text(attr.name);
    if known().any(|k| k.eq_ignore_ascii_case(name)) || s.l4 && name == "max_value" {
        return;
    }
    let message = format!("the attribute `{name}` is not known and has no effect");
    let near = if s.diags.full() { None } else { nearest(name, known()) };
    let diagnostic = Diagnostic::warning(Code::Attribute, attr.span, message).maybe(near);
    s.diags.push(diagnostic);
}

/// The first part of what stands in an attribute's parentheses, up to a comma, and what follows the comma.
pub(super) fn split_first<'t>(s: &Session, tokens: &'t [Token]) -> (&'t [Token], Option<&'t [Token]>) {
    let mut depth = 0usize;
    for (i, token) in tokens.iter().enumerate() {
        let text = if token.kind == Kind::Punct { s.names.text(token.text) } else { "" };
        match text {
            "(" | "[" => depth += 1,
            ")" | "]" => depth = depth.saturating_sub(1),
            "," if depth == 0 => return (&tokens[..i], Some(&tokens[i + 1..])),
            _ => {}
        }
    }
    (tokens, None)
}

/// Reads one part as an expression.
pub(super) fn expression(s: &mut Session, tokens: &[Token], attr: &Attr) -> Parse<Expr> {
    let end = tokens.last().map_or(attr.span, |t| t.span).after();
    let model = tokens.first().copied();
    let Some(model) = model else {
        let message = format!("`{}` needs a value in parentheses", s.names.text(attr.name));
        s.diags.push(Diagnostic::error(Code::AttributeForm, attr.span, message));
        return Err(crate::cursor::Reported);
    };
    let end = Token { kind: Kind::Eof, span: end, ..model };
    let mut cursor = Cursor::new(s, tokens.iter().copied().chain([end]).collect());
    let expr = cursor.expr(Style::C)?;
    if !cursor.at_end() {
        return cursor.unexpected("`,` or `)`");
    }
    Ok(expr)
}

/// Whether a number, or the name of one, stands where other dialects have an identifier.
pub(super) fn is_number(tokens: &[Token]) -> bool {
    matches!(tokens, [token] if matches!(token.kind, Kind::Number | Kind::Ident))
}

/// Checks the form of `uuid` and `version`.
pub(super) fn check_form(s: &mut Session, attr: &Attr) {
    let name = s.names.text(attr.name).to_owned();
    let tokens = attr.arguments.as_deref().unwrap_or(&[]);
    let text: String = tokens.iter().map(|t| s.names.text(t.text)).collect();
    match name.as_str() {
        "uuid" | "async_uuid" => {
            let text = text.trim_matches(['"', '{', '}']);
            let groups: Vec<usize> = text.split('-').map(str::len).collect();
            let hex = text.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
            let named = !text.contains('-') && tokens.len() == 1 && tokens[0].kind == Kind::Ident;
            let whole = hex && groups == [8, 4, 4, 4, 12];
            if s.l4 && is_number(tokens) {
                return;
            }
            if !whole && !named {
                let message = "this is no uuid: it has 8, 4, 4, 4 and 12 hexadecimal digits";
                s.diags.push(Diagnostic::error(Code::AttributeForm, attr.span, message));
            } else if !whole {
                let message = format!(
                    "`{text}` is no uuid, and is taken for the name of one that is defined elsewhere"
                );
                s.diags.push(Diagnostic::warning(Code::AttributeForm, attr.span, message));
            }
        }
        "pointer_default" => {
            let kinds = ["ref", "unique", "ptr", "full"];
            if !kinds.contains(&text.as_str()) || tokens.len() > 1 {
                let message = "`pointer_default` takes `ref`, `unique` or `ptr`";
                let diagnostic = Diagnostic::error(Code::AttributeForm, attr.span, message);
                s.diags.push(diagnostic.maybe(nearest(&text, kinds)));
            }
        }
        "version" => {
            let ok = text.split(['.', ',']).all(|p| {
                p.is_empty()
                    || crate::number::integer(p).is_some()
                    || p.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            });
            if !ok || text.is_empty() {
                let message = "`version` takes one or two whole numbers, as in version(1.0)";
                s.diags.push(Diagnostic::error(Code::AttributeForm, attr.span, message));
            }
        }
        _ => {}
    }
}
