//! Names that compilers of this dialect know without a declaration: what DCE's `nbase.idl` holds, C's fixed-width types,
//! and Samba's base types. A declaration in a file takes precedence.

use crate::model::Type;

/// What a predefined name is.
pub(super) enum Predefined {
    /// This type.
    Is(Type),
    /// The type `any`, of which a model has one.
    Any,
    /// An identifier of 16 bytes; or a pointer to one.
    Uuid {
        /// Whether it is the pointer.
        pointer: bool,
    },
}

/// The type behind a predefined name.
pub(super) fn ty(name: &str) -> Option<Predefined> {
    match name {
        "any" => Some(Predefined::Any),
        "uuid_t" | "idl_uuid_t" | "GUID" | "Guid" => Some(Predefined::Uuid { pointer: false }),
        "uuid_p_t" => Some(Predefined::Uuid { pointer: true }),
        _ => plain(name).map(Predefined::Is),
    }
}

fn plain(name: &str) -> Option<Type> {
    let int = |bits, signed| Some(Type::Int { bits, signed });
    match name {
        "unsigned8" | "uint8" | "uint8_t" | "UINT8" | "boolean8" => int(8, false),
        "unsigned16" | "uint16" | "uint16_t" | "boolean16" => int(16, false),
        "unsigned32" | "uint32" | "uint32_t" | "boolean32" | "error_status_t" | "libndr_flags"
        | "uint3264" => int(32, false),
        "unsigned64" | "uint64" | "uint64_t" | "unsigned48" | "udlong" | "udlongr" | "hyperu" | "NTTIME"
        | "NTTIME_1sec" | "NTTIME_hyper" | "hyper_t" => int(64, false),
        "signed8" | "int8" | "int8_t" => int(8, true),
        "signed16" | "int16" | "int16_t" => int(16, true),
        "signed32" | "int32" | "int32_t" | "time_t" | "HRESULT" | "SCODE" | "VARIANT_BOOL_T" => int(32, true),
        "signed64" | "int64" | "int64_t" | "dlong" | "CURRENCY_T" => int(64, true),
        "ISO_LATIN_1" | "unsigned_char_t" => int(8, false),
        "NTSTATUS" | "WERROR" | "COMRESULT" | "HRESULT_T" => int(32, false),
        "bool" | "bool8" | "BOOLEAN_T" => Some(Type::Bool),
        "wchar" | "unistr2" => Some(Type::WideChar),
        "dce_rpc_authn_protocol_id_t" => int(8, false),
        "fpage" | "fpage_t" => Some(Type::Fpage),
        // WinRT's basic types.
        "String" | "Int16" | "Int32" | "Int64" | "UInt8" | "UInt16" | "UInt32" | "UInt64" | "Single"
        | "Double" | "Char16" | "Boolean" => Some(Type::Foreign("the WinRT type", name.into())),
        _ if BASE.contains(&name) => Some(Type::Foreign("the base type", name.into())),
        _ if SYSTEM.contains(&name) => Some(Type::Foreign("the type", name.into())),
        _ => None,
    }
}

/// Base types that are more than a number.
const BASE: [&str; 35] = [
    "ISO_UCS",
    "ISO_MULTI_LINGUAL",
    "uuid_old_t",
    "twr_t",
    "twr_p_t",
    "ndr_format_t",
    "ndr_format_p_t",
    "ndr_context_handle",
    "string",
    "string_array",
    "nstring",
    "nstring_array",
    "astring",
    "lstring",
    "ustring",
    "DATA_BLOB",
    "ipv4address",
    "ipv6address",
    "dns_string",
    "dnsp_name",
    "dnsp_string",
    "nbt_string",
    "wrepl_nbt_name",
    "pointer",
    "utf8string",
    "utf16string",
    "u16string",
    "policy_handle",
    "dom_sid",
    "security_descriptor",
    "wstring",
    "ndr_compression_alg",
    "timespec",
    "TIMESPEC",
    "HANDLE_T",
];

/// Types that are built into MIDL, or declared by headers of the system that no file imports.
const SYSTEM: [&str; 10] = [
    "VARIANT",
    "BSTR",
    "IDispatch",
    "SAFEARRAY",
    "EventRegistrationToken",
    "HSTRING",
    "Object",
    "va_list",
    "size_t",
    "ptrdiff_t",
];

/// The value of a predefined constant.
pub(super) fn constant(name: &str) -> Option<i128> {
    Some(match name {
        "error_status_ok" | "NULL" | "null" => 0,
        "true" => 1,
        "false" => 0,
        "ndr_c_int_big_endian" | "ndr_c_float_ieee" | "ndr_c_char_ascii" => 0,
        "ndr_c_int_little_endian" | "ndr_c_float_vax" | "ndr_c_char_ebcdic" => 1,
        "ndr_c_float_cray" => 2,
        "ndr_c_float_ibm" => 3,
        _ => return None,
    })
}
