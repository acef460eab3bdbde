//! Lists and maps of views, of which some keep only what is asked of them.

use std::{fmt, marker::PhantomData, ops::Deref};

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use smallvec::SmallVec;

use super::{POD_TEMPLATE_HASH, SERVICE_ACCOUNT_MOUNT_PATH, Text, VolumeMount, view::Make};

/// Room made at once for a list that has none in place: most pods have fewer containers.
const HEAP_ITEMS: usize = 4;

/// A list with room for `N` items in place. Large items are better off with none: a view is moved
/// several times while it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List<T, const N: usize>(Option<SmallVec<[T; N]>>);

/// The number of items of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count(pub usize);

/// Labels or annotations: the entries whose keys matter, and how many there are in all.
#[derive(Debug, Default, Clone)]
pub struct TextMap<'a> {
    len: Option<usize>,
    entries: SmallVec<[(Text<'a>, Text<'a>); 2]>,
}

/// The first of a container's mounts at [`SERVICE_ACCOUNT_MOUNT_PATH`], if any.
#[derive(Debug, Default, Clone)]
pub struct ServiceAccountMount<'a>(pub Option<VolumeMount<'a>>);

// === impl List ===

impl<T, const N: usize> List<T, N> {
    /// Whether the list is there, empty or not.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.0.is_some()
    }
}

impl<T, const N: usize> Default for List<T, N> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T, const N: usize> Deref for List<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl<T, const N: usize> List<T, N> {
    /// The items.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        self
    }
}

impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for List<T, N> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Make(PhantomData::<List<T, N>>))
    }
}

impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for Make<List<T, N>> {
    type Value = List<T, N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(List(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut list = SmallVec::new();
        while let Some(item) = items.next_element()? {
            if list.len() == list.capacity() {
                list.reserve(HEAP_ITEMS);
            }
            list.push(item);
        }
        Ok(List(Some(list)))
    }
}

// === impl Count ===

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Make(PhantomData::<Count>))
    }
}

impl<'de> Visitor<'de> for Make<Count> {
    type Value = Count;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Count(0))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut count = 0;
        while items.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Count(count))
    }
}

// === impl TextMap ===

impl<'a> TextMap<'a> {
    /// Whether there is no entry at all, kept or not.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len.unwrap_or_default() == 0
    }

    /// Whether the map is there, empty or not.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.len.is_some()
    }

    /// The value of a key that matters; of a repeated key the last one.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().rev().find(|(found, _)| *found == key).map(|(_, value)| value)
    }

    /// The entries whose keys matter, in the order of the document.
    #[must_use]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &str)> + use<'_, 'a> {
        self.entries.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Whether a key is kept: the domains that meshes use, and what names a service or a workload.
    fn matters(key: &str) -> bool {
        let Some((domain, name)) = key.split_once('/') else {
            return key == POD_TEMPLATE_HASH;
        };
        match domain {
            "app.kubernetes.io" => matches!(name, "instance" | "name"),
            "resource.opentelemetry.io" => true,
            _ => domain.ends_with("linkerd.io"),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for TextMap<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Make(PhantomData::<TextMap<'a>>))
    }
}

impl<'de: 'a, 'a> Visitor<'de> for Make<TextMap<'a>> {
    type Value = TextMap<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of strings")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(TextMap::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut map = TextMap { len: Some(0), entries: SmallVec::new() };
        while let Some(key) = members.next_key::<Text<'a>>()? {
            map.len = map.len.map(|len| len + 1);
            if TextMap::matters(&key) {
                map.entries.push((key, members.next_value()?));
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(map)
    }
}

// === impl ServiceAccountMount ===

impl<'de: 'a, 'a> Deserialize<'de> for ServiceAccountMount<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Make(PhantomData::<ServiceAccountMount<'a>>))
    }
}

impl<'de: 'a, 'a> Visitor<'de> for Make<ServiceAccountMount<'a>> {
    type Value = ServiceAccountMount<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(ServiceAccountMount(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut mounts: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(mount) = mounts.next_element::<VolumeMount<'a>>()? {
            if found.is_none() && &*mount.mount_path == SERVICE_ACCOUNT_MOUNT_PATH {
                found = Some(mount);
            }
        }
        Ok(ServiceAccountMount(found))
    }
}
