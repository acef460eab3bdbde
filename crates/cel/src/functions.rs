//! The functions of match conditions, and those of sidecar templates.
//!
//! A function sees the values of its arguments, the target first. It checks their types, and counts
//! the bytes that it reads and writes before it does so; its cost is counted by [`super::cost`].

use super::{
    value::{Fault, List, Res, Text, Val},
    work::Work,
};

mod convert;
mod dates;
mod format;
mod formatting;
mod lists;
mod math;
mod more_lists;
mod net;
mod optional;
mod order;
mod quantity;
mod regexes;
mod semver;
mod sets;
mod strings;
mod templates;
mod text;
mod url;

pub(super) use self::{
    formatting::kinds as kinds_of_format, math::add as math_add, optional::insert as map_insert,
};

/// A function.
pub(super) type Function = for<'d> fn(&mut Call<'_, 'd>) -> Res<Val<'d>>;

/// A call with its arguments.
pub(super) struct Call<'c, 'd> {
    pub(super) arguments: &'c [Val<'d>],
    pub(super) work: &'c mut Work,
}

/// The function of a name in the table of the checker; `None` if it is not here.
pub(super) fn find(name: &str) -> Option<Function> {
    TABLES.iter().find_map(|table| table(name))
}

const TABLES: [fn(&str) -> Option<Function>; 15] = [
    math::find,
    order::find,
    convert::find,
    strings::find,
    text::find,
    lists::find,
    more_lists::find,
    optional::find,
    dates::find,
    net::find,
    sets::find,
    regexes::find,
    quantity::find,
    templates::find,
    others,
];

fn others(name: &str) -> Option<Function> {
    semver::find(name).or_else(|| url::find(name)).or_else(|| match name {
        ".format" => Some(formatting::format),
        name => format::find(name),
    })
}

impl<'c, 'd> Call<'c, 'd> {
    /// An argument.
    pub(super) fn at(&self, index: usize) -> Res<&'c Val<'d>> {
        match self.arguments.get(index) {
            Some(value) => Ok(value),
            None => Fault::overload(),
        }
    }

    /// An argument that is a text. Its bytes are counted.
    pub(super) fn text(&mut self, index: usize) -> Res<Text<'d>> {
        match self.at(index)? {
            Val::Text(text) => {
                let text = text.clone();
                self.work.spend(text.len())?;
                Ok(text)
            }
            _ => Fault::overload(),
        }
    }

    /// An argument that is a list.
    pub(super) fn list(&self, index: usize) -> Res<List<'d>> {
        match self.at(index)? {
            Val::List(list) => Ok(list.clone()),
            _ => Fault::overload(),
        }
    }

    /// The elements of a list. They are counted.
    pub(super) fn items(&mut self, index: usize) -> Res<Vec<Val<'d>>> {
        let list = self.list(index)?;
        self.work.spend_items(list.len())?;
        list.to_vec()
    }

    /// An argument that is a whole number.
    pub(super) fn int(&self, index: usize) -> Res<i64> {
        match self.at(index)? {
            Val::Int(value) => Ok(*value),
            _ => Fault::overload(),
        }
    }

    /// A text that is made.
    pub(super) fn made(&mut self, text: &str) -> Res<Val<'d>> {
        self.work.spend(text.len())?;
        Ok(Val::text(text))
    }

    /// A list of texts that are made.
    pub(super) fn made_list<'t>(&mut self, texts: impl Iterator<Item = &'t str>) -> Res<Val<'d>> {
        let mut items = Vec::new();
        for text in texts {
            self.work.spend_items(1)?;
            items.push(self.made(text)?);
        }
        Ok(Val::list(items))
    }
}
