//! SQLite finds the records of a pool or of a session by their index, without a walk through the tenant's log.

use super::*;
use crate::database::sqlite_plan;

#[tokio::test]
async fn records_of_a_pool_or_a_session_are_read_by_their_index_and_without_a_sort() {
    let of_pool = "(tenant_id=? AND pool_kind=? AND pool_id=?)";
    let session = "0193d2f4-0007-8000-8abc-0123456789ab".parse().unwrap();
    let pool = AuditFilter { pool: Some("x".into()), ..AuditFilter::default() };
    let time = Some(RegistryTime::default());
    for (filter, index) in [
        (pool.clone(), of_pool),
        (AuditFilter { pool_kind: Some(PoolKind::License), ..pool.clone() }, of_pool),
        (AuditFilter { action: Some(Action::Ended), ..pool.clone() }, of_pool),
        (AuditFilter { from: time, to: time, ..pool }, of_pool),
        (
            AuditFilter { session: Some(session), ..AuditFilter::default() },
            "audit_log_by_session (session_id=?)",
        ),
    ] {
        for cursor in [None, Some(7)] {
            let steps = sqlite_plan(&filter.select_page(&TenantId::from("acme"), cursor, 100)).await;
            let found = steps.iter().any(|step| step.starts_with("SEARCH") && step.contains(index));
            assert!(found, "{filter:?} does not search {index}: {steps:#?}");
            let by_id = |step: &String| !step.contains("_by_tenant") || step.contains(" id=? ");
            assert!(steps.iter().all(by_id), "{filter:?} walks the tenant: {steps:#?}");
            let sorts = steps.iter().any(|step| step.contains("FOR ORDER BY"));
            assert!(!sorts, "{filter:?} sorts: {steps:#?}");
        }
    }
}
