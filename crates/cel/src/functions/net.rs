//! Functions of addresses and networks (`pkg/cel/library/ip.go` and `cidr.go`).

use std::{net::IpAddr, rc::Rc};

use super::{Call, Function};
use crate::value::{Cidr, Fault, Res, Val, address};

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
            Ok(Val::Bool(one.contains_all(&other)))
        },
        ".ip" => |call| Ok(Val::Ip(cidr(call, 0)?.address())),
        ".prefixLength" => |call| Ok(Val::Int(i64::from(cidr(call, 0)?.bits()))),
        ".masked" => |call| Ok(Val::Cidr(Rc::new(cidr(call, 0)?.without_host()))),
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
