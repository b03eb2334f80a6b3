//! The menu of a file's devices.

use query::DeviceSummary;
use trace::units::{Bytes, counted};
use yew::prelude::*;

use crate::hooks::ModelHandle;
use crate::model::Action;
use crate::widgets::menu::Menu;

/// Renders the menu, or plain text if there is only one device.
pub fn device_menu(model: &ModelHandle) -> Html {
    let (Some(summary), Some(device)) = (model.summary(), model.device()) else { return Html::default() };
    if summary.devices.len() == 1 {
        return html! { <span class="header-note" data-testid="device">{ name(device) }</span> };
    }
    let rows = summary.devices.iter().enumerate().map(|(i, device)| {
        let i = i as u32;
        let onclick = {
            let model = model.clone();
            Callback::from(move |_| model.dispatch(Action::SetDevice(i)))
        };
        let current = (model.view.device == i).then_some("true");
        html! {
            <button type="button" class="menu-row" key={i} aria-current={current} {onclick} data-testid="device-row">
                <span class="menu-label">{ name(device) }</span>
                <span class="menu-note">{ note(device) }</span>
            </button>
        }
    });
    html! {
        <Menu label={html! { <span class="menu-label">{ name(device) }</span> }} name="Devices" test_id="device-menu">
            { for rows }
        </Menu>
    }
}

fn name(device: &DeviceSummary) -> String {
    format!("Device {}", device.device)
}

/// Returns a note that distinguishes a device from the others.
fn note(device: &DeviceSummary) -> String {
    if device.events == 0 {
        return format!("no events · {} reserved", Bytes(device.end.reserved));
    }
    let oom = if device.ooms.is_empty() { "" } else { " · out of memory" };
    format!("{} · peak {}{oom}", counted(device.events.into(), "event"), Bytes(device.peak.requested))
}
