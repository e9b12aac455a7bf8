//! The commands that write layouts: show, generate, export, schema.

use crate::{
    args::{Common, Form, Show},
    commands::{Stop, service, wait},
    layouts, output,
};
use migd_core::{
    compose::{self, Names},
    diagnostic::Diagnostic,
    document::{Failure, LAYOUT_TEXT, LayoutText},
    layout::{
        Layout,
        write::{native, v1, v1_on},
    },
    node::Node,
    reason::Exit,
};

/// The schema that ships beside the layouts.
const SCHEMA: &str = include_str!("../../../profiles/layouts.schema.json");
/// Where editors find it once migd is installed.
const SCHEMA_LINE: &str = "# yaml-language-server: $schema=/usr/share/migd/layouts.schema.json\n";

/// `show`: one layout in either form.
pub(crate) fn show(common: &Common, ask: &Show) -> Result<Exit, Stop> {
    let library = layouts::read(&ask.file)?;
    let layout = library.find(&ask.name).map_err(|faults| Stop::of(Failure::of(faults), &library))?;
    let one = std::slice::from_ref(layout);
    let text = match (ask.form, &ask.node) {
        (Form::Native, _) => Ok(native(one)),
        (Form::V1, Some(notation)) => v1_on(layout, &layouts::node(common, notation)?),
        (Form::V1, None) => v1(one),
    };
    put(common, ask.form, &text.map_err(|faults| Stop::of(Failure::of(faults), &library))?);
    Ok(Exit::Done)
}

/// `generate`: what this node could have.
pub(crate) fn generate(common: &Common, form: Form) -> Result<Exit, Stop> {
    let node = wait(service(common)?.status())??;
    missing(&node);
    let names = match form {
        Form::Native => Names::OWN,
        Form::V1 => Names::PEER,
    };
    let layouts = compose::generate(&node, names).map_err(Failure::of)?;
    written(common, form, &layouts)
}

/// `export layout`: what this node holds.
pub(crate) fn export(common: &Common, name: &str, form: Form) -> Result<Exit, Stop> {
    let node = wait(service(common)?.status())??;
    missing(&node);
    let layout = compose::export(&node, name, form == Form::V1);
    written(common, form, std::slice::from_ref(&layout))
}

/// `schema`: the JSON schema of layout files.
pub(crate) fn schema() -> Result<Exit, Stop> {
    output::print(SCHEMA);
    Ok(Exit::Done)
}

/// Says which GPUs are not spoken of.
fn missing(node: &Node) {
    for gpu in &node.unavailable {
        let message = format!("GPU{} does not answer and is left out: {}", gpu.index, gpu.message);
        output::say(&output::note(&Diagnostic::note(gpu.reason, message)));
    }
}

fn written(common: &Common, form: Form, layouts: &[Layout]) -> Result<Exit, Stop> {
    let text = match form {
        Form::Native => SCHEMA_LINE.to_owned() + &native(layouts),
        Form::V1 => v1(layouts).map_err(Failure::of)?,
    };
    put(common, form, &text);
    Ok(Exit::Done)
}

fn put(common: &Common, form: Form, text: &str) {
    if !common.json {
        return output::print(text);
    }
    let form = match form {
        Form::Native => "native",
        Form::V1 => "v1",
    };
    output::document(&LayoutText {
        format: LAYOUT_TEXT.to_owned(),
        form: form.to_owned(),
        text: text.to_owned(),
    });
}
