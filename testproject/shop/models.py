"""What the shop itself stores. Money that moved is in the provider's ledger, not here."""

from decimal import Decimal

from django.core.validators import MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _


class Order(models.Model):
    """One purchase. ``status`` is what the customer sees; each later status has its time."""

    class Status(models.TextChoices):
        NEW = "new", _("new")
        PAID = "paid", _("paid")
        SHIPPED = "shipped", _("shipped")
        CANCELLED = "cancelled", _("cancelled")

    customer_email = models.EmailField(_("customer e-mail"), default="customer@example.com")
    status = models.CharField(_("status"), max_length=20, choices=Status.choices, default=Status.NEW)
    total = models.DecimalField(_("total"), max_digits=12, decimal_places=2, default=Decimal("0.00"))
    payment_id = models.CharField(_("payment id"), max_length=100, blank=True)
    tracking_number = models.CharField(_("tracking number"), max_length=100, blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    paid_at = models.DateTimeField(_("paid at"), null=True, blank=True)
    shipped_at = models.DateTimeField(_("shipped at"), null=True, blank=True)
    cancelled_at = models.DateTimeField(_("cancelled at"), null=True, blank=True)

    class Meta:
        verbose_name = _("order")
        verbose_name_plural = _("orders")

    def __str__(self) -> str:
        return f"order {self.pk} ({self.status})"


class OrderLine(models.Model):
    """One article of an order."""

    order = models.ForeignKey(Order, on_delete=models.CASCADE, related_name="lines", verbose_name=_("order"))
    sku = models.CharField(_("article"), max_length=50)
    quantity = models.PositiveIntegerField(_("quantity"), default=1, validators=[MinValueValidator(1)])
    unit_price = models.DecimalField(_("unit price"), max_digits=10, decimal_places=2)

    class Meta:
        verbose_name = _("order line")
        verbose_name_plural = _("order lines")

    def __str__(self) -> str:
        return f"{self.quantity} × {self.sku}"
