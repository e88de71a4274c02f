"""Operations: name, input and output models, required right and implementation; error codes."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Generic, Self, TypeVar, get_type_hints

import pydantic
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticSerializationError

from alma.errors import (
    ALMAError,
    ConfigurationError,
    ConflictError,
    NotFoundError,
    PermissionDeniedError,
    ProviderError,
    RefusedError,
    RetrievalError,
    ScopeViolationError,
    StorageError,
    ValidationError,
)
from alma.memory.audit import request_context
from alma.model.common import LONGEST_TEXT
from alma.model.fields import LONGEST_NAME, JsonObject, Refused, check_text
from alma.operations.access import Caller, Right

Name = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_TEXT)]
Prose = Annotated[str, StringConstraints(max_length=LONGEST_TEXT)]
Share = Annotated[float, Field(ge=0, le=1)]
Limit = Annotated[int, Field(ge=1, le=100)]
ASKING_USER = Field(None, description="The user who asks; private memories are visible to their user only.")

# JSON without NaN would turn such a value into null, which means "not given".
_ANYTHING = pydantic.TypeAdapter(Any, config=ConfigDict(ser_json_inf_nan="constants"))


class Input(BaseModel):
    """The input of an operation; unknown fields and implicit type conversions are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class InProject(Input):
    """The input of an operation inside a project."""

    project_id: Name | None = Field(None, description="The project; default: the configured one.")


