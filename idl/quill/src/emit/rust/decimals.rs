//! Fixed-point numbers: a whole number of units that never has more digits than its type, so that what a program sends needs no look.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::{Emitter, name};
use crate::model::most_units;

impl Emitter<'_> {
    /// The type of numbers with so many digits.
    pub(super) fn decimal(&self, path: &str, digits: u32, scale: u32) -> TokenStream {
        let ident = name(&self.place(path).1);
        let doc = format!(" A decimal number: {digits} digits, {scale} of them behind the point.");
        let (one, most) =
            (Literal::i64_unsuffixed(most_units(scale) + 1), Literal::i64_unsuffixed(most_units(digits)));
        let shown = match Literal::u32_unsuffixed(scale) {
            _ if scale == 0 => quote! { ::core::write!(f, "{}{}", sign, units) },
            width => {
                quote! { ::core::write!(f, "{}{}.{:0width$}", sign, units / one, units % one, width = #width) }
            }
        };
        let one_of = (scale != 0).then(|| quote! { let one = Self::ONE.unsigned_abs(); });
        quote! {
            #[doc = #doc]
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub struct #ident(__i64);
            impl #ident {
                /// How many units are one.
                pub const ONE: __i64 = #one;
                /// The greatest number of units. There are no fewer than its negative.
                pub const MOST: __i64 = #most;
                /// So many units, unless they have too many digits.
                pub const fn new(units: __i64) -> __Option<#ident> {
                    if units >= -Self::MOST && units <= Self::MOST { Some(#ident(units)) } else { None }
                }
                /// How many units it is.
                pub const fn units(self) -> __i64 { self.0 }
            }
            impl ::core::fmt::Display for #ident {
                fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    let (sign, units) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
                    #one_of
                    #shown
                }
            }
        }
    }

    /// How it is written and read over sockets, and within what is read piece by piece.
    pub(super) fn decimal_wire(&self, from: &[String], path: &str) -> TokenStream {
        let (rt, ident) = (self.runtime(from), name(&self.place(path).1));
        quote! {
            impl #rt::Wire for #ident {
                fn put(&self, _out: &mut #rt::Out) {
                    #rt::Wire::put(&self.0, _out);
                }
                fn get(_from: &mut #rt::In) -> __Result<#ident, #rt::Malformed> {
                    #ident::new(<__i64 as #rt::Wire>::get(_from)?).ok_or(#rt::Malformed)
                }
            }
        }
    }
}
