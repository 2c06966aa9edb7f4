//! End-to-end scenarios over both stacks.
