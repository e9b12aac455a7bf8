//! What a person names on the command line: a GPU, a profile of it, an instance in it.

use crate::{
    diagnostic::Diagnostic,
    layout::Name,
    near,
    node::{Gpu, GpuInstance, Node},
    profile::GiProfile,
    reason::Reason,
    target::short_model,
};

/// The GPU with this index, UUID or PCI address.
///
/// # Errors
/// `gpu-unknown` with the GPUs there are; the reason of a GPU that is there and does not answer.
pub fn gpu<'n>(node: &'n Node, text: &str) -> Result<&'n Gpu, Diagnostic> {
    let pci = text.parse().ok();
    let named = |gpu: &&Gpu| {
        gpu.index.to_string() == text || gpu.uuid.0.eq_ignore_ascii_case(text) || pci == Some(gpu.pci)
    };
    if let Some(gpu) = node.gpus.iter().find(named) {
        return Ok(gpu);
    }
    let silent = node.unavailable.iter().find(|gpu| {
        gpu.index.to_string() == text
            || gpu.uuid.as_ref().is_some_and(|uuid| uuid.0.eq_ignore_ascii_case(text))
            || pci.is_some() && gpu.pci == pci
    });
    if let Some(gpu) = silent {
        return Err(Diagnostic::error(gpu.reason, gpu.message.clone()).on_gpu(gpu.index));
    }
    let names: Vec<String> = node
        .gpus
        .iter()
        .flat_map(|gpu| [gpu.index.to_string(), gpu.uuid.to_string(), gpu.pci.to_string()])
        .collect();
    let list: Vec<String> = node
        .gpus
        .iter()
        .map(|gpu| format!("{} ({} at {})", gpu.index, short_model(&gpu.model), gpu.pci))
        .collect();
    let near = if text.len() > 3 { near::words(text, names.iter().map(String::as_str)) } else { Vec::new() };
    let fault = Diagnostic::error(Reason::GpuUnknown, format!("this node has no GPU '{text}'"));
    let help = if list.is_empty() {
        "no GPU of this node answers".to_owned()
    } else {
        format!("name it by index, UUID or PCI address: {}", list.join(", "))
    };
    Err(fault.near(near).help(help))
}

/// The profile of this GPU that is called so: `3g.40gb`, or by its slices `3g`, `1g+me`.
///
/// # Errors
/// `mig-unsupported`, `driver-too-old` where nobody knows the GPU's profiles, `profile-malformed`,
/// `profile-unknown`.
pub fn profile<'g>(gpu: &'g Gpu, text: &str) -> Result<&'g GiProfile, Diagnostic> {
    let model = short_model(&gpu.model);
    let fault = |reason, message: String| Diagnostic::error(reason, message).on_gpu(gpu.index);
    if gpu.mig.is_none() {
        return Err(fault(Reason::MigUnsupported, format!("{model} cannot do MIG")));
    }
    if gpu.profiles.is_empty() {
        let message = format!(
            "nobody knows the profiles of {model}: its driver lists none and the table does not have it"
        );
        return Err(fault(Reason::DriverTooOld, message).help("turn MIG on first, then ask again"));
    }
    let names = || gpu.profiles.iter().map(|profile| profile.name);
    let list: Vec<String> = names().map(|name| name.to_string()).collect();
    let help = format!("its profiles are {}", list.join(", "));
    let slices = || gpu.profiles.iter().filter_map(|profile| Name::by_slices(profile, &gpu.profiles));
    let message = format!("{model} has no profile '{text}'");
    let name = match text.parse::<Name>() {
        // A compute instance is no profile to ask for a place on the GPU.
        Ok(name) if name.compute().is_none() => name,
        _ => {
            let shorts: Vec<String> = slices().map(|name| name.to_string()).collect();
            let near = near::words(text, shorts.iter().chain(&list).map(String::as_str));
            return Err(fault(Reason::ProfileMalformed, message).near(near).help(help));
        }
    };
    if let Some(profile) = name.find(&gpu.profiles) {
        return Ok(profile);
    }
    let near = match name {
        Name::Exact(name) => near::profiles(name, names()),
        Name::Slices(_) => {
            let shorts: Vec<String> = slices().map(|name| name.to_string()).collect();
            near::words(text, shorts.iter().map(String::as_str))
        }
    };
    Err(fault(Reason::ProfileUnknown, message).near(near).help(help))
}

/// `3g.20gb@4` as profile and start; without `@` no start.
///
/// # Errors
/// `usage-invalid` if what follows `@` is no start.
pub fn at(text: &str) -> Result<(&str, Option<u32>), Diagnostic> {
    let Some((name, start)) = text.split_once('@') else { return Ok((text, None)) };
    // As status prints it, with the size, it is understood too.
    let digits = start.split_once(':').map_or(start, |(start, _)| start);
    let start = digits.parse().map_err(|_| {
        let message = format!("'{text}' has no start after '@'");
        Diagnostic::error(Reason::UsageInvalid, message).help("write it as 3g.20gb@4: profile @ memory slice")
    })?;
    Ok((name.trim_end(), Some(start)))
}

