//! Lists and maps of a pod that keep only the entries that injection reads.

use std::ops::Deref;

use injectd_k8s::workload::POD_TEMPLATE_HASH;
use memchr::memchr;
use smallvec::SmallVec;

use super::{Container, FirstContainer, SERVICE_ACCOUNT_MOUNT_PATH, VolumeMount};
use crate::{
    json::{Read, ReadError, Reader},
    view::{List, Text},
};

/// The end of the domains of Linkerd's annotations and labels.
pub const LINKERD_DOMAIN: &str = "linkerd.io";

/// The containers of a pod, and the fields that are read only of the first one.
#[derive(Debug, Default)]
pub struct Containers<'a> {
    all: List<Container<'a>, 0>,
    pub(super) first: FirstContainer<'a>,
}

/// Labels or annotations: the entries that injection reads, and the number of all entries.
#[derive(Debug, Default)]
pub struct TextMap<'a> {
    len: Option<usize>,
    entries: SmallVec<[(Text<'a>, Text<'a>); 2]>,
}

/// The first of a container's mounts at [`SERVICE_ACCOUNT_MOUNT_PATH`], if any.
#[derive(Debug, Default)]
pub struct ServiceAccountMount<'a>(pub Option<VolumeMount<'a>>);

// === impl Containers ===

impl<'a> Deref for Containers<'a> {
    type Target = [Container<'a>];

    fn deref(&self) -> &[Container<'a>] {
        &self.all
    }
}

impl<'a> Read<'a> for Containers<'a> {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<(), ReadError> {
        let Self { all, first } = self;
        all.read_items(reader, |container, index, reader| {
            if index > 0 {
                return container.read(reader);
            }
            // One object, read into two views.
            let (mut seen, mut seen_of_first) = (0, 0);
            reader.object(|reader, key| {
                let is_read = container.member(reader, &key, &mut seen)?
                    || first.member(reader, &key, &mut seen_of_first)?;
                if is_read { Ok(()) } else { reader.skip() }
            })?;
            Ok(())
        })
    }
}

// === impl TextMap ===

impl<'a> TextMap<'a> {
    /// Whether the map has no entries, kept or not.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len.unwrap_or_default() == 0
    }

    /// Whether the map is present, empty or not.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.len.is_some()
    }

    /// The value of a kept key; the last of repeated keys wins.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().rev().find(|(found, _)| *found == key).map(|(_, value)| value)
    }

    /// The kept entries, in the order of the document.
    #[must_use]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &str)> + use<'_, 'a> {
        self.entries.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Whether a key is kept: keys in Linkerd's domains, resource attributes of traces, and labels that
    /// name an application or a `ReplicaSet`.
    #[must_use]
    pub fn matters(key: &str) -> bool {
        let Some(slash) = memchr(b'/', key.as_bytes()) else {
            return key == POD_TEMPLATE_HASH;
        };
        let (domain, name) = (&key[..slash], &key[slash + 1..]);
        match domain {
            "app.kubernetes.io" => matches!(name, "instance" | "name"),
            "resource.opentelemetry.io" => true,
            _ => domain.ends_with(LINKERD_DOMAIN),
        }
    }
}

impl<'a> Read<'a> for TextMap<'a> {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<(), ReadError> {
        let mut len = 0;
        let is_there = reader.object(|reader, key| {
            len += 1;
            if !TextMap::matters(&key) {
                return reader.skip();
            }
            let mut value = Text::default();
            reader.member(&mut value, &key, true)?;
            self.entries.push((Text(key), value));
            Ok(())
        })?;
        self.len = is_there.then_some(len);
        Ok(())
    }
}

// === impl ServiceAccountMount ===

impl<'a> Read<'a> for ServiceAccountMount<'a> {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<(), ReadError> {
        reader.list(|reader| {
            let mut mount = VolumeMount::default();
            mount.read(reader)?;
            if &*mount.mount_path == SERVICE_ACCOUNT_MOUNT_PATH {
                self.0 = Some(mount);
                return reader.skip_items();
            }
            Ok(())
        })?;
        Ok(())
    }
}
