"""The tables of settings as connectors import them; `connect.outcomes` has them."""

from connect.outcomes import Outcome, Outcomes, Setting, refused, same, warned

__all__ = ["Outcome", "Outcomes", "Setting", "refused", "same", "warned"]
