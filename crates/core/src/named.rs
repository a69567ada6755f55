//! Enums whose variants have names in records, metrics and answers.

/// Error: the text names no variant of an enum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotNamed(pub &'static str);

/// Defines an enum with a name for each variant. With `else` and an error, texts can be parsed.
///
/// ```
/// seatkeeper_core::named_enum! {
///     /// A side of a boat.
///     pub enum Side else "not a side of a boat" {
///         /// Left.
///         Port = "port",
///         /// Right.
///         Starboard = "starboard",
///     }
/// }
/// assert_eq!(Side::Port.as_str(), "port");
/// assert_eq!("starboard".parse(), Ok(Side::Starboard));
/// assert_eq!("left".parse::<Side>().unwrap_err().to_string(), "not a side of a boat");
/// assert_eq!(Side::ALL, [Side::Port, Side::Starboard]);
/// ```
#[macro_export]
macro_rules! named_enum {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $name:ident else $error:literal {
            $($(#[$variant_attribute:meta])* $variant:ident = $text:literal,)+
        }
    ) => {
        $crate::named_enum! {
            $(#[$attribute])*
            $visibility enum $name {
                $($(#[$variant_attribute])* $variant = $text,)+
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::NotNamed;
            fn from_str(text: &str) -> ::std::result::Result<Self, $crate::NotNamed> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    _ => Err($crate::NotNamed($error)),
                }
            }
        }
    };
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $name:ident {
            $($(#[$variant_attribute:meta])* $variant:ident = $text:literal,)+
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility enum $name {
            $($(#[$variant_attribute])* $variant,)+
        }

        #[allow(dead_code, reason = "not every enum is listed")]
        impl $name {
            /// Every variant, in order.
            $visibility const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            /// Returns the variant's name in records, metrics and answers.
            $visibility const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
