//! Enums whose variants have names.

/// Defines an enum in which each variant is followed by its name in files, with `ALL` of them in order and `name`.
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
    };
}
