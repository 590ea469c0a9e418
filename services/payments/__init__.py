"""Payments: charges each validated order once; gives back what a cancelled one had paid."""
