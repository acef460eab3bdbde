//! Functions of named formats (`pkg/cel/library/format.go`).

use super::{Call, Function};
use crate::value::{Fault, Format, Res, Val};

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "format.named" => |call| {
            let name = call.text(0)?;
            Ok(Format::named(&name)
                .map_or(Val::Optional(None), |format| Val::some(Val::Format(format))))
        },
        ".validate" => validate,
        "format.dns1123Label" => |_| constant("dns1123Label"),
        "format.dns1123Subdomain" => |_| constant("dns1123Subdomain"),
        "format.dns1035Label" => |_| constant("dns1035Label"),
        "format.qualifiedName" => |_| constant("qualifiedName"),
        "format.dns1123LabelPrefix" => |_| constant("dns1123LabelPrefix"),
        "format.dns1123SubdomainPrefix" => |_| constant("dns1123SubdomainPrefix"),
        "format.dns1035LabelPrefix" => |_| constant("dns1035LabelPrefix"),
        "format.labelValue" => |_| constant("labelValue"),
        "format.uri" => |_| constant("uri"),
        "format.uuid" => |_| constant("uuid"),
        "format.byte" => |_| constant("byte"),
        "format.date" => |_| constant("date"),
        "format.datetime" => |_| constant("datetime"),
        _ => return None,
    })
}

fn constant<'d>(name: &str) -> Res<Val<'d>> {
    Format::named(name).map_or_else(Fault::overload, |format| Ok(Val::Format(format)))
}

/// The errors; none if the text is valid. An API server may have several, with other words.
fn validate<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let Val::Format(format) = *call.at(0)? else { return Fault::overload() };
    let text = call.text(1)?;
    if format.is_valid(&text) {
        return Ok(Val::Optional(None));
    }
    let problem = format!("it is not a valid {}", format.name());
    Ok(Val::some(call.made_list([&*problem].into_iter())?))
}
