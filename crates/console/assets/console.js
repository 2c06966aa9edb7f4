// Enhances the pages; everything works without it.
