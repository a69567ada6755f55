//! The reference of all settings, built from the doc comments of their structs.

use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use super::{
    AuthSettings, CapacitiesSettings, DevicesSettings, LedgerSettings, LicensesSettings, LimitsSettings,
    LogSettings, MetricsSettings, RegistrySettings, ServerSettings, TracingSettings, UsageSettings,
};

/// A section of the settings.
#[derive(Debug)]
pub struct SectionReference {
    /// The name of the section in a file.
    pub name: &'static str,
    /// The subject of the section.
    pub about: String,
    /// Each key with its meaning, unit, range and default.
    pub keys: Vec<(String, String)>,
}

impl SectionReference {
    /// Returns every section, in the order of printing.
    pub fn all() -> Vec<Self> {
        vec![
            Self::of::<ServerSettings>("server"),
            Self::of::<AuthSettings>("auth"),
            Self::of::<LedgerSettings>("ledger"),
            Self::of::<RegistrySettings>("registry"),
            Self::of::<LicensesSettings>("licenses"),
            Self::of::<DevicesSettings>("devices"),
            Self::of::<CapacitiesSettings>("capacities"),
            Self::of::<LimitsSettings>("limits"),
            Self::of::<UsageSettings>("usage"),
            Self::of::<LogSettings>("log"),
            Self::of::<MetricsSettings>("metrics"),
            Self::of::<TracingSettings>("tracing"),
        ]
    }

    fn of<T: ToSchema>(name: &'static str) -> Self {
        let schema = T::schema();
        let keys = match &schema {
            RefOr::T(Schema::Object(object)) => {
                object.properties.iter().map(|(key, what)| (key.clone(), about(what))).collect()
            }
            RefOr::T(_) | RefOr::Ref(_) => Vec::new(),
        };
        Self { name, about: about(&schema), keys }
    }
}

/// Returns the doc comment of a schema as a single line.
fn about(schema: &RefOr<Schema>) -> String {
    let about = match schema {
        RefOr::T(Schema::Object(object)) => object.description.as_ref(),
        RefOr::T(Schema::Array(array)) => array.description.as_ref(),
        RefOr::T(_) | RefOr::Ref(_) => None,
    };
    about.map_or_else(String::new, |about| about.replace('\n', " "))
}
