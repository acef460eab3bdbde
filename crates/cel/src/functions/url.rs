//! Functions of URLs, as Go reads them (`pkg/cel/library/urls.go`).

use std::rc::Rc;

use super::{Call, Function};
use crate::{
    value::{Fault, Made, Map, Res, Url, Val, url},
    work::Work,
};

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "url" => |call| match Url::parse(&call.text(0)?) {
            Some(url) => Ok(Val::Url(Rc::new(url))),
            None => Fault::error("URL parse error during conversion from string"),
        },
        "isURL" => |call| Ok(Val::Bool(url::is_of_request(&call.text(0)?))),
        ".getScheme" => |call| part(call, Url::scheme),
        ".getHost" => |call| part(call, Url::host),
        ".getHostname" => |call| part(call, Url::hostname),
        ".getPort" => |call| part(call, Url::port),
        ".getEscapedPath" => |call| part(call, Url::escaped_path),
        ".getQuery" => |call| {
            let url = one(call)?;
            query(url.query(), call.work)
        },
        _ => return None,
    })
}

fn one(call: &Call<'_, '_>) -> Res<Rc<Url>> {
    match call.at(0)? {
        Val::Url(url) => Ok(Rc::clone(url)),
        _ => Fault::overload(),
    }
}

fn part<'d>(call: &mut Call<'_, 'd>, of: fn(&Url) -> &str) -> Res<Val<'d>> {
    let url = one(call)?;
    call.made(of(&url))
}

fn query<'d>(text: &str, work: &mut Work) -> Res<Val<'d>> {
    let mut found: Vec<(String, Vec<Val<'d>>)> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (Some(key), Some(value)) = (url::decoded(key, true), url::decoded(value, true)) else {
            continue;
        };
        work.spend(key.len() + value.len())?;
        work.spend_items(2)?;
        let place = *places.entry(key.clone()).or_insert_with(|| {
            found.push((key, Vec::new()));
            found.len() - 1
        });
        found[place].1.push(Val::text(value));
    }
    let mut made = Made::default();
    for (key, values) in found {
        made.insert(Val::text(key), Val::list(values), work)?;
    }
    Ok(Val::Map(Map::Made(Rc::new(made))))
}
