"""What a partition remembers of its producers: sequences, epochs, open transactions (KIP-98)."""
