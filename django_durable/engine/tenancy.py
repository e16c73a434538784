"""Tenancy: whether a tenant's plane still takes its work, asked in the accepting statement itself."""

from __future__ import annotations

from django.db import connections

from django_durable.models import TenantEpoch
from django_durable.sql import Sql, build, field_of, is_postgres, value


def is_here(using: str, tenant: str) -> Sql:
    """Nothing is accepted for a tenant that is leaving: its row's lock orders whoever asks and the move."""
    if not tenant:
        return Sql("1 = 1")
    connection = connections[using]
    lock = " FOR SHARE" if is_postgres(connection) else ""
    return build(
        f"COALESCE((SELECT m.moved_to FROM {TenantEpoch._meta.db_table} m WHERE m.tenant = {{tenant}}{lock}), '')"
        " = ''",
        tenant=value(connection, field_of(TenantEpoch, "tenant"), tenant),
    )
