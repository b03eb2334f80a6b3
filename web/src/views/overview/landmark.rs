//! What a right-click on the overview is about: the mark nearby, otherwise the moment itself.

use query::DeviceSummary;

use crate::model::Pin;

/// Returns the position that is meant by one at the pointer: the peak, a failure or a pin, if it lies between two positions
/// that are a few pixels away on either side.
pub fn landmark(device: &DeviceSummary, pins: &[Pin], at: u32, nearby: (u32, u32)) -> u32 {
    let failures = device.ooms.iter().map(|(position, _)| *position);
    let marks = [device.peak_position].into_iter().chain(failures).chain(pins.iter().map(|pin| pin.position));
    let near = marks.filter(|position| (nearby.0..=nearby.1).contains(position));
    near.min_by_key(|position| position.abs_diff(at)).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_nearby_are_meant_and_the_nearest_of_them() {
        let device = DeviceSummary { peak_position: 100, ooms: vec![(110, 1), (500, 1)], ..DeviceSummary::default() };
        let pins = [Pin::new(300, None, "a")];
        let meant = |at, nearby| landmark(&device, &pins, at, nearby);
        assert_eq!(meant(104, (94, 114)), 100);
        assert_eq!(meant(106, (96, 116)), 110);
        assert_eq!(meant(305, (290, 320)), 300);
        assert_eq!(meant(400, (390, 410)), 400);
    }
}
