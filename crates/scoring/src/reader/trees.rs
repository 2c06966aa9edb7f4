//! Boosted trees: from a conversation in numbers to scores, states and solvers.

use super::file::{ModelError, ModelFile};

/// A node: a leaf with a value, or a question with two nodes behind it.
#[derive(Debug, Clone, Copy)]
struct Node {
    /// Which number is asked for; none in a leaf.
    feature: Option<u32>,
    /// Numbers up to this go left.
    threshold: f32,
    left: u32,
    right: u32,
    value: f32,
}

/// Trees, each of which adds to one output.
#[derive(Debug)]
pub(super) struct Trees {
    nodes: Vec<Node>,
    /// The first node of each tree and the output that it adds to.
    roots: Vec<(u32, u32)>,
    /// What each output begins with.
    base: Vec<f32>,
}

const LEAF: u32 = u32::MAX;

impl Trees {
    /// The tables `trees.*` of the file, for so many numbers and outputs.
    pub(super) fn read(file: &ModelFile<'_>, features: usize, outputs: usize) -> Result<Self, ModelError> {
        let asked = file.u32("trees.feature", None)?;
        let count = asked.len();
        let thresholds = file.f32("trees.threshold", count)?;
        let values = file.f32("trees.value", count)?;
        let (left, right) = (file.u32("trees.left", Some(count))?, file.u32("trees.right", Some(count))?);
        let mut nodes = Vec::with_capacity(count);
        for (index, feature) in asked.iter().enumerate() {
            let at = |table: &[u32]| table.get(index).copied().unwrap_or(LEAF);
            let number = |table: &[f32]| table.get(index).copied().unwrap_or(0.0);
            let node = Node {
                feature: (*feature != LEAF).then_some(*feature),
                threshold: number(&thresholds),
                left: at(&left),
                right: at(&right),
                value: number(&values),
            };
            // Children stand behind their parents, so that no walk goes in a circle.
            let behind = |child: u32| child as usize > index && (child as usize) < count;
            if node.feature.is_some_and(|feature| feature as usize >= features || !behind(node.left) || !behind(node.right)) {
                return Err(ModelError::Values("trees.feature"));
            }
            nodes.push(node);
        }
        let roots = file.u32("trees.root", None)?;
        let adds_to = file.u32("trees.output", Some(roots.len()))?;
        let sound = roots.iter().all(|root| (*root as usize) < count)
            && adds_to.iter().all(|output| (*output as usize) < outputs);
        if !sound {
            return Err(ModelError::Values("trees.root"));
        }
        Ok(Self { nodes, roots: roots.into_iter().zip(adds_to).collect(), base: file.f32("trees.base", outputs)? })
    }

    /// The outputs for these numbers. Sums in the order of the trees: the same bytes on every machine.
    pub(super) fn outputs(&self, features: &[f32]) -> Vec<f64> {
        let mut outputs: Vec<f64> = self.base.iter().map(|base| f64::from(*base)).collect();
        for (root, output) in &self.roots {
            if let Some(sum) = outputs.get_mut(*output as usize) {
                *sum += self.leaf(*root, features);
            }
        }
        outputs
    }

    fn leaf(&self, root: u32, features: &[f32]) -> f64 {
        let mut at = root;
        while let Some(node) = self.nodes.get(at as usize) {
            let Some(feature) = node.feature else { return f64::from(node.value) };
            let value = features.get(feature as usize).copied().unwrap_or(0.0);
            at = if value <= node.threshold { node.left } else { node.right };
        }
        0.0
    }
}
