//! A node as a YAML file; unknown keys and wrong values are errors with their place.

use super::{Address, Description, Draft, Versions};
use crate::{
    machine::Unknowns,
    model::MAX_GPUS,
    table::{Gpus, Variant},
    trouble::{Trouble, did_you_mean, join},
};
use serde::{Deserialize, Deserializer, de};
use serde_yaml::{Location, Spanned};
use std::{collections::BTreeMap, fmt};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Node {
    driver: Option<Spanned<String>>,
    nvml: Option<Spanned<String>>,
    cuda: Option<u32>,
    variant: Option<Spanned<String>>,
    #[serde(default)]
    nvswitch: bool,
    privileges: Option<Spanned<String>>,
    #[serde(rename = "driver-lock")]
    driver_lock: Option<Spanned<String>>,
    #[serde(default)]
    unknowns: BTreeMap<String, Spanned<u32>>,
    gpus: Vec<Gpu>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Gpu {
    gpu: Spanned<String>,
    count: Option<Spanned<usize>>,
    product: Option<String>,
    pci: Option<Spanned<String>>,
    minor: Option<u32>,
    variant: Option<Spanned<String>>,
    uuid: Option<Spanned<String>>,
    numa: Option<u32>,
    display: Option<bool>,
    mig: Option<Geometry>,
}

/// An instance notation; YAML reads a bare `on` or `off` as a truth value.
struct Geometry(String);

impl<'de> Deserialize<'de> for Geometry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Geometry, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Geometry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("on, off or instances such as '1g@0 2g@2'")
            }

            fn visit_bool<E: de::Error>(self, on: bool) -> Result<Geometry, E> {
                Ok(Geometry(if on { "on" } else { "off" }.to_owned()))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Geometry, E> {
                match text {
                    "true" => self.visit_bool(true),
                    "false" => self.visit_bool(false),
                    text => Ok(Geometry(text.to_owned())),
                }
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// A place in the file, for messages.
struct At<'a>(&'a str);

impl At<'_> {
    fn refuse(&self, at: Location, why: impl fmt::Display) -> Trouble {
        Trouble::Input(format!("{}:{}:{}: {why}", self.0, at.line(), at.column()))
    }

    fn variant(&self, word: &Spanned<String>) -> Result<Variant, Trouble> {
        match word.value.as_str() {
            "A" => Ok(Variant::A),
            "B" => Ok(Variant::B),
            other => Err(self.refuse(word.referenced, format!("variant `{other}`; legal are A and B"))),
        }
    }

    fn version(&self, text: &Spanned<String>) -> Result<String, Trouble> {
        let parts: Vec<&str> = text.value.split('.').collect();
        let numbers = parts.iter().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
        if numbers && parts.len() >= 2 && text.value.len() < 32 {
            return Ok(text.value.clone());
        }
        Err(self.refuse(text.referenced, format!("version `{}`; it is written 580.95.05", text.value)))
    }
}

