"""The active controller with what it touches: who asks it, through what, and what it answers."""
