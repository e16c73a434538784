"""The admin, and the REST interface where its extra is installed."""

from importlib.util import find_spec

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [path("admin/", admin.site.urls)]

if find_spec("rest_framework") and find_spec("django_durable.rest") and find_spec("django_durable.rest.urls"):
    urlpatterns.append(path("durable/", include("django_durable.rest.urls")))
