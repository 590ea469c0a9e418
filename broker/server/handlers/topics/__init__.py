"""Topics: their descriptions, and the deletion of records; changes go to the controller."""
