//! DSA keys, for `genPrivateKey` only. Go: `crypto/dsa`.
//!
//! Parameters are made as Go makes them: a prime q, then a prime p of which q divides p - 1.

use num_bigint::BigUint;
use yasna::construct_der;

use super::super::random::fill;

/// Bits of p and of q.
pub(super) const L2048_N256: (u64, u64) = (2048, 256);

/// Rounds of Miller and Rabin, as in Go.
const ROUNDS: usize = 64;

const SMALL: u32 = 2000;

fn random(bits: u64) -> Result<BigUint, String> {
    let mut bytes = vec![0; usize::try_from(bits.div_ceil(8)).unwrap_or(0)];
    fill(&mut bytes)?;
    let number = BigUint::from_bytes_be(&bytes);
    Ok(number % (BigUint::from(1_u8) << bits))
}

/// A random number from 1 to below this one.
fn below(limit: &BigUint) -> Result<BigUint, String> {
    loop {
        let number = random(limit.bits())?;
        if number > BigUint::ZERO && number < *limit {
            return Ok(number);
        }
    }
}

/// An odd number of exactly this many bits.
fn odd(bits: u64) -> Result<BigUint, String> {
    let mut number = random(bits)?;
    number.set_bit(0, true);
    number.set_bit(bits - 1, true);
    Ok(number)
}

fn has_small_factor(number: &BigUint) -> bool {
    (3..SMALL)
        .step_by(2)
        .any(|factor| number % factor == BigUint::ZERO && *number != BigUint::from(factor))
}

/// Miller and Rabin for an odd number above 3.
fn is_prime(number: &BigUint) -> Result<bool, String> {
    if has_small_factor(number) {
        return Ok(false);
    }
    let one = BigUint::from(1_u8);
    let last = number - &one;
    let twos = last.trailing_zeros().unwrap_or(0);
    let odd = &last >> twos;
    for _ in 0..ROUNDS {
        let mut power = below(number)?.modpow(&odd, number);
        if power == one {
            continue;
        }
        let mut squared = 0;
        while power != last {
            squared += 1;
            if squared >= twos {
                return Ok(false);
            }
            power = &power * &power % number;
        }
    }
    Ok(true)
}

/// The parameters p, q and g.
fn parameters((p_bits, q_bits): (u64, u64)) -> Result<[BigUint; 3], String> {
    let one = BigUint::from(1_u8);
    let mut tries = 0;
    let mut q = odd(q_bits)?;
    while !is_prime(&q)? {
        q = odd(q_bits)?;
    }
    let p = loop {
        tries += 1;
        if tries > 4 * p_bits {
            return parameters((p_bits, q_bits));
        }
        let start = odd(p_bits)?;
        let p = &start + &one - &start % &q;
        if p.bits() == p_bits && p.bit(0) && is_prime(&p)? {
            break p;
        }
    };
    let power = (&p - &one) / &q;
    let mut base = BigUint::from(2_u8);
    loop {
        let g = base.modpow(&power, &p);
        if g != one {
            return Ok([p, q, g]);
        }
        base += 1_u8;
    }
}

/// A new key in sprig's form: a sequence of version, p, q, g, y and x.
#[expect(clippy::many_single_char_names, reason = "as the standard names them")]
pub(super) fn generate(bits: (u64, u64)) -> Result<Vec<u8>, String> {
    let [p, q, g] = parameters(bits)?;
    let x = below(&q)?;
    let y = g.modpow(&x, &p);
    Ok(construct_der(|writer| {
        writer.write_sequence(|writer| {
            writer.next().write_u8(0);
            for number in [p, q, g, y, x] {
                writer.next().write_bigint_bytes(&number.to_bytes_be(), true);
            }
        });
    }))
}

#[cfg(test)]
mod tests {
    use yasna::{BERReader, parse_der};

    use super::*;

    #[test]
    fn primes_are_told_from_others() {
        let mersenne = |power: u32| (BigUint::from(1_u8) << power) - 1_u8;
        assert_eq!(is_prime(&mersenne(127)), Ok(true));
        assert_eq!(is_prime(&mersenne(521)), Ok(true));
        assert_eq!(is_prime(&mersenne(67)), Ok(false));
        assert_eq!(is_prime(&(mersenne(89) * mersenne(107))), Ok(false));
    }

    #[test]
    #[expect(clippy::many_single_char_names, reason = "as the standard names them")]
    fn keys_are_keys_of_their_group() {
        let der = generate((512, 160)).expect("there must be chance");
        let mut numbers = Vec::new();
        parse_der(&der, |reader| {
            reader.read_sequence_of(|reader: BERReader<'_, '_>| {
                numbers.push(BigUint::from_bytes_be(&reader.read_bigint_bytes()?.0));
                Ok(())
            })
        })
        .expect("it must be DER");
        let [_, p, q, g, y, x] = numbers.try_into().expect("there must be six numbers");
        let one = BigUint::from(1_u8);
        assert_eq!((p.bits(), q.bits()), (512, 160));
        assert_eq!(g.modpow(&q, &p), one);
        assert_ne!(g, one);
        assert_eq!(g.modpow(&x, &p), y);
    }
}
