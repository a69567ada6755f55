//! The standing of a deployment after rounds of answers of its peers.

use super::*;

const B: Region = Region::new(2);
const C: Region = Region::new(3);

const YES: Option<Answer> = Some(Answer::Consent);
const NO: Option<Answer> = Some(Answer::Refusal);
const ADOPTED: Option<Answer> = Some(Answer::Adopted);

fn on_record(is_confirmed: bool, refused_by: Option<Region>) -> RecordedAnswers {
    RecordedAnswers { is_confirmed, refused_by, is_disputed: false }
}

/// Returns the standing after rounds of answers by B and C.
fn after(recorded: RecordedAnswers, rounds: &[[Option<Answer>; 2]]) -> Standing {
    let mut answers = Answers::new(recorded);
    let round = |[b, c]: &[Option<Answer>; 2]| vec![(B, *b), (C, *c)];
    rounds
        .iter()
        .fold(Standing::on_record(recorded), |before, answer| answers.take(round(answer), before, None))
}

#[test]
fn a_new_deployment_needs_a_consent_and_no_refusal() {
    let new = on_record(false, None);
    for (round, standing) in [
        ([None, None], Standing::Unconfirmed),
        ([YES, None], Standing::Confirmed),
        ([YES, YES], Standing::Confirmed),
        ([NO, YES], Standing::Refused(B)),
        ([None, NO], Standing::Refused(C)),
    ] {
        assert_eq!(after(new, &[round]), standing, "{round:?}");
    }
    assert_eq!(after(new, &[[NO, None], [YES, YES]]), Standing::Confirmed, "an operator has repaired B");
}

#[test]
fn a_confirmed_deployment_is_stopped_by_a_refusal_without_any_consent() {
    let known = on_record(true, None);
    for (rounds, standing) in [
        (vec![[None, None]], Standing::Confirmed),
        (vec![[NO, None]], Standing::Refused(B)),
        (vec![[NO, YES]], Standing::Disputed(B)),
        // C restarts.
        (vec![[NO, YES], [NO, None]], Standing::Disputed(B)),
        (vec![[NO, YES], [None, None]], Standing::Disputed(B)),
        (vec![[NO, YES], [YES, None]], Standing::Confirmed),
    ] {
        assert_eq!(after(known, &rounds), standing, "{rounds:?}");
    }
}

/// A peer that has consented before may have recorded the adoption since.
#[test]
fn an_adoption_is_outweighed_by_a_consent_of_the_same_round_alone() {
    let known = on_record(true, None);
    for (rounds, standing) in [
        (vec![[ADOPTED, YES]], Standing::Disputed(B)),
        (vec![[ADOPTED, None]], Standing::Refused(B)),
        (vec![[YES, YES], [None, None], [ADOPTED, None]], Standing::Refused(B)),
        (vec![[ADOPTED, YES], [None, YES]], Standing::Disputed(B)),
        (vec![[ADOPTED, YES], [ADOPTED, None]], Standing::Refused(B)),
        (vec![[ADOPTED, YES], [ADOPTED, ADOPTED]], Standing::Refused(B)),
        (vec![[ADOPTED, None], [ADOPTED, YES]], Standing::Disputed(B)),
        (vec![[ADOPTED, None], [YES, None]], Standing::Confirmed),
    ] {
        assert_eq!(after(known, &rounds), standing, "{rounds:?}");
    }
    let refused = after(on_record(true, Some(B)), &[[ADOPTED, None], [None, None]]);
    assert_eq!(refused, Standing::Refused(B), "after a restart");
}

#[test]
fn a_refusal_on_record_counts_until_the_peer_consents() {
    let refused = on_record(true, Some(B));
    assert_eq!(after(refused, &[]), Standing::Refused(B));
    assert_eq!(after(refused, &[[None, None]]), Standing::Refused(B));
    assert_eq!(after(refused, &[[None, YES]]), Standing::Disputed(B));
    assert_eq!(after(refused, &[[YES, None]]), Standing::Confirmed);
    assert_eq!(after(on_record(false, Some(B)), &[[None, YES]]), Standing::Refused(B), "never accepted");
    let disputed = RecordedAnswers { is_disputed: true, ..refused };
    assert_eq!(after(disputed, &[[None, None]]), Standing::Disputed(B));
    assert_eq!(after(disputed, &[[NO, None]]), Standing::Refused(B));
    assert_eq!(after(disputed, &[[YES, YES]]), Standing::Confirmed);
}

#[test]
fn two_deployments_that_were_both_accepted_are_both_disputed() {
    // Each reached one peer alone. Then the links heal.
    let new = on_record(false, None);
    assert_eq!(after(new, &[[YES, None], [YES, NO]]), Standing::Disputed(C));
    assert_eq!(after(new, &[[None, YES], [NO, YES]]), Standing::Disputed(B));
}

#[test]
fn a_change_is_recorded_once() {
    let new = on_record(false, None);
    let mut answers = Answers::new(new);
    let standing = answers.take(vec![(B, YES)], Standing::Unconfirmed, None);
    let confirmed = RecordedAnswers { is_confirmed: true, refused_by: None, is_disputed: false };
    assert_eq!(answers.unrecorded(standing), Some(confirmed));
    answers.recorded(confirmed);
    assert_eq!(answers.unrecorded(standing), None);
    let standing = answers.take(vec![(B, NO), (C, YES)], standing, None);
    let disputed = RecordedAnswers { refused_by: Some(B), is_disputed: true, ..confirmed };
    assert_eq!(answers.unrecorded(standing), Some(disputed));
}

#[test]
fn the_record_of_another_node_counts() {
    let taken = |recorded: RecordedAnswers| {
        let round = vec![(B, None), (C, None)];
        Answers::new(on_record(false, None)).take(round, Standing::Unconfirmed, Some(recorded))
    };
    assert_eq!(taken(on_record(true, None)), Standing::Confirmed);
    assert_eq!(taken(on_record(true, Some(B))), Standing::Refused(B));
    // A node that was refused at first hears of the acceptance by another node.
    let mut answers = Answers::new(on_record(false, None));
    let standing = answers.take(vec![(B, NO), (C, None)], Standing::Unconfirmed, None);
    let round = vec![(B, NO), (C, YES)];
    assert_eq!(answers.take(round, standing, Some(on_record(true, None))), Standing::Disputed(B));
}

#[test]
fn a_region_without_living_peers_needs_no_consent() {
    assert_eq!(
        Answers::new(on_record(false, None)).take(Vec::new(), Standing::Unconfirmed, None),
        Standing::Confirmed
    );
}
