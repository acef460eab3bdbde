//! The functions of sidecar templates: of containers and their texts.
//!
//! Each costs a unit, and as cel-go's functions do a unit for each element and a tenth for each byte that
//! it reads or writes.

use std::{collections::HashSet, rc::Rc};

use super::{Call, Function};
use crate::{
    limits::MAX_PORT,
    value::{Fault, List, Made, Map, Res, Text, Val},
    work::Work,
};

mod amounts;
mod encode;
mod names;

pub(super) fn find(name: &str) -> Option<Function> {
    let of_parts = || amounts::find(name).or_else(|| encode::find(name));
    of_parts().or_else(|| names::find(name)).or_else(|| {
        Some(match name {
            "env" => env,
            "mount" => mount,
            "appended" => appended,
            "freePorts" => free_ports,
            "keys" => keys,
            "merge" => merge,
            _ => return None,
        })
    })
}

/// Charges the reading or writing of a text.
fn charge_text(bytes: usize, work: &mut Work) -> Res<()> {
    work.charge(u64::try_from(bytes.div_ceil(10)).unwrap_or(u64::MAX))
}

/// A text argument, whose reading is charged.
fn text<'d>(call: &mut Call<'_, 'd>, index: usize) -> Res<Text<'d>> {
    let text = call.text(index)?;
    charge_text(text.len(), call.work)?;
    Ok(text)
}

/// A text that is made, whose writing is charged.
fn made<'d>(call: &mut Call<'_, 'd>, text: &str) -> Res<Val<'d>> {
    charge_text(text.len(), call.work)?;
    call.made(text)
}

/// An object that is made.
fn object<'d, const COUNT: usize>(
    fields: [(&'static str, Val<'d>); COUNT],
    work: &mut Work,
) -> Res<Val<'d>> {
    work.spend_items(2 * COUNT)?;
    let mut made = Made::default();
    for (name, value) in fields {
        made.insert(Val::Text(Text::Borrowed(name)), value, work)?;
    }
    Ok(Val::Map(Map::Made(Rc::new(made))))
}

/// A field of an object; `null` counts as missing.
fn field<'d>(of: &Val<'d>, name: &'static str, work: &mut Work) -> Res<Option<Val<'d>>> {
    let Val::Map(map) = of else { return Fault::overload() };
    let found = map.get(&Val::Text(Text::Borrowed(name)), work)?;
    Ok(found.filter(|value| !matches!(value, Val::Null)))
}

fn text_field<'d>(of: &Val<'d>, name: &'static str, work: &mut Work) -> Res<Option<Text<'d>>> {
    match field(of, name, work)? {
        None => Ok(None),
        Some(Val::Text(text)) => Ok(Some(text)),
        Some(_) => Fault::overload(),
    }
}

fn list_field<'d>(of: &Val<'d>, name: &'static str, work: &mut Work) -> Res<List<'d>> {
    match field(of, name, work)? {
        None => Ok(List::Made(Rc::default())),
        Some(Val::List(list)) => Ok(list),
        Some(_) => Fault::overload(),
    }
}

/// The variable of a container. Of several with the name the last one counts, as for the kubelet.
fn env<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let (container, wanted) = (call.at(0)?, text(call, 1)?);
    let mut found = None;
    for entry in list_field(container, "env", call.work)?.iter() {
        call.work.charge(1)?;
        let entry = entry?;
        if text_field(&entry, "name", call.work)?.is_some_and(|name| *name == *wanted) {
            found = Some(entry);
        }
    }
    let (mut value, mut is_from_source) = (None, false);
    if let Some(entry) = &found {
        value = text_field(entry, "value", call.work)?;
        is_from_source = field(entry, "valueFrom", call.work)?.is_some();
    }
    let fields = [
        ("isSet", Val::Bool(found.is_some())),
        ("value", Val::Text(value.unwrap_or(Text::Borrowed("")))),
        ("fromSource", Val::Bool(is_from_source)),
        ("entry", Val::Optional(found.map(Rc::new))),
    ];
    object(fields, call.work)
}

/// The first mount of a volume, or at a path. A slash at the end of a path makes no difference.
fn mount<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    fn path(text: &str) -> &str {
        text.trim_end_matches('/')
    }
    let (container, wanted) = (call.at(0)?, text(call, 1)?);
    for mount in list_field(container, "volumeMounts", call.work)?.iter() {
        call.work.charge(1)?;
        let mount = mount?;
        let is_volume = text_field(&mount, "name", call.work)?.is_some_and(|name| name == wanted);
        let at = text_field(&mount, "mountPath", call.work)?;
        if is_volume || at.is_some_and(|at| path(&at) == path(&wanted)) {
            return Ok(Val::some(mount));
        }
    }
    Ok(Val::Optional(None))
}

