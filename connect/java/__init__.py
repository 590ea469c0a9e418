"""Java's regular expressions and date formats, which configurations written for Java use.

No code here does IO."""
