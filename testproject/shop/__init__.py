"""A shop: orders are paid, shipped and reported by e-mail; the payment provider is outside our database."""
