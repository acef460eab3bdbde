//! Addresses and networks (`net/netip` of Go, with what Kubernetes forbids).

use std::{fmt, net::IpAddr};

use super::{Fault, Res};

/// A network, with the address as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cidr {
    address: IpAddr,
    bits: u8,
}

/// Reads an address, without a zone, and none of IPv4 in IPv6.
///
/// # Errors
/// The text is not an address, or one that Kubernetes does not allow.
pub(crate) fn address(text: &str) -> Res<IpAddr> {
    match text.parse() {
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => {
            Fault::error("an IPv4-mapped IPv6 address is not allowed")
        }
        Ok(address) => Ok(address),
        Err(_) => Fault::error("invalid IP address"),
    }
}

impl Cidr {
    /// Reads a network.
    ///
    /// # Errors
    /// The text is not a network.
    pub(crate) fn parse(text: &str) -> Res<Self> {
        let invalid = || Fault::error("invalid network");
        let Some((start, bits)) = text.rsplit_once('/') else { return invalid() };
        let address = address(start)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let is_plain = bits.len() <= 3
            && bits.bytes().all(|digit| digit.is_ascii_digit())
            && (bits.len() == 1 || !bits.starts_with('0'));
        match bits.parse() {
            Ok(bits) if is_plain && bits <= most => Ok(Self { address, bits }),
            _ => invalid(),
        }
    }

    /// The address, as it was written.
    pub(crate) fn address(&self) -> IpAddr {
        self.address
    }

    /// The length of the prefix in bits.
    pub(crate) fn bits(&self) -> u8 {
        self.bits
    }

    /// The network with an address that has no bits behind the prefix.
    pub(crate) fn without_host(&self) -> Self {
        Self { address: self.masked(self.address), bits: self.bits }
    }

    /// Whether each address of another network is in it.
    pub(crate) fn contains_all(&self, other: &Self) -> bool {
        self.bits <= other.bits && self.contains(other.address)
    }

    /// An address without the bits behind the prefix.
    fn masked(&self, address: IpAddr) -> IpAddr {
        let bits = u32::from(self.bits);
        match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0);
                IpAddr::V4((address.to_bits() & mask).into())
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - bits.min(128)).unwrap_or(0);
                IpAddr::V6((address.to_bits() & mask).into())
            }
        }
    }

    /// Whether an address is in it.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && self.masked(address) == self.masked(self.address)
    }

    /// The size that costs depend on: bytes of the prefix.
    pub(crate) fn size(&self) -> u64 {
        u64::from(self.bits.div_ceil(8))
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}
