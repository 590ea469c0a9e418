"""What configurations written for Java expect of it: patterns and formats. Nothing here does IO."""
