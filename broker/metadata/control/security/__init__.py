"""What the active controller decides about access rules and credentials."""
