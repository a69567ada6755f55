//! SQLite finds the sessions of a pool by the index of pools, without a walk through the tenant's sessions.

use super::*;
use crate::database::sqlite_plan;

#[tokio::test]
async fn sessions_of_a_pool_are_read_by_the_index_of_pools_and_without_a_sort() {
    let pool = SessionFilter { pool: Some("x".into()), ..SessionFilter::default() };
    for filter in [
        pool.clone(),
        SessionFilter { pool_kind: Some(PoolKind::License), ..pool.clone() },
        SessionFilter { live: Some(true), ..pool.clone() },
        SessionFilter { live: Some(false), holder: Some(Holder::from("laptop")), ..pool },
    ] {
        for cursor in [None, Some("0193d2f4-0007-8000-8abc-0123456789ab".parse().unwrap())] {
            let steps = sqlite_plan(&filter.select_page(&TenantId::from("acme"), cursor, 100)).await;
            let reads = steps.iter().filter(|step| step.contains("sessions USING INDEX sessions_by_"));
            let strays =
                reads.clone().filter(|step| !step.contains("sessions_by_pool (tenant_id=? AND pool_kind="));
            assert_eq!((reads.count() > 0, strays.count()), (true, 0), "{filter:?}: {steps:#?}");
            let sorts = steps.iter().any(|step| step.contains("FOR ORDER BY"));
            assert!(!sorts, "{filter:?} sorts: {steps:#?}");
        }
    }
}