/// Reads a node file's text; `origin` stands in messages.
pub(super) fn parse(
    text: &str,
    origin: &str,
    folder_name: &str,
    notation: &str,
) -> Result<Description, Trouble> {
    let at = At(origin);
    let node: Node = serde_yaml::from_str(text).map_err(|error| explain(&at, &error))?;
    let node_variant = node.variant.as_ref().map(|word| at.variant(word)).transpose()?.unwrap_or_default();
    let privileges_real = match &node.privileges {
        None => false,
        Some(word) => match word.value.as_str() {
            "real" => true,
            "ignored" => false,
            other => {
                let why = format!("privileges `{other}`; legal are real and ignored");
                return Err(at.refuse(word.referenced, why));
            }
        },
    };
    let driver_lock_node = match &node.driver_lock {
        None => false,
        Some(word) => match word.value.as_str() {
            "gpu" => false,
            "node" => true,
            other => {
                let why = format!("driver-lock `{other}`; legal are gpu and node");
                return Err(at.refuse(word.referenced, why));
            }
        },
    };
    let mut unknowns = Vec::new();
    for (name, value) in node.unknowns {
        let names = || Unknowns::NAMES.iter().map(|(_, name, _)| *name);
        if !names().any(|known| known == name) {
            let near = did_you_mean(&name, names());
            let why = format!("no switchable answer `{name}`{near} (there are {})", join(names(), ", "));
            return Err(at.refuse(value.referenced, why));
        }
        unknowns.push((name, value.value));
    }
    let mut drafts = Vec::new();
    for gpu in node.gpus {
        gpu.drafts(&at, node_variant, &mut drafts)?;
    }
    let versions = Versions {
        driver: node.driver.map(|text| at.version(&text)).transpose()?,
        nvml: node.nvml.map(|text| at.version(&text)).transpose()?,
        cuda: node.cuda,
        nvswitch: node.nvswitch,
        privileges_real,
        driver_lock_node,
        unknowns,
    };
    let mut description = Draft::finish(drafts, versions, origin, folder_name)?;
    description.notation = notation.to_owned();
    Ok(description)
}

impl Gpu {
    fn drafts(self, at: &At<'_>, node_variant: Variant, drafts: &mut Vec<Draft>) -> Result<(), Trouble> {
        let keys = Gpus::keys();
        if !keys.contains(&self.gpu.value) {
            let near = did_you_mean(&self.gpu.value, keys.iter().map(String::as_str));
            let why = format!("no GPU `{}` in the table{near}", self.gpu.value);
            return Err(at.refuse(self.gpu.referenced, why));
        }
        let count = self.count.as_ref().map_or(1, |count| count.value);
        if let Some(given) = &self.count {
            let single = self.pci.is_some() || self.uuid.is_some() || self.minor.is_some();
            if count == 0 || count > MAX_GPUS {
                return Err(at.refuse(given.referenced, format!("count {count}; legal are 1 to {MAX_GPUS}")));
            }
            if single && count > 1 {
                let why = "count does not go with pci, minor or uuid, which name one GPU";
                return Err(at.refuse(given.referenced, why));
            }
        }
        let address = match &self.pci {
            None => None,
            Some(text) => {
                let address = text.value.parse::<Address>();
                Some(address.map_err(|why| at.refuse(text.referenced, format!("`{}`: {why}", text.value)))?)
            }
        };
        let uuid = match self.uuid {
            None => None,
            Some(text) if is_uuid(&text.value) => Some(text.value),
            Some(text) => {
                let why =
                    format!("UUID `{}`; it is written GPU- and 32 hex digits as 8-4-4-4-12", text.value);
                return Err(at.refuse(text.referenced, why));
            }
        };
        let variant = self.variant.as_ref().map(|word| at.variant(word)).transpose()?;
        let draft = Draft {
            key: self.gpu.value,
            product: self.product,
            address,
            minor: self.minor,
            variant: variant.unwrap_or(node_variant),
            uuid,
            numa: self.numa,
            display: self.display,
            mig: self.mig.map(|geometry| geometry.0),
        };
        drafts.extend(std::iter::repeat_n(draft, count));
        Ok(())
    }
}

fn is_uuid(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("GPU-") else { return false };
    let lengths = rest.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && rest.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit())
}

/// The parser's error with its place first, and the nearest name for an unknown key.
fn explain(at: &At<'_>, error: &serde_yaml::Error) -> Trouble {
    let inner = error.without_snippet();
    let place = inner.location().unwrap_or(Location::UNKNOWN);
    match inner {
        serde_yaml::Error::SerdeUnknownField { field, expected, .. } => {
            let near = did_you_mean(field, expected.iter().copied());
            at.refuse(place, format!("unknown key `{field}`{near} (keys here: {})", expected.join(", ")))
        }
        other => {
            // What the parser says may begin with the place too, and go on with lines for its own users.
            let text = other.to_string();
            at.refuse(place, text.lines().next().unwrap_or_default())
        }
    }
}
