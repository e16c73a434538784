from decimal import Decimal

import django.core.validators
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Order",
            fields=[
                (
                    "id",
                    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                (
                    "customer_email",
                    models.EmailField(default="customer@example.com", max_length=254, verbose_name="customer e-mail"),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("new", "new"),
                            ("paid", "paid"),
                            ("shipped", "shipped"),
                            ("cancelled", "cancelled"),
                        ],
                        default="new",
                        max_length=20,
                        verbose_name="status",
                    ),
                ),
                (
                    "total",
                    models.DecimalField(
                        decimal_places=2, default=Decimal("0.00"), max_digits=12, verbose_name="total"
                    ),
                ),
                ("payment_id", models.CharField(blank=True, max_length=100, verbose_name="payment id")),
                (
                    "tracking_number",
                    models.CharField(blank=True, max_length=100, verbose_name="tracking number"),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created at")),
                ("paid_at", models.DateTimeField(blank=True, null=True, verbose_name="paid at")),
                ("shipped_at", models.DateTimeField(blank=True, null=True, verbose_name="shipped at")),
                ("cancelled_at", models.DateTimeField(blank=True, null=True, verbose_name="cancelled at")),
            ],
            options={
                "verbose_name": "order",
                "verbose_name_plural": "orders",
            },
        ),
        migrations.CreateModel(
            name="OrderLine",
            fields=[
                (
                    "id",
                    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                ("sku", models.CharField(max_length=50, verbose_name="article")),
                (
                    "quantity",
                    models.PositiveIntegerField(
                        default=1,
                        validators=[django.core.validators.MinValueValidator(1)],
                        verbose_name="quantity",
                    ),
                ),
                (
                    "unit_price",
                    models.DecimalField(decimal_places=2, max_digits=10, verbose_name="unit price"),
                ),
                (
                    "order",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="lines",
                        to="shop.order",
                        verbose_name="order",
                    ),
                ),
            ],
            options={
                "verbose_name": "order line",
                "verbose_name_plural": "order lines",
            },
        ),
    ]