/// The instance of this GPU that is called so: by place `@4`, by profile and place `3g.20gb@4` or `3g@4`, or by
/// the UUID of a MIG device in it.
///
/// # Errors
/// `instance-unknown` with the instances there are.
pub fn instance<'g>(gpu: &'g Gpu, text: &str) -> Result<&'g GpuInstance, Diagnostic> {
    let by_uuid = |instance: &&GpuInstance| {
        instance.compute.iter().any(|c| c.uuid.as_ref().is_some_and(|uuid| uuid.eq_ignore_ascii_case(text)))
    };
    let by_place = |instance: &&GpuInstance| {
        let Some((name, start)) = text.split_once('@') else { return false };
        let short = format!("{}g{}", instance.profile.slices, instance.profile.attribute.suffix());
        let named = name.is_empty() || name == instance.profile.to_string() || name == short;
        let start = start.split_once(':').map_or(start, |(start, _)| start);
        named && start.parse() == Ok(instance.placement.start)
    };
    let mut instances = gpu.instances.iter();
    instances.find(|instance| by_uuid(instance) || by_place(instance)).ok_or_else(|| {
        let list: Vec<String> =
            gpu.instances.iter().map(|i| format!("{}@{}", i.profile, i.placement.start)).collect();
        let fault = Diagnostic::error(
            Reason::InstanceUnknown,
            format!("{} has no instance '{text}'", short_model(&gpu.model)),
        );
        let help = match list.as_slice() {
            [] => "it holds none".to_owned(),
            list => format!("it holds {}", list.join(", ")),
        };
        let near = near::words(text, list.iter().map(String::as_str));
        fault.on_gpu(gpu.index).near(near).help(help)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{gpu as a_gpu, holding, lost, nodes, plain_gpu};
    use rstest::rstest;

    #[test]
    fn a_gpu_is_found_by_index_uuid_and_address_in_any_spelling() {
        let node = nodes("a100-40gb", 3);
        let uuid = node.gpus[2].uuid.to_string();
        let lower = uuid.to_lowercase();
        for text in ["2", &uuid, &lower, "0000:17:00.0", "00000000:17:00.0"] {
            assert_eq!(gpu(&node, text).unwrap().index, 2, "{text}");
        }
    }

    #[rstest]
    #[case("3")]
    #[case("0000:18:00.0")]
    #[case("GPU-1")]
    #[case("-1")]
    #[case("")]
    fn a_gpu_that_is_not_there_is_told_with_those_that_are(#[case] text: &str) {
        let fault = gpu(&nodes("a100-40gb", 3), text).unwrap_err();
        assert_eq!(fault.reason, Reason::GpuUnknown);
        assert!(fault.help.unwrap().contains("2 (A100-SXM4-40GB at 0000:17:00.0)"));
    }

    #[test]
    fn a_gpu_that_does_not_answer_says_why() {
        let mut node = nodes("a100-40gb", 1);
        node.unavailable.push(lost(1));
        assert_eq!(gpu(&node, "1").unwrap_err().reason, Reason::GpuLost);
    }

    #[rstest]
    #[case("a100-40gb", "3g", "3g.20gb")]
    #[case("a100-40gb", "3g.20gb", "3g.20gb")]
    #[case("a100-40gb", "1g", "1g.5gb")]
    #[case("a100-40gb", "1g.10gb", "1g.10gb")]
    #[case("a100-40gb", "1g+me", "1g.5gb+me")]
    #[case("a100-40gb", "1g.double", "1g.10gb")]
    #[case("rtx-pro-6000-blackwell-96gb", "1g+me.all", "1g.24gb+me.all")]
    #[case("rtx-pro-6000-blackwell-96gb", "1g-me", "1g.24gb-me")]
    fn a_profile_is_found_by_name_and_by_slices(#[case] key: &str, #[case] text: &str, #[case] name: &str) {
        assert_eq!(profile(&a_gpu(key, 0), text).unwrap().name.to_string(), name);
    }

    /// The same wish on an A100 of 80 GB is another name: the nearest is told.
    #[rstest]
    #[case("2g.10gb", Reason::ProfileUnknown, "2g.20gb")]
    #[case("3g.20gb", Reason::ProfileUnknown, "3g.40gb")]
    #[case("1g.5gb", Reason::ProfileUnknown, "1g.10gb")]
    #[case("5g", Reason::ProfileUnknown, "1g")]
    #[case("3G", Reason::ProfileMalformed, "3g")]
    #[case("3g.40", Reason::ProfileMalformed, "3g.40gb")]
    fn a_profile_that_is_not_there_names_the_nearest(
        #[case] text: &str,
        #[case] reason: Reason,
        #[case] near: &str,
    ) {
        let fault = profile(&a_gpu("a100-80gb", 0), text).unwrap_err();
        assert_eq!(fault.reason, reason, "{fault:?}");
        assert!(fault.near.iter().any(|n| n == near), "{fault:?}");
    }

    #[test]
    fn a_gpu_without_mig_has_no_profile() {
        assert_eq!(profile(&plain_gpu(0), "1g").unwrap_err().reason, Reason::MigUnsupported);
    }

    #[test]
    fn an_instance_is_found_by_place_name_and_uuid() {
        let gpu = holding(a_gpu("a100-40gb", 0), "1g@0 3g@4:2c+1c");
        for text in ["@4", "@4:4", "3g@4", "3g.20gb@4", "3g.20gb@4:4", "MIG-0-4-1", "mig-0-4-0"] {
            assert_eq!(instance(&gpu, text).unwrap().placement.start, 4, "{text}");
        }
        for text in ["@1", "2g@4", "3g", "", "MIG-0-4-2", "3g@x"] {
            let fault = instance(&gpu, text).unwrap_err();
            assert_eq!(fault.reason, Reason::InstanceUnknown, "{text}");
            assert!(fault.help.unwrap().contains("1g.5gb@0, 3g.20gb@4"));
        }
    }

    #[test]
    fn a_start_is_read_with_and_without_its_size() {
        assert_eq!(at("3g").unwrap(), ("3g", None));
        assert_eq!(at("3g@4").unwrap(), ("3g", Some(4)));
        assert_eq!(at("3g.20gb @4:4").unwrap(), ("3g.20gb", Some(4)));
        for text in ["3g@", "3g@x", "3g@-1", "@"] {
            assert_eq!(at(text).unwrap_err().reason, Reason::UsageInvalid, "{text}");
        }
    }
}
