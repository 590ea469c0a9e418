"""Topics: which there are, and what is deleted from them; changes go to the controller."""
