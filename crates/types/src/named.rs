//! Enums whose variants have names.

/// What an enum of [`named!`](crate::named!) is to code that knows nothing else of it.
pub trait Named: Copy + Send + Sync + 'static {
    /// Every one, in order.
    const EVERY: &'static [Self];

    /// The name of one.
    fn spelled(self) -> &'static str;

    /// The one of this name.
    fn find(name: &str) -> Option<Self> {
        Self::EVERY.iter().copied().find(|one| one.spelled() == name)
    }
}

/// Defines an enum in which each variant is followed by its name in files, with `ALL` of them in order, `name`, [`Named`] and `Display`.
#[macro_export]
macro_rules! named {
    (
        $(#[$about:meta])*
        $visible:vis enum $Enum:ident { $($(#[$of:meta])* $Variant:ident = $name:literal,)+ }
    ) => {
        $(#[$about])*
        $visible enum $Enum { $($(#[$of])* $Variant,)+ }

        impl $Enum {
            /// Every one, in order.
            $visible const ALL: [Self; [$($name),+].len()] = [$(Self::$Variant),+];

            /// The name in files and tables.
            $visible const fn name(self) -> &'static str {
                match self {
                    $(Self::$Variant => $name,)+
                }
            }
        }

        impl $crate::Named for $Enum {
            const EVERY: &'static [Self] = &Self::ALL;

            fn spelled(self) -> &'static str {
                self.name()
            }
        }

        impl std::fmt::Display for $Enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}
