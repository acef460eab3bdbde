//! Addresses and networks (`pkg/cel/library/ip.go` and `cidr.go`).

use std::{fmt, net::IpAddr, rc::Rc};

use super::{Call, Function};
use crate::value::{Fault, Res, Val};

/// A network, with the address as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cidr {
    address: IpAddr,
    bits: u8,
}

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "ip" => |call| address(&call.text(0)?).map(Val::Ip),
        "isIP" => |call| Ok(Val::Bool(address(&call.text(0)?).is_ok())),
        "ip.isCanonical" => |call| {
            let text = call.text(0)?;
            Ok(Val::Bool(address(&text)?.to_string() == *text))
        },
        ".family" => |call| Ok(Val::Int(if ip(call, 0)?.is_ipv4() { 4 } else { 6 })),
        ".isUnspecified" => |call| Ok(Val::Bool(ip(call, 0)?.is_unspecified())),
        ".isLoopback" => |call| Ok(Val::Bool(ip(call, 0)?.is_loopback())),
        ".isLinkLocalMulticast" => |call| Ok(Val::Bool(is_local_multicast(ip(call, 0)?))),
        ".isLinkLocalUnicast" => |call| Ok(Val::Bool(is_local_unicast(ip(call, 0)?))),
        ".isGlobalUnicast" => |call| Ok(Val::Bool(is_global_unicast(ip(call, 0)?))),
        "cidr" => |call| Ok(Val::Cidr(Rc::new(Cidr::parse(&call.text(0)?)?))),
        "isCIDR" => |call| Ok(Val::Bool(Cidr::parse(&call.text(0)?).is_ok())),
        ".containsIP" => |call| {
            let cidr = cidr(call, 0)?;
            let ip = match call.at(1)? {
                Val::Text(_) => address(&call.text(1)?)?,
                _ => ip(call, 1)?,
            };
            Ok(Val::Bool(cidr.contains(ip)))
        },
        ".containsCIDR" => |call| {
            let one = cidr(call, 0)?;
            let other = match call.at(1)? {
                Val::Text(_) => Rc::new(Cidr::parse(&call.text(1)?)?),
                _ => cidr(call, 1)?,
            };
            Ok(Val::Bool(one.bits <= other.bits && one.contains(other.address)))
        },
        ".ip" => |call| Ok(Val::Ip(cidr(call, 0)?.address)),
        ".prefixLength" => |call| Ok(Val::Int(i64::from(cidr(call, 0)?.bits))),
        ".masked" => |call| {
            let cidr = cidr(call, 0)?;
            Ok(Val::Cidr(Rc::new(Cidr { address: cidr.masked(cidr.address), bits: cidr.bits })))
        },
        _ => return None,
    })
}

fn ip(call: &Call<'_, '_>, index: usize) -> Res<IpAddr> {
    match call.at(index)? {
        Val::Ip(address) => Ok(*address),
        _ => Fault::overload(),
    }
}

fn cidr(call: &Call<'_, '_>, index: usize) -> Res<Rc<Cidr>> {
    match call.at(index)? {
        Val::Cidr(cidr) => Ok(Rc::clone(cidr)),
        _ => Fault::overload(),
    }
}

/// An address, without a zone, and none of IPv4 in IPv6.
fn address(text: &str) -> Res<IpAddr> {
    match text.parse() {
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => {
            Fault::error("an IPv4-mapped IPv6 address is not allowed")
        }
        Ok(address) => Ok(address),
        Err(_) => Fault::error("invalid IP address"),
    }
}

fn is_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_local_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn is_global_unicast(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !is_broadcast
        && !address.is_unspecified()
        && !address.is_loopback()
        && !address.is_multicast()
        && !is_local_unicast(address)
}

impl Cidr {
    fn parse(text: &str) -> Res<Self> {
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

    fn contains(&self, address: IpAddr) -> bool {
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
