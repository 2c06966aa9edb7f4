//! Prefix search over the pieces of a vocabulary.

/// A trie. Nodes are numbered from the root, 0; the edges of all nodes are in one open-addressed hash table.
pub(crate) struct Trie {
    /// The size is a power of two, the load factor at most one half.
    edges: Vec<Edge>,
    /// The piece that ends at each node.
    pieces: Vec<Option<u32>>,
}

#[derive(Clone, Copy)]
struct Edge {
    parent: u32,
    byte: u8,
    /// 0 marks a free slot: the root is never a child.
    child: u32,
}

const FREE: Edge = Edge { parent: 0, byte: 0, child: 0 };

impl Default for Trie {
    fn default() -> Self {
        Self { edges: vec![FREE; 1024], pieces: vec![None] }
    }
}

impl Trie {
    /// Of duplicate pieces the first stays.
    pub(crate) fn insert(&mut self, piece: &[u8], id: u32) {
        let mut node = 0;
        for &byte in piece {
            node = self.child_or_new(node, byte);
        }
        self.pieces[node as usize].get_or_insert(id);
    }

    /// Calls `found` with the length and the id of each piece that `bytes` begins with, the shortest first.
    #[inline]
    pub(crate) fn prefixes(&self, bytes: &[u8], mut found: impl FnMut(usize, u32)) {
        let mut node = 0;
        for (index, &byte) in bytes.iter().enumerate() {
            node = self.edges[self.slot(node, byte)].child;
            if node == 0 {
                return;
            }
            if let Some(id) = self.pieces[node as usize] {
                found(index + 1, id);
            }
        }
    }

    fn child_or_new(&mut self, parent: u32, byte: u8) -> u32 {
        let slot = self.slot(parent, byte);
        if self.edges[slot].child != 0 {
            return self.edges[slot].child;
        }
        // Never fails: memory ends long before 2³² nodes.
        let child = u32::try_from(self.pieces.len()).unwrap_or(0);
        self.pieces.push(None);
        self.edges[slot] = Edge { parent, byte, child };
        if self.pieces.len() * 2 > self.edges.len() {
            self.grow();
        }
        child
    }

    fn grow(&mut self) {
        let larger = vec![FREE; self.edges.len() * 2];
        for edge in std::mem::replace(&mut self.edges, larger).into_iter().filter(|edge| edge.child != 0) {
            let slot = self.slot(edge.parent, edge.byte);
            self.edges[slot] = edge;
        }
    }

    /// Index of the edge, or of the free slot for it.
    #[inline]
    fn slot(&self, parent: u32, byte: u8) -> usize {
        let mask = self.edges.len() - 1;
        let key = u64::from(parent) << 8 | u64::from(byte);
        // Multiplication by 2⁶⁴ / φ spreads keys that lie close to each other.
        let mut slot = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        loop {
            let edge = self.edges[slot];
            if edge.child == 0 || (edge.parent == parent && edge.byte == byte) {
                return slot;
            }
            slot = (slot + 1) & mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_come_shortest_first_and_duplicates_keep_first_id() {
        let mut trie = Trie::default();
        for (id, piece) in ["a", "abc", "ab", "b", "abc", "é"].into_iter().enumerate() {
            trie.insert(piece.as_bytes(), u32::try_from(id).unwrap());
        }
        let mut found = Vec::new();
        trie.prefixes("abcd".as_bytes(), |length, id| found.push((length, id)));
        assert_eq!(found, [(1, 0), (2, 2), (3, 1)]);
    }

    #[test]
    fn all_pieces_are_found_after_growth() {
        let mut trie = Trie::default();
        for id in 0..20_000_u32 {
            trie.insert(format!("{id}.").as_bytes(), id);
        }
        for id in 0..20_000 {
            let mut found = Vec::new();
            trie.prefixes(format!("{id}. and more").as_bytes(), |_, id| found.push(id));
            assert_eq!(found, [id]);
        }
    }
}