/// A text with one more element, unless it has it already. An item may be several elements.
fn appended<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let (list, separator, item) = (text(call, 0)?, text(call, 1)?, text(call, 2)?);
    if separator.is_empty() {
        return Fault::error("appended: the separator is empty");
    }
    let is_element = |at: usize| {
        let (before, after) = (&list[..at], &list[at + item.len()..]);
        (before.is_empty() || before.ends_with(&*separator))
            && (after.is_empty() || after.starts_with(&*separator))
    };
    if item.is_empty() || list.match_indices(&*item).any(|(at, _)| is_element(at)) {
        return Ok(Val::Text(list));
    }
    if list.is_empty() {
        return Ok(Val::Text(item));
    }
    made(call, &[&*list, &*separator, &*item].concat())
}

/// Ports that no container of the pod names, counted up from a base. The parser adds the pod, the names
/// of the containers whose ports are free, and further ports that are taken.
fn free_ports<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let (pod, own) = (call.at(0)?, call.list(1)?);
    let (base, count) = (call.int(3)?, call.int(4)?);
    if !(1..=MAX_PORT).contains(&base) || !(0..=MAX_PORT).contains(&count) {
        return Fault::error(format!(
            "freePorts: found base {base} and count {count}, expected a base from 1 to {MAX_PORT} and a count from \
             0 to {MAX_PORT}"
        ));
    }
    let mut names: HashSet<Text<'d>> = HashSet::new();
    for name in own.iter() {
        call.work.charge(1)?;
        if let Val::Text(name) = name? {
            names.insert(name);
        }
    }
    let mut used = used_ports(pod, &names, call.work)?;
    for port in call.list(2)?.iter() {
        call.work.charge(1)?;
        if let Val::Int(port) = port? {
            used.insert(port);
        }
    }
    let mut found = Vec::new();
    for port in (base..=MAX_PORT).filter(|port| !used.contains(port)).take(wanted(count)) {
        call.work.charge(1)?;
        call.work.spend_items(1)?;
        found.push(Val::Int(port));
    }
    if found.len() < wanted(count) {
        return Fault::error(format!("freePorts: {count} ports from {base} are not free"));
    }
    Ok(Val::list(found))
}

fn wanted(count: i64) -> usize {
    usize::try_from(count).unwrap_or_default()
}

fn used_ports<'d>(pod: &Val<'d>, own: &HashSet<Text<'d>>, work: &mut Work) -> Res<HashSet<i64>> {
    let mut used = HashSet::new();
    let Some(spec) = field(pod, "spec", work)? else { return Ok(used) };
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in list_field(&spec, list, work)?.iter() {
            work.charge(1)?;
            let container = container?;
            let name = text_field(&container, "name", work)?;
            if name.is_some_and(|name| own.contains(&name)) {
                continue;
            }
            for port in list_field(&container, "ports", work)?.iter() {
                work.charge(1)?;
                let port = port?;
                for name in ["containerPort", "hostPort"] {
                    if let Some(Val::Int(number)) = field(&port, name, work)? {
                        work.spend_items(1)?;
                        used.insert(number);
                    }
                }
            }
        }
    }
    Ok(used)
}

fn map<'d>(call: &Call<'_, 'd>, index: usize) -> Res<Map<'d>> {
    match call.at(index)? {
        Val::Map(map) => Ok(map.clone()),
        _ => Fault::overload(),
    }
}

/// The keys of a map, sorted.
fn keys<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let map = map(call, 0)?;
    let keys = map.keys(call.work)?;
    call.work.charge(u64::try_from(keys.len()).unwrap_or(u64::MAX))?;
    super::more_lists::sorted(keys, call.work).map(Val::list)
}

/// The entries of two maps; of equal keys that of the second one.
fn merge<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let (first, second) = (map(call, 0)?, map(call, 1)?);
    let count = first.len().saturating_add(second.len());
    call.work.charge(u64::try_from(count).unwrap_or(u64::MAX))?;
    let mut made = Made::of(&first, call.work)?;
    for (key, value) in second.entries(call.work)? {
        made.insert(key, value?, call.work)?;
    }
    Ok(Val::Map(Map::Made(Rc::new(made))))
}

#[cfg(test)]
mod tests;
