//! The reference of all settings, built from the doc comments of their structs.

use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use super::{
    AuthSettings, CapacitiesSettings, DevicesSettings, LedgerSettings, LicensesSettings, LimitsSettings,
    LogSettings, MetricsSettings, RegionSettings, RegistrySettings, ServerSettings, TracingSettings,
    UsageSettings,
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
            Self::new::<ServerSettings>("server"),
            Self::new::<AuthSettings>("auth"),
            Self::new::<LedgerSettings>("ledger"),
            Self::new::<RegistrySettings>("registry"),
            Self::new::<RegionSettings>("region"),
            Self::new::<LicensesSettings>("licenses"),
            Self::new::<DevicesSettings>("devices"),
            Self::new::<CapacitiesSettings>("capacities"),
            Self::new::<LimitsSettings>("limits"),
            Self::new::<UsageSettings>("usage"),
            Self::new::<LogSettings>("log"),
            Self::new::<MetricsSettings>("metrics"),
            Self::new::<TracingSettings>("tracing"),
        ]
    }

    fn new<T: ToSchema>(name: &'static str) -> Self {
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
