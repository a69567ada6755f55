use super::{Holder, RequestId, TenantId, UserId};

#[test]
fn a_name_is_its_text() {
    assert_eq!(TenantId::new("acme").as_str(), "acme");
    assert_eq!(UserId::from("ann").to_string(), "ann");
    assert_eq!(format!("{:?}", Holder::from("a \"b\"")), r#""a \"b\"""#);
    assert!(RequestId::from("1") < RequestId::from("2"));
}