class Output(BaseModel):
    """The output of an operation; records have the fields of the model."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    @classmethod
    def from_result(cls, result: object) -> Self:
        """The output with the attributes of a result; fields of other names keep their defaults."""
        return cls.model_validate(result, from_attributes=True)


class Hinted(Output):
    """An output about an agent; `Operation.perform` fills in the hint."""

    hint: str = Field(default="", description="For an agent without memories: the known agent that was probably meant.")


class Face(StrEnum):
    """An interface through which ALMA is used."""

    CLI = "cli"
    MCP = "mcp"
    REST = "rest"


EVERY_FACE = frozenset(Face)

In = TypeVar("In", bound=Input)
Out = TypeVar("Out", bound=Output)


@dataclass(frozen=True, eq=False)
class Operation(Generic[In, Out]):
    """One operation, the same for every interface."""

    name: str
    group: str
    right: Right
    run: Callable[[Caller, In], Out]
    input: type[In]
    output: type[Out]
    summary: str
    description: str
    example: JsonObject = field(default_factory=dict)
    faces: frozenset[Face] = EVERY_FACE
    idempotent: bool = False
    destructive: bool = False
    takes_long: bool = False

    @property
    def read_only(self) -> bool:
        """Whether the operation changes nothing."""
        return self.right is Right.READ

    def perform(self, caller: Caller, arguments: Mapping[str, Any] | In) -> Out:
        """Check the caller's right and the arguments, then run the operation.

        Refused or failed writes are recorded in the audit log, and denied reads.
        """
        try:
            caller.require(self.right)
            given = arguments if isinstance(arguments, self.input) else self.parsed(arguments)
            if self.read_only:
                return _hinted(caller, given, self.run(caller, given))
            with request_context(caller.by(), _audit_request(arguments)):
                return _hinted(caller, given, self.run(caller, given))
        except ALMAError as exc:
            if not self.read_only or isinstance(exc, PermissionDeniedError):
                self._record(caller, arguments, exc)
            raise

    def _record(self, caller: Caller, arguments: Mapping[str, Any] | In, exc: ALMAError) -> None:
        request = _audit_request(arguments)
        named = request.get("memory_id") or request.get("id")
        trail = caller.store.audit
        with (
            suppress(ALMAError),
            trail.attempt(
                self.name,
                self.group,
                caller.by(),
                resource_id=named if isinstance(named, str) else "*",
                request=request,
            ),
        ):
            raise exc

    def parsed(self, arguments: Any) -> In:
        """The arguments, parsed from JSON; an error names the first mistake."""
        try:
            return self.input.model_validate_json(_ANYTHING.dump_json(arguments))
        except pydantic.ValidationError as exc:
            raise self._refusal(exc) from None
        except PydanticSerializationError:
            raise self._not_json(arguments) from None

    @cached_property
    def input_schema(self) -> JsonObject:
        """The JSON Schema of the arguments."""
        return _schema(self.input)

    @cached_property
    def output_schema(self) -> JsonObject:
        """The JSON Schema of the result; fields without a value are omitted."""
        return _schema(self.output)

    def _not_json(self, arguments: Any) -> ValidationError:
        for name, value in arguments.items() if isinstance(arguments, Mapping) else ():
            try:
                check_text(value if isinstance(value, str) else "")
            except Refused as exc:
                return ValidationError(self.name, name, value, str(exc))
        return ValidationError(self.name, None, arguments, "must be plain JSON")

    def _refusal(self, exc: pydantic.ValidationError) -> ValidationError:
        mistake = exc.errors(include_url=False)[0]
        where = ".".join(str(part) for part in mistake["loc"]) or None
        if mistake["type"] == "missing":
            return ValidationError(self.name, where, None, "is required")
        if mistake["type"] == "extra_forbidden":
            # The arguments of a nested object are in the schema.
            known = f"; there are {', '.join(self.input.model_fields)}" if len(mistake["loc"]) == 1 else ""
            return ValidationError(self.name, where, mistake["input"], f"is not a known argument{known}")
        return ValidationError(self.name, where, mistake["input"], _reason(mistake["msg"]))


def _hinted(caller: Caller, given: Input, result: Out) -> Out:
    agent = getattr(given, "agent", None)
    if not isinstance(result, Hinted) or not isinstance(given, InProject) or agent is None or result.hint:
        return result
    hint = caller.memory(given.project_id).agent_hint(agent)
    return result.model_copy(update={"hint": hint}) if hint else result


def operation(
    group: str,
    right: Right,
    *,
    example: JsonObject | None = None,
    faces: frozenset[Face] = EVERY_FACE,
    idempotent: bool = False,
    destructive: bool = False,
    takes_long: bool = False,
) -> Callable[[Callable[[Caller, In], Out]], Operation[In, Out]]:
    """Make an operation from a function: its name, docstring and type hints describe it."""

    def decorate(run: Callable[[Caller, In], Out]) -> Operation[In, Out]:
        hints = get_type_hints(run)
        input_name = next(name for name in hints if name not in ("caller", "return"))
        description = inspect.getdoc(run) or ""
        return Operation(
            name=run.__name__,
            group=group,
            right=right,
            run=run,
            input=hints[input_name],
            output=hints["return"],
            summary=description.split("\n", 1)[0].rstrip("."),
            description=description,
            example=example or {},
            faces=faces,
            idempotent=idempotent or right is Right.READ,
            destructive=destructive,
            takes_long=takes_long,
        )

    return decorate


def to_json(output: Output) -> JsonObject:
    """A result as JSON, without fields that have no value."""
    return output.model_dump(mode="json", exclude_none=True)


def _audit_request(arguments: Mapping[str, Any] | BaseModel) -> Mapping[str, Any]:
    """The arguments as recorded in the audit log."""
    given = arguments.model_dump(exclude_none=True) if isinstance(arguments, BaseModel) else arguments
    return given if isinstance(given, Mapping) else {}


def _schema(model: type[BaseModel]) -> JsonObject:
    with warnings.catch_warnings():
        # pydantic warns about fields that redefine a field without a default.
        warnings.simplefilter("ignore", pydantic.json_schema.PydanticJsonSchemaWarning)
        return model.model_json_schema(mode="validation")


def _reason(message: str) -> str:
    """A pydantic message as part of a sentence: "Input should be …" becomes "must be …"."""
    said = message.removeprefix("Value error, ")
    for start in ("Input should ", "String should ", "List should ", "Value should ", "Dictionary should "):
        if said.startswith(start):
            return "must " + said[len(start) :]
    return f"is not valid: {said}"


# The codes of the Memory Orchestrator, and conflict, refused and unavailable; the first match counts.
_CODES: tuple[tuple[type[BaseException], str], ...] = (
    (PermissionDeniedError, "permission_denied"),
    (ScopeViolationError, "permission_denied"),
    (ConflictError, "conflict"),
    (ValidationError, "validation_error"),
    (RefusedError, "refused"),
    (RetrievalError, "search_error"),
    (ProviderError, "unavailable"),
    (StorageError, "storage_error"),
    (ConfigurationError, "invalid_request"),
    (ALMAError, "invalid_request"),
)


def code_of(error: BaseException) -> str:
    """The code of an error, the same for every interface; unexpected exceptions are internal errors."""
    if isinstance(error, NotFoundError):
        return "session_not_found" if error.kind == "session" else "memory_not_found"
    return next((code for kind, code in _CODES if isinstance(error, kind)), "internal_error")
