//! Formats that are written in the expression.

use super::{Mismatch, Type};
use crate::{
    ast::{Ast, Id, Item, Node},
    functions::kinds_of_format,
};

/// The arguments of a format, and their types.
pub(super) struct Arguments<'a> {
    pub(super) ast: &'a Ast,
    pub(super) types: &'a [Type],
    pub(super) items: &'a [Item],
}

impl Arguments<'_> {
    /// Checks a format.
    ///
    /// # Errors
    /// It does not fit them.
    pub(super) fn check(&self, format: &str) -> Result<(), Mismatch> {
        let kinds = kinds_of_format(format)?;
        for (kind, item) in kinds.iter().zip(self.items) {
            if let Some(at) = self.misfit(item.value, *kind) {
                let text =
                    format!("a {} does not fit %{}", self.types[at.index()], char::from(*kind));
                return Err(Mismatch { at: Some(at), text });
            }
        }
        if kinds.len() != self.items.len() {
            let (kinds, arguments) = (kinds.len(), self.items.len());
            return Err(format!("the format has {kinds} clauses and {arguments} arguments").into());
        }
        Ok(())
    }

    /// The value that does not fit: the argument, or a part of the list or map that is written there.
    fn misfit(&self, id: Id, kind: u8) -> Option<Id> {
        let of = &self.types[id.index()];
        if !of.is_open() && !fits(kind, of) {
            return Some(id);
        }
        match self.ast.node(id) {
            Node::List(items) => items.iter().find_map(|item| self.misfit(item.value, kind)),
            Node::Map(entries) => entries
                .iter()
                .flat_map(|entry| [entry.key, entry.value])
                .find_map(|part| self.misfit(part, kind)),
            _ => None,
        }
    }
}

fn fits(kind: u8, of: &Type) -> bool {
    let has_parts = matches!(of, Type::List(_) | Type::Map(_) | Type::Of(_));
    let of = &*of.to_string();
    let scalars = [
        "bool",
        "bytes",
        "double",
        "google.protobuf.Duration",
        "int",
        "null_type",
        "string",
        "google.protobuf.Timestamp",
    ];
    match kind {
        b's' => scalars.contains(&of) || ["uint", "type"].contains(&of) || has_parts,
        b'd' | b'o' => ["int", "uint"].contains(&of),
        b'f' | b'e' => ["double", "string"].contains(&of),
        b'b' => ["int", "uint", "bool"].contains(&of),
        _ => ["int", "uint", "string", "bytes"].contains(&of),
    }
}
