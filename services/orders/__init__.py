"""The orders service: takes orders over REST, and is the one writer of topic `orders`."""
