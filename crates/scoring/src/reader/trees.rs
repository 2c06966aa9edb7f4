//! Boosted regression trees.

use assay_encoder::Model;

use super::error::ReaderError;
use super::tensor;

/// Numbers of a node in the model file: feature, threshold, and place of the node for inputs above the threshold. A leaf has
/// [`NO_FEATURE`], its value in place of the threshold, and zero.
const NODE_NUMBERS: usize = 3;
const NO_FEATURE: f32 = -1.0;
/// Numbers of a tree: its output, and the place of its root.
const TREE_NUMBERS: usize = 2;

/// Trees whose leaves are added up for each output, in the order of the file: the same bytes on every machine.
#[derive(Debug)]
pub(super) struct Trees {
    /// The nodes of all trees.
    nodes: Vec<Node>,
    /// Output and root of each tree.
    trees: Vec<(usize, usize)>,
}

#[derive(Debug, Clone, Copy)]
enum Node {
    /// The next node is the following one for inputs up to the threshold, `above` for others.
    Split {
        feature: usize,
        threshold: f32,
        above: usize,
    },
    Leaf(f32),
}

impl Trees {
    /// The tensors `NAME.nodes` and `NAME.trees`, a row for each.
    pub(super) fn read(
        model: &Model,
        name: &'static str,
        inputs: usize,
        outputs: usize,
    ) -> Result<Self, ReaderError> {
        let table = |part: &str, columns: usize| {
            let name = format!("{name}.{part}");
            let rows = model.tensor_shape(&name).and_then(|shape| shape.first().copied());
            tensor(model, &name, &[rows.unwrap_or_default(), columns])
        };
        let (nodes, _) = table("nodes", NODE_NUMBERS)?.as_chunks();
        let (trees, _) = table("trees", TREE_NUMBERS)?.as_chunks();
        Self::of(nodes, trees, inputs, outputs).ok_or(ReaderError::Values(name))
    }

    /// `None` if a number is not finite, or tells of an input, an output or a node that does not exist.
    fn of(
        nodes: &[[f32; NODE_NUMBERS]],
        trees: &[[f32; TREE_NUMBERS]],
        inputs: usize,
        outputs: usize,
    ) -> Option<Self> {
        let read = nodes.iter().enumerate().map(|(place, row)| Node::read(row, inputs, place..nodes.len()));
        let roots =
            trees.iter().map(|[output, root]| Some((index(*output, outputs)?, index(*root, nodes.len())?)));
        Some(Self { nodes: read.collect::<Option<_>>()?, trees: roots.collect::<Option<_>>()? })
    }

    /// Adds to each output the leaves of its trees.
    pub(super) fn add_to(&self, outputs: &mut [f64], inputs: &[f32]) {
        for (output, root) in &self.trees {
            if let Some(output) = outputs.get_mut(*output) {
                *output += f64::from(self.leaf(*root, inputs));
            }
        }
    }

    /// The leaf that the inputs lead to. A path only leads to later nodes, and the last one is a leaf.
    fn leaf(&self, root: usize, inputs: &[f32]) -> f32 {
        let mut place = root;
        loop {
            match self.nodes.get(place) {
                Some(Node::Split { feature, threshold, above }) => {
                    let is_above = inputs.get(*feature).is_some_and(|input| input > threshold);
                    place = if is_above { *above } else { place + 1 };
                }
                Some(Node::Leaf(value)) => return *value,
                None => return 0.0,
            }
        }
    }
}

impl Node {
    /// `places`: the place of this node, and the number of nodes. A node that leads to a later one is not the last.
    fn read(
        [feature, number, above]: &[f32; NODE_NUMBERS],
        inputs: usize,
        places: std::ops::Range<usize>,
    ) -> Option<Self> {
        if !number.is_finite() {
            return None;
        }
        if *feature == NO_FEATURE {
            return Some(Self::Leaf(*number));
        }
        let above = index(*above, places.end).filter(|above| *above > places.start)?;
        Some(Self::Split { feature: index(*feature, inputs)?, threshold: *number, above })
    }
}

/// A whole number below `limit`, which is below 2²⁴, so that it is exact.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "checked"
)]
fn index(number: f32, limit: usize) -> Option<usize> {
    (number.fract() == 0.0 && number >= 0.0 && number < limit as f32).then_some(number as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feature 1 above 0.5, then feature 0 above 2.
    const NODES: [[f32; NODE_NUMBERS]; 5] =
        [[1.0, 0.5, 2.0], [-1.0, 1.0, 0.0], [0.0, 2.0, 4.0], [-1.0, 3.0, 0.0], [-1.0, 4.0, 0.0]];

    fn trees(nodes: &[[f32; NODE_NUMBERS]], trees: &[[f32; TREE_NUMBERS]]) -> Option<Trees> {
        Trees::of(nodes, trees, 2, 2)
    }

    #[test]
    fn leaves_of_each_output_are_added_up() {
        let trees = trees(&NODES, &[[0.0, 0.0], [1.0, 0.0], [1.0, 2.0]]).unwrap();
        for (inputs, expected) in
            [([0.0, 0.5], [11.0, 24.0]), ([2.0, 0.6], [13.0, 26.0]), ([2.1, 0.6], [14.0, 28.0])]
        {
            let mut outputs = [10.0, 20.0];
            trees.add_to(&mut outputs, &inputs);
            assert_eq!(outputs, expected);
        }
    }

    #[test]
    fn impossible_numbers_are_refused() {
        for (node, place, number) in
            [(0, 0, 2.0), (0, 0, 0.5), (0, 0, -2.0), (0, 1, f32::NAN), (1, 1, f32::INFINITY)]
        {
            let mut nodes = NODES;
            nodes[node][place] = number;
            assert!(trees(&nodes, &[]).is_none(), "{number} in {nodes:?}");
        }
        for above in [0.0, 5.0, 1.5, f32::NAN] {
            let mut nodes = NODES;
            nodes[0][2] = above;
            assert!(trees(&nodes, &[]).is_none(), "{above}: the path would not end");
        }
        for tree in [[2.0, 0.0], [0.0, 5.0], [0.0, -1.0]] {
            assert!(trees(&NODES, &[tree]).is_none(), "{tree:?}");
        }
    }
}
