//! Names of events by number, each with its colour.

use std::collections::HashMap;

use types::timeline::{NameId, Timeline};

use super::columns::Class;
use super::palette::Colour;

/// Names in the order they are met. One name in two colours is two.
#[derive(Default)]
pub(super) struct Names {
    numbers: HashMap<(String, u32), u32>,
    /// The same for names of a timeline, of which there are a million.
    of_timeline: HashMap<(NameId, Colour<'static>), u32>,
    order: Vec<String>,
    colours: Vec<u32>,
    classes: Vec<Class>,
}

impl Names {
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Names of another timeline follow, whose numbers mean something else.
    pub(super) fn next_timeline(&mut self) {
        self.of_timeline.clear();
    }

    pub(super) fn of(&mut self, timeline: &Timeline, name: NameId, colour: &Colour<'static>) -> u32 {
        if let Some(number) = self.of_timeline.get(&(name, *colour)) {
            return *number;
        }
        let number = self.text(timeline.name(name), colour);
        self.of_timeline.insert((name, *colour), number);
        number
    }

    pub(super) fn text(&mut self, name: &str, colour: &Colour<'_>) -> u32 {
        let class = colour.class();
        let place = self.classes.iter().position(|known| known.name == class).unwrap_or_else(|| {
            self.classes.push(Class { name: class, label: colour.label().to_owned() });
            self.classes.len() - 1
        });
        let key = (name.to_owned(), place as u32);
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        self.order.push(name.to_owned());
        self.colours.push(place as u32);
        self.numbers.insert(key, self.order.len() as u32 - 1);
        self.order.len() as u32 - 1
    }

    /// Names, the colour of each, and the colours.
    pub(super) fn finish(self) -> (Vec<String>, Vec<u32>, Vec<Class>) {
        (self.order, self.colours, self.classes)
    }
}
