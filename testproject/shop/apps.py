from django.apps import AppConfig


class ShopConfig(AppConfig):
    """The example application; its label is what workflow names begin with."""

    name = "testproject.shop"
    label = "shop"
