"""Orders in the admin, their lines on the same page."""

from typing import TYPE_CHECKING

from django.contrib import admin

from testproject.shop.models import Order, OrderLine

if TYPE_CHECKING:
    LineInline = admin.TabularInline[OrderLine, Order]
    OrderBase = admin.ModelAdmin[Order]
else:
    LineInline, OrderBase = admin.TabularInline, admin.ModelAdmin


class OrderLineInline(LineInline):
    """The articles of an order."""

    model = OrderLine
    extra = 0


@admin.register(Order)
class OrderAdmin(OrderBase):
    """What the shop's staff sees of an order."""

    list_display = ["id", "customer_email", "status", "total", "payment_id", "shipped_at"]
    list_filter = ["status"]
    inlines = [OrderLineInline]
