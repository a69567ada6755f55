//! Tokens between regions: accepted from a peer, for this region, for a minute.

use std::net::Ipv4Addr;
use std::time::Duration;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header};
use seatkeeper_core::Region;
use seatkeeper_engine::wall_clock;
use seatkeeper_ledger::homes::DeploymentId;

use super::{Claims, Client, Forwarder, PeerTokens, RegionKeys, TOKEN_BYTES_MAX, TYPE, name_of};

const LEEWAY: Duration = Duration::from_secs(5);
const EU: Region = Region::new(1);
const US: Region = Region::new(2);

/// A key pair of a region.
struct Pair {
    signing: EncodingKey,
    public: DecodingKey,
}

fn pair() -> Pair {
    let pair = Ed25519KeyPair::generate().unwrap();
    Pair {
        signing: EncodingKey::from_ed_der(pair.to_pkcs8v1().unwrap().as_ref()),
        public: DecodingKey::from_ed_der(pair.public_key().as_ref()),
    }
}

fn region(own: Region, signing: EncodingKey, peer: Region, public: DecodingKey) -> PeerTokens {
    PeerTokens::new((own, DeploymentId::random()), RegionKeys::new(signing, peer, public), LEEWAY)
}

/// Returns the sender `US` and the receiver `EU`, and the sender's signing key.
fn regions() -> (PeerTokens, PeerTokens, EncodingKey) {
    let (eu, us) = (pair(), pair());
    (region(US, us.signing.clone(), EU, eu.public), region(EU, eu.signing, US, us.public), us.signing)
}

fn claims(exp: i64) -> Claims {
    let exp = wall_clock::now().timestamp() + exp;
    Claims {
        iss: name_of(US),
        aud: name_of(EU),
        exp,
        deployment: DeploymentId::random(),
        receiver: None,
        client: Client::default(),
    }
}

fn signed(typ: &str, claims: &Claims, key: &EncodingKey) -> String {
    let header = Header { typ: Some(typ.to_owned()), ..Header::new(Algorithm::EdDSA) };
    jsonwebtoken::encode(&header, claims, key).unwrap()
}

#[test]
fn a_token_tells_the_forwarder_and_the_client() {
    let (us, eu, _) = regions();
    let address = Some(Ipv4Addr::new(203, 0, 113, 7).into());
    let client = Client { address, request_id: Some("r1".into()) };
    let token = us.sign((EU, None), client.clone()).unwrap();
    let deployment = us.deployment;
    assert_eq!(eu.check(&token).unwrap(), Forwarder { region: US, deployment, knows_receiver: true, client });
}

#[test]
fn a_token_for_another_region_or_of_another_key_is_refused() {
    let (us, eu, _) = regions();
    assert!(
        eu.check(&us.sign((Region::new(3), None), Client::default()).unwrap()).is_err(),
        "another receiver"
    );
    let (stranger, ..) = regions();
    assert!(eu.check(&stranger.sign((EU, None), Client::default()).unwrap()).is_err(), "another key");
    assert!(eu.check("no token").is_err());
    let for_deployment = |receiver| us.sign((EU, Some(receiver)), Client::default()).unwrap();
    assert!(eu.check(&for_deployment(eu.deployment)).unwrap().knows_receiver);
    assert!(!eu.check(&for_deployment(DeploymentId::random())).unwrap().knows_receiver, "a rival");
}

#[test]
fn a_long_token_is_refused() {
    let (us, eu, _) = regions();
    let of_length = |length| {
        let client = Client { address: None, request_id: Some("r".repeat(length)) };
        us.sign((EU, None), client).unwrap()
    };
    assert!(eu.check(&of_length(TOKEN_BYTES_MAX / 2)).is_ok());
    assert!(eu.check(&of_length(TOKEN_BYTES_MAX)).is_err());
}

#[test]
fn a_token_is_short_lived_and_has_its_type() {
    let (_, eu, key) = regions();
    assert!(eu.check(&signed(TYPE, &claims(60), &key)).is_ok());
    assert!(eu.check(&signed(TYPE, &claims(-6), &key)).is_err(), "over");
    assert!(eu.check(&signed(TYPE, &claims(70), &key)).is_err(), "too long");
    assert!(eu.check(&signed("JWT", &claims(60), &key)).is_err(), "another type");
}
