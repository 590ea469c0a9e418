"""Email: sends a customer one mail when an order is paid, shipped, failed or cancelled."""
