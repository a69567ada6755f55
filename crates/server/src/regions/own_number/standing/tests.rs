//! The standing of a deployment after rounds of answers of its peers.

use seatkeeper_ledger::homes::DeploymentId;

use super::*;

const B: Region = Region::new(2);
const C: Region = Region::new(3);

const YES: Option<Answer> = Some(Answer::Consent);
const NO: Option<Answer> = Some(Answer::Refusal);

fn own(is_confirmed: bool, refused_by: Option<Region>) -> OwnRegion {
    OwnRegion {
        region: Region::new(1),
        deployment: DeploymentId::random(),
        is_confirmed,
        refused_by,
        is_disputed: false,
    }
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
fn a_refusal_on_record_counts_until_the_peer_consents() {
    let refused = own(true, Some(B));
    assert_eq!(after(&refused, &[]), Standing::Refused(B));
    assert_eq!(after(&refused, &[[None, None]]), Standing::Refused(B));
    assert_eq!(after(&refused, &[[None, YES]]), Standing::Disputed(B));
    assert_eq!(after(&refused, &[[YES, None]]), Standing::Confirmed);
    assert_eq!(after(&own(false, Some(B)), &[[None, YES]]), Standing::Refused(B), "never accepted");
    let disputed = OwnRegion { is_disputed: true, ..refused };
    assert_eq!(after(&disputed, &[[None, None]]), Standing::Disputed(B));
    assert_eq!(after(&disputed, &[[NO, None]]), Standing::Refused(B));
    assert_eq!(after(&disputed, &[[YES, YES]]), Standing::Confirmed);
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
    let confirmed = Recorded { is_confirmed: true, refused_by: None, is_disputed: false };
    assert_eq!(answers.unrecorded(standing), Some(confirmed));
    answers.recorded(confirmed);
    assert_eq!(answers.unrecorded(standing), None);
    let standing = answers.take(vec![(B, NO), (C, YES)], standing, None);
    let disputed = Recorded { refused_by: Some(B), is_disputed: true, ..confirmed };
    assert_eq!(answers.unrecorded(standing), Some(disputed));
}

#[test]
fn the_record_of_another_node_counts() {
    let taken = |own_record: &OwnRegion| {
        let round = vec![(B, None), (C, None)];
        Answers::new(&own(false, None)).take(round, Standing::Unconfirmed, Some(own_record))
    };
    assert_eq!(taken(&own(true, None)), Standing::Confirmed);
    assert_eq!(taken(&own(true, Some(B))), Standing::Refused(B));
    // A node that was refused at first hears of the acceptance by another node.
    let mut answers = Answers::new(&own(false, None));
    let standing = answers.take(vec![(B, NO), (C, None)], Standing::Unconfirmed, None);
    let round = vec![(B, NO), (C, YES)];
    assert_eq!(answers.take(round, standing, Some(&own(true, None))), Standing::Disputed(B));
}

#[test]
fn a_region_without_living_peers_needs_no_consent() {
    assert_eq!(
        Answers::new(&own(false, None)).take(Vec::new(), Standing::Unconfirmed, None),
        Standing::Confirmed
    );
}
