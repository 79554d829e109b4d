//! Tokens that say what they are, by the letters that their services begin them with, and words that only a machine makes up.
//!
//! One line for each shape, after the public rules of gitleaks (<https://github.com/gitleaks/gitleaks>, MIT), whose lengths are
//! taken as the least: a token that was cut is still one.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::MASK;

/// Who issues it, and what it looks like.
const SHAPES: &[(&str, &str)] = &[
    ("1Password", r"ops_eyJ[A-Za-z0-9+/]{20,}=*"),
    ("age", r"AGE-SECRET-KEY-1[0-9A-Z]{20,}"),
    ("Airtable", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{20,}"),
    ("Alibaba Cloud", r"LTAI[A-Za-z0-9]{17,21}"),
    ("Anthropic, DeepSeek, OpenAI, OpenRouter", r"sk-[A-Za-z0-9_-]{16,}"),
    ("Atlassian", r"AT(?:ATT|CTT|BBT)3[A-Za-z0-9_=-]{16,}"),
    ("AWS", r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{12,}"),
    ("AWS Bedrock", r"ABSK[A-Za-z0-9+/]{20,}=*"),
    ("Databricks", r"dapi[a-f0-9]{32}(?:-\d)?"),
    ("DigitalOcean", r"do[opr]_v1_[a-f0-9]{16,}"),
    ("Discord", r"discord(?:app)?\.com/api/webhooks/[0-9]+/[A-Za-z0-9_-]{16,}"),
    ("Docker", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{16,}"),
    ("Doppler", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_-]{16,}"),
    ("Facebook", r"EAA[MC][A-Za-z0-9]{20,}"),
    ("Figma", r"figd_[A-Za-z0-9_-]{16,}"),
    ("Fireworks", r"fw_[A-Za-z0-9]{20,}"),
    ("Fly.io", r"fo1_[A-Za-z0-9_-]{16,}|fm[12][ar]?_[A-Za-z0-9+/]{20,}=*"),
    ("GitHub", r"gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}"),
    ("GitLab", r"gl(?:pat|dt|rt|ft|soat|oas|cbt|ptt|agent|imt|ffct)-[A-Za-z0-9_.-]{16,}"),
    ("Google", r"AIza[A-Za-z0-9_-]{16,}|ya29\.[A-Za-z0-9_-]{16,}|GOCSPX-[A-Za-z0-9_-]{16,}"),
    ("Grafana", r"glc_[A-Za-z0-9+/]{20,}=*|glsa_[A-Za-z0-9_]{20,}"),
    ("Groq", r"gsk_[A-Za-z0-9]{16,}"),
    ("HashiCorp", r"hv[sbr]\.[A-Za-z0-9_-]{16,}|[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{16,}"),
    ("Heroku", r"HRKU-[A-Za-z0-9_-]{16,}"),
    ("Hugging Face", r"hf_[A-Za-z0-9]{16,}|api_org_[A-Za-z0-9]{16,}"),
    ("JSON web token", r"eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_.-]+"),
    ("LangChain", r"lsv2_(?:pt|sk)_[A-Za-z0-9_]{16,}"),
    ("Linear", r"lin_(?:api|oauth)_[A-Za-z0-9]{16,}"),
    ("Mailgun", r"key-[a-f0-9]{32}"),
    ("New Relic", r"NR(?:AK|JS|II)-[A-Za-z0-9_-]{16,}"),
    ("Notion", r"ntn_[A-Za-z0-9]{20,}"),
    ("npm", r"npm_[A-Za-z0-9]{16,}"),
    ("NVIDIA", r"nvapi-[A-Za-z0-9_-]{16,}"),
    ("Perplexity", r"pplx-[A-Za-z0-9]{16,}"),
    ("Pinecone", r"pcsk_[A-Za-z0-9_]{16,}"),
    ("Postman", r"PMAK-[A-Za-z0-9-]{16,}"),
    (
        "private key",
        r"-----BEGIN[A-Z ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END[A-Z ]*PRIVATE KEY(?: BLOCK)?-----|$)",
    ),
    ("PyPI", r"pypi-[A-Za-z0-9_-]{16,}"),
    ("Replicate", r"r8_[A-Za-z0-9]{16,}"),
    ("RubyGems", r"rubygems_[a-f0-9]{20,}"),
    ("RunPod", r"rpa_[A-Z0-9]{20,}"),
    ("SendGrid", r"SG\.[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]+)?"),
    ("Sentry", r"sntry[su]_[A-Za-z0-9_+/=-]{16,}"),
    ("Shopify", r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{16,}"),
    (
        "Slack",
        r"xox[abeprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}|hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{16,}",
    ),
    ("Square", r"sq0[a-z]{3}-[A-Za-z0-9_-]{16,}|EAAA[A-Za-z0-9_-]{40,}"),
    ("Stripe", r"[rs]k_(?:live|test|prod)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/]{16,}"),
    ("Tailscale", r"tskey-[a-z]+-[A-Za-z0-9-]{10,}"),
    ("Telegram", r"[0-9]{6,12}:AA[A-Za-z0-9_-]{30,}"),
    ("Together", r"tgp_v1_[A-Za-z0-9_-]{16,}"),
    ("Twilio", r"SK[a-f0-9]{32}"),
    ("Vercel", r"vc[kprt]_[A-Za-z0-9]{20,}"),
    ("Weights & Biases", r"wandb_v1_[A-Za-z0-9_]{16,}"),
    ("xAI", r"xai-[A-Za-z0-9]{16,}"),
];

/// All of them, at the start of a word.
static TOKEN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let shapes: Vec<String> = SHAPES.iter().map(|(_, shape)| format!("(?:{shape})")).collect();
    super::regex(&format!(r"(?P<before>^|[^A-Za-z0-9])(?:{})", shapes.join("|")))
});

/// A run of letters and digits that nothing divides, as names of files and models never have.
static RUN: LazyLock<Option<Regex>> = LazyLock::new(|| super::regex(r"[A-Za-z0-9+]{24,}"));

/// Digits, places with capitals, and changes between kinds for each letter, that a key has at least.
const FEWEST_DIGITS: usize = 3;
const FEWEST_CAPITALS: usize = 3;
const FEWEST_CHANGES: f64 = 0.3;
/// Bits that a letter of it tells, in its own distribution; gitleaks asks for 3 to 4.
const LEAST_ENTROPY: f64 = 3.6;

/// The text without tokens.
pub(super) fn masked(text: &str) -> Cow<'_, str> {
    let steps: [super::Step<'_>; 2] = [
        (&TOKEN, &|found| format!("{}{MASK}", &found["before"])),
        (&RUN, &|found| if is_random(&found[0]) { MASK.to_owned() } else { found[0].to_owned() }),
    ];
    super::in_turn(text, &steps)
}

/// Whether a word looks drawn at random: capitals, small letters and digits mixed, and no letter preferred. What has
/// hexadecimal digits only is the checksum of something.
fn is_random(word: &str) -> bool {
    let kind = |byte: u8| match byte {
        b'0'..=b'9' => 0,
        b'a'..=b'z' => 1,
        b'A'..=b'Z' => 2,
        _ => 3,
    };
    let kinds: Vec<u8> = word.bytes().map(kind).collect();
    // Names of kernels mix small letters and digits, and have their capitals in one place.
    let capitals = kinds.chunk_by(|one, other| one == other).filter(|run| run[0] == 2).count();
    let digits = kinds.iter().filter(|kind| **kind == 0).count();
    // A small letter behind a capital is how names in camel case begin their words.
    let changes = kinds.windows(2).filter(|pair| pair[0] != pair[1] && *pair != [2, 1]).count() as f64;
    kinds.contains(&1)
        && capitals >= FEWEST_CAPITALS
        && digits >= FEWEST_DIGITS
        && changes >= FEWEST_CHANGES * kinds.len() as f64
        && entropy(word) >= LEAST_ENTROPY
}

/// Bits a letter tells, after Shannon.
fn entropy(word: &str) -> f64 {
    let mut counts = [0_u32; 256];
    word.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let share = |count: u32| f64::from(count) / word.len() as f64;
    counts.into_iter().filter(|count| *count > 0).map(|count| -share(count) * share(count).log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_compiles_and_the_list_is_sorted() {
        assert!(TOKEN.is_some() && RUN.is_some());
        for (issuer, shape) in SHAPES {
            assert!(Regex::new(shape).is_ok(), "{issuer}");
        }
        assert!(SHAPES.is_sorted_by_key(|(issuer, _)| issuer.to_lowercase()));
    }

    #[test]
    fn what_is_drawn_at_random_is_told_from_names_and_checksums() {
        for (word, random) in [
            ("b8JxT1qL5vR0nGz7KwY3mC9dHsP2uF4a", true),
            ("Zx81kQp02LmvT7yWq3RbN6cHd", true),
            ("DeepSeekV3Base0324InstructAWQ", false),
            ("d41d8cd98f00b204e9800998ecf8427e", false),
            ("nvjetsm90tst8x64x16x4x1vbzTNN", false),
            ("aaaaaaaaaaaaaaaaaaaaaaaaA1B2c3", false),
            ("20260101T120000Z20260101T130000Z", false),
        ] {
            assert_eq!(is_random(word), random, "{word}: {}", entropy(word));
        }
    }
}
