//! The standing of a deployment after rounds of answers of its peers.

use seatkeeper_ledger::homes::DeploymentId;

use super::*;

const B: Region = Region::new(2);
const C: Region = Region::new(3);

const YES: Option<Answer> = Some(Answer::Consent);
const NO: Option<Answer> = Some(Answer::Refusal);

fn own(is_confirmed: bool, refused_by: Option<Region>) -> OwnRegion {
    OwnRegion { region: Region::new(1), deployment: DeploymentId::random(), is_confirmed, refused_by }
}

/// Returns the standing after rounds of answers by B and C.
fn after(own: &OwnRegion, rounds: &[[Option<Answer>; 2]]) -> Standing {
    let mut answers = Answers::new(own);
    let round = |[b, c]: &[Option<Answer>; 2]| vec![(B, *b), (C, *c)];
    rounds.iter().fold(Standing::on_record(own), |before, answer| answers.take(round(answer), before, None))
}

#[test]
fn a_new_deployment_needs_a_consent_and_no_refusal() {
    let new = own(false, None);
    for (round, standing) in [
        ([None, None], Standing::Unconfirmed),
        ([YES, None], Standing::Confirmed),
        ([YES, YES], Standing::Confirmed),
        ([NO, YES], Standing::Refused(B)),
        ([None, NO], Standing::Refused(C)),
    ] {
        assert_eq!(after(&new, &[round]), standing, "{round:?}");
    }
    assert_eq!(after(&new, &[[NO, None], [YES, YES]]), Standing::Confirmed, "an operator has repaired B");
}

#[test]
fn a_confirmed_deployment_is_stopped_by_a_refusal_without_any_consent() {
    let known = own(true, None);
    for (rounds, standing) in [
        (vec![[None, None]], Standing::Confirmed),
        (vec![[NO, None]], Standing::Refused(B)),
        (vec![[NO, YES]], Standing::Disputed(B)),
        // C restarts.
        (vec![[NO, YES], [NO, None]], Standing::Disputed(B)),
        (vec![[NO, YES], [None, None]], Standing::Disputed(B)),
        (vec![[NO, YES], [YES, None]], Standing::Confirmed),
    ] {
        assert_eq!(after(&known, &rounds), standing, "{rounds:?}");
    }
}

#[test]
fn a_refusal_on_record_counts_until_a_peer_consents() {
    let refused = own(true, Some(B));
    assert_eq!(after(&refused, &[]), Standing::Refused(B));
    assert_eq!(after(&refused, &[[None, None]]), Standing::Refused(B));
    assert_eq!(after(&refused, &[[None, YES]]), Standing::Confirmed);
    assert_eq!(after(&refused, &[[NO, YES]]), Standing::Disputed(B));
}

#[test]
fn two_deployments_that_were_both_accepted_are_both_disputed() {
    // Each reached one peer alone. Then the links heal.
    let new = own(false, None);
    assert_eq!(after(&new, &[[YES, None], [YES, NO]]), Standing::Disputed(C));
    assert_eq!(after(&new, &[[None, YES], [NO, YES]]), Standing::Disputed(B));
}

#[test]
fn a_change_is_recorded_once() {
    let new = own(false, None);
    let mut answers = Answers::new(&new);
    let standing = answers.take(vec![(B, YES)], Standing::Unconfirmed, None);
    assert_eq!(answers.unrecorded(standing), Some((true, None)));
    answers.recorded(true, None);
    assert_eq!(answers.unrecorded(standing), None);
    let standing = answers.take(vec![(B, NO)], standing, None);
    assert_eq!(answers.unrecorded(standing), Some((true, Some(B))));
}

#[test]
fn the_acceptance_that_another_node_recorded_counts() {
    let mut answers = Answers::new(&own(false, None));
    let recorded = own(true, None);
    assert_eq!(answers.take(vec![(B, None)], Standing::Unconfirmed, Some(&recorded)), Standing::Confirmed);
}

#[test]
fn a_region_without_living_peers_needs_no_consent() {
    assert_eq!(
        Answers::new(&own(false, None)).take(Vec::new(), Standing::Unconfirmed, None),
        Standing::Confirmed
    );
}
