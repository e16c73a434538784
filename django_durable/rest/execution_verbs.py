"""ExecutionVerbs: what people and programs do to one execution. Each is the function that code calls."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import OpenApiResponse
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from django_durable.errors import InvalidTransition
from django_durable.models import Execution
from django_durable.operators.cancel import cancel
from django_durable.operators.chain import current_run
from django_durable.operators.decide import decide
from django_durable.operators.fork import effects_after, fork
from django_durable.operators.pause import pause
from django_durable.operators.resume import resume
from django_durable.operators.retry import retry
from django_durable.operators.signal import send_signal
from django_durable.operators.update import send_update, wait_for_reply
from django_durable.payloads import encode
from django_durable.rest.bodies import CancelBody, DecideBody, ForkBody, ReasonBody, SignalBody, UpdateBody
from django_durable.rest.idempotency import idempotency_key, refuse_other_message
from django_durable.rest.representations import Forked, Message, Outcome, UpdateAnswer
from django_durable.rest.schemas import ID, IDEMPOTENT, VALUES, documented
from django_durable.rest.view import DurableViewSet

__all__ = ["ExecutionVerbs"]

MISSING = (404, 409)


class ExecutionVerbs(DurableViewSet):
    """The actor is the user; the reason goes into the execution's notes."""

    verbs: ClassVar[dict[str, str]] = {
        "signal": "signal",
        "send_update": "update",
        "cancel": "cancel",
        "retry": "retry",
        "pause": "pause",
        "resume": "resume",
        "decide": "decide",
        "fork": "fork",
    }

    @documented("Send a signal.", Message, body=SignalBody, parameters=[ID, IDEMPOTENT], refusals=[*MISSING, 422])
    @action(detail=True, methods=["post"])
    def signal(self, request: Request, pk: str) -> Response:
        body = self.body(SignalBody)
        execution = self.scope.find(pk)
        header = idempotency_key(request)
        key = body.get("dedup_key") or header
        name, payload = body["name"], body["payload"]
        message = self.checked(lambda: send_signal(execution, name, payload, dedup_key=key), "payload")
        if not body.get("dedup_key") and header is not None:
            refuse_other_message(execution.using, message, payload)
        return Response(Message({"execution": execution.pk, "message_id": message}).data)

    @documented(
        "Send an update, and wait for the reply where a timeout is given.",
        UpdateAnswer,
        body=UpdateBody,
        more={202: OpenApiResponse(UpdateAnswer, description="It is accepted, and not answered in time.")},
        parameters=[ID, IDEMPOTENT, VALUES],
        refusals=[*MISSING, 422],
        operation_id="executions_update",
    )
    @action(detail=True, methods=["post"], url_path="update", url_name="update")
    def send_update(self, request: Request, pk: str) -> Response:
        body = self.body(UpdateBody)
        execution, values = self.scope.find(pk), self.values
        header = idempotency_key(request)
        key = body.get("dedup_key") or header
        name, payload = body["name"], body["payload"]
        message = self.checked(lambda: send_update(execution, name, payload, dedup_key=key), "payload")
        if not body.get("dedup_key") and header is not None:
            refuse_other_message(execution.using, message, payload)
        answer: dict[str, Any] = {"execution": execution.pk, "message_id": message}
        if body.get("timeout") is None:
            return Response(UpdateAnswer(answer).data)
        try:
            reply = wait_for_reply(execution, name, message, timeout=body["timeout"])
        except TimeoutError:
            return Response(UpdateAnswer(answer).data, status=202)
        answer["reply"] = values.value(encode(reply, where="the reply"))
        return Response(UpdateAnswer(answer).data)

    @documented("Cancel it, after its undo steps.", Outcome, body=CancelBody, parameters=[ID], refusals=MISSING)
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        body = self.body(CancelBody)
        execution = current_run(self.scope.find(pk))
        if not cancel(execution, compensate=body["compensate"], actor=self.actor, reason=body["reason"]):
            raise InvalidTransition(f"execution {execution.pk} is {execution.status}; there is nothing to cancel")
        return self._told(execution)

    @documented("Retry what ended in failure.", Outcome, body=ReasonBody, parameters=[ID], refusals=MISSING)
    @action(detail=True, methods=["post"])
    def retry(self, request: Request, pk: str) -> Response:
        body = self.body(ReasonBody)
        execution = current_run(self.scope.find(pk))
        retry(execution, actor=self.actor, reason=body["reason"])
        return self._told(execution)

    @documented("Stop it at its next position.", Outcome, body=ReasonBody, parameters=[ID], refusals=MISSING)
    @action(detail=True, methods=["post"])
    def pause(self, request: Request, pk: str) -> Response:
        body = self.body(ReasonBody)
        execution = current_run(self.scope.find(pk))
        pause(execution, actor=self.actor, reason=body["reason"])
        return self._told(execution)

    @documented("Let it go on.", Outcome, body=ReasonBody, parameters=[ID], refusals=MISSING)
    @action(detail=True, methods=["post"])
    def resume(self, request: Request, pk: str) -> Response:
        body = self.body(ReasonBody)
        execution = current_run(self.scope.find(pk))
        resume(execution, actor=self.actor, reason=body["reason"])
        return self._told(execution)

    @documented("Approve or reject what it asks for.", Outcome, body=DecideBody, parameters=[ID], refusals=MISSING)
    @action(detail=True, methods=["post"])
    def decide(self, request: Request, pk: str) -> Response:
        body = self.body(DecideBody)
        execution = current_run(self.scope.find(pk))
        name, approved = body["name"], body["approved"]
        act = {"approved": approved, "actor": self.actor, "reason": body["reason"], "data": body["data"]}
        if not self.checked(lambda: decide(execution, name, **act), "data"):
            raise InvalidTransition(f"approval {name!r} of execution {execution.pk} is decided, or was not in time")
        return self._told(execution)

    @documented(
        "Try the rest of it again, in an execution of its own.",
        Forked,
        body=ForkBody,
        status=201,
        parameters=[ID],
        refusals=MISSING,
    )
    @action(detail=True, methods=["post"])
    def fork(self, request: Request, pk: str) -> Response:
        body = self.body(ForkBody)
        execution, position = self.scope.find(pk), body["from_position"]
        forked = fork(
            execution,
            from_position=position,
            actor=self.actor,
            reason=body["reason"],
            version=body.get("version"),
        )
        answer = {
            "id": forked.pk,
            "status": forked.status,
            "forked_from": execution.pk,
            "from_position": position,
            "effects_after": [
                {"position": mark.position, "name": mark.name} for mark in effects_after(execution, position)
            ],
        }
        address = request.build_absolute_uri(self.address(forked))
        return Response(Forked(answer).data, status=201, headers={"Location": address})

    @staticmethod
    def _told(execution: Execution[Any]) -> Response:
        return Response(Outcome({"id": execution.pk, "status": execution.status}).data)
