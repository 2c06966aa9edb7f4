//! Boosted regression trees.

use assay_encoder::Model;

use super::error::ReaderError;
use super::tensor;

/// Columns of a node in the model file: feature, threshold, and index of the node for inputs above the threshold. A leaf has
/// [`NO_FEATURE`], its value instead of the threshold, and zero.
const NODE_COLUMNS: usize = 3;
const NO_FEATURE: f32 = -1.0;
/// Columns of a tree: its output, and the index of its root.
const TREE_COLUMNS: usize = 2;

/// Trees whose leaves are added up for each output, in the order of the file, so that the sum is bit-identical on every machine.
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
        name: &str,
        inputs: usize,
        outputs: usize,
    ) -> Result<Self, ReaderError> {
        let table = |part: &str, columns: usize| {
            let name = format!("{name}.{part}");
            let rows = model.tensor_shape(&name).and_then(|shape| shape.first().copied());
            tensor(model, &name, &[rows.unwrap_or_default(), columns])
        };
        let (nodes, _) = table("nodes", NODE_COLUMNS)?.as_chunks();
        let (trees, _) = table("trees", TREE_COLUMNS)?.as_chunks();
        let refused = |part: &str| ReaderError::Values(format!("{name}.{part}"));
        Ok(Self {
            nodes: read_nodes(nodes, inputs).ok_or_else(|| refused("nodes"))?,
            trees: read_trees(trees, nodes.len(), outputs).ok_or_else(|| refused("trees"))?,
        })
    }

    /// Adds to each output the leaves of its trees; `outputs` may be only the first ones.
    pub(super) fn add_to(&self, outputs: &mut [f64], inputs: &[f32]) {
        for (output, root) in &self.trees {
            if let Some(output) = outputs.get_mut(*output) {
                *output += f64::from(self.leaf(*root, inputs));
            }
        }
    }

    /// The leaf that the inputs lead to. A path only leads to later nodes, and the last one is a leaf.
    fn leaf(&self, root: usize, inputs: &[f32]) -> f32 {
        let mut node = root;
        loop {
            match self.nodes.get(node) {
                Some(Node::Split { feature, threshold, above }) => {
                    let is_above = inputs.get(*feature).is_some_and(|input| input > threshold);
                    node = if is_above { *above } else { node + 1 };
                }
                Some(Node::Leaf(value)) => return *value,
                None => return 0.0,
            }
        }
    }
}

/// `None` if a number is not finite, or names an input or a node that does not exist. A split leads to later nodes only, so that
/// each path ends.
fn read_nodes(rows: &[[f32; NODE_COLUMNS]], inputs: usize) -> Option<Vec<Node>> {
    let read = |(node, [feature, number, above]): (usize, &[f32; NODE_COLUMNS])| {
        if !number.is_finite() {
            return None;
        }
        if *feature == NO_FEATURE {
            return Some(Node::Leaf(*number));
        }
        let above = index(*above, rows.len()).filter(|above| *above > node)?;
        Some(Node::Split { feature: index(*feature, inputs)?, threshold: *number, above })
    };
    rows.iter().enumerate().map(read).collect()
}

/// `None` if an output or a root does not exist, or a root does not come after the one before. Roots ascend, which bounds the
/// number of trees by that of the nodes.
fn read_trees(rows: &[[f32; TREE_COLUMNS]], nodes: usize, outputs: usize) -> Option<Vec<(usize, usize)>> {
    let read = |[output, root]: &[f32; TREE_COLUMNS]| Some((index(*output, outputs)?, index(*root, nodes)?));
    let trees: Vec<_> = rows.iter().map(read).collect::<Option<_>>()?;
    trees.is_sorted_by(|(_, root), (_, next)| root < next).then_some(trees)
}

/// Numbers below this are exact as 32-bit floating point.
const EXACT_BELOW: usize = 1 << 24;

/// A whole number below `limit`, which is [`EXACT_BELOW`] at most.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "checked"
)]
fn index(number: f32, limit: usize) -> Option<usize> {
    (limit <= EXACT_BELOW && number.fract() == 0.0 && number >= 0.0 && number < limit as f32)
        .then_some(number as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feature 1 above 0.5, then feature 0 above 2.
    const NODES: [[f32; NODE_COLUMNS]; 5] =
        [[1.0, 0.5, 2.0], [-1.0, 1.0, 0.0], [0.0, 2.0, 4.0], [-1.0, 3.0, 0.0], [-1.0, 4.0, 0.0]];

    fn nodes(rows: &[[f32; NODE_COLUMNS]]) -> Option<Vec<Node>> {
        read_nodes(rows, 2)
    }

    fn trees(rows: &[[f32; TREE_COLUMNS]]) -> Option<Vec<(usize, usize)>> {
        read_trees(rows, NODES.len(), 2)
    }

    #[test]
    fn leaves_of_each_output_are_added_up() {
        let rows = [[0.0, 0.0], [1.0, 2.0], [1.0, 4.0]];
        let trees = Trees { nodes: nodes(&NODES).unwrap(), trees: trees(&rows).unwrap() };
        for (inputs, expected) in
            [([0.0, 0.5], [11.0, 27.0]), ([2.0, 0.6], [13.0, 27.0]), ([2.1, 0.6], [14.0, 28.0])]
        {
            let mut outputs = [10.0, 20.0];
            trees.add_to(&mut outputs, &inputs);
            assert_eq!(outputs, expected);
        }
    }

    #[test]
    fn impossible_nodes_are_refused() {
        for (node, column, number) in
            [(0, 0, 2.0), (0, 0, 0.5), (0, 0, -2.0), (0, 1, f32::NAN), (1, 1, f32::INFINITY)]
        {
            let mut rows = NODES;
            rows[node][column] = number;
            assert!(nodes(&rows).is_none(), "{number} in {rows:?}");
        }
        for above in [0.0, 5.0, 1.5, f32::NAN] {
            let mut rows = NODES;
            rows[0][2] = above;
            assert!(nodes(&rows).is_none(), "{above}: the path would not end");
        }
    }

    #[test]
    fn impossible_trees_are_refused() {
        for tree in [[2.0, 0.0], [0.0, 5.0], [0.0, -1.0]] {
            assert!(trees(&[tree]).is_none(), "{tree:?}");
        }
        for second in [0.0, 2.0] {
            assert!(trees(&[[0.0, 2.0], [0.0, second]]).is_none(), "a second tree at {second}");
        }
    }

    #[test]
    fn numbers_that_are_not_exact_are_refused() {
        assert_eq!(index(1.0, EXACT_BELOW), Some(1));
        assert_eq!(index(1.0, EXACT_BELOW + 1), None);
    }
}
