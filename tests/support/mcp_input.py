"""The tools of the conformance suite that ask the client for input, as of the protocol revision 2026-07-28."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from alma.mcp.service import Context

_KEY = b"a key of the tests"
_META = "io.modelcontextprotocol/clientCapabilities"
Round = Mapping[str, Any]
InputTool = Callable[[Context, types.CallToolRequestParams], Awaitable[Any]]


def elicit(message: str, **properties: str) -> types.ElicitRequest:
    """A request for fields of these types."""
    schema = {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": [*properties],
    }
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sample(said: str, tokens: int = 100) -> types.CreateMessageRequest:
    """A request for a message of the client's model."""
    message = types.SamplingMessage(role="user", content=types.TextContent(text=said))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=tokens))


ROOTS = types.ListRootsRequest(params=types.RequestParams())
NAME = {"user_name": elicit("What is your name?", name="string")}
CONFIRM = {"confirm": elicit("Please confirm", ok="boolean")}
CONTEXT = {"user_context": elicit("What context should the prompt use?", context="string")}


def _signed(round_number: int) -> str:
    said = str(round_number)
    return f"{said}.{hmac.new(_KEY, said.encode(), hashlib.sha256).hexdigest()}"


def _round_of(state: str | None) -> int:
    """How many rounds were answered; a state that was changed is refused."""
    if state is None:
        return 0
    number, _, _ = state.partition(".")
    if not number.isdigit() or not hmac.compare_digest(state, _signed(int(number))):
        raise MCPError(types.INVALID_PARAMS, "the request state was changed")
    return int(number)


def _asks(requests: Round, state: str | None = None) -> types.InputRequiredResult:
    return types.InputRequiredResult(input_requests=dict(requests), request_state=state)


def _done(request: types.CallToolRequestParams) -> types.CallToolResult:
    answers = {name: each.model_dump(mode="json") for name, each in (request.input_responses or {}).items()}
    return types.CallToolResult(content=[types.TextContent(text=f"state-ok {json.dumps(answers)}")])


def stateless(requests: Round) -> InputTool:
    """A tool that asks once."""

    async def tool(_: Context, request: types.CallToolRequestParams) -> Any:
        return _done(request) if requests.keys() <= (request.input_responses or {}).keys() else _asks(requests)

    return tool


def rounds(*asked: Round) -> InputTool:
    """A tool that asks in rounds and keeps its place in a signed state."""

    async def tool(_: Context, request: types.CallToolRequestParams) -> Any:
        number = _round_of(request.request_state)
        answered = request.input_responses or {}
        if number and not asked[number - 1].keys() <= answered.keys():
            number -= 1
        return _done(request) if number == len(asked) else _asks(asked[number], _signed(number + 1))

    return tool


def _declared(context: Context) -> Mapping[str, Any]:
    meta: Any = context.meta or {}
    declared: Mapping[str, Any] = meta.get(_META, {})
    return declared


async def _capabilities(context: Context, request: types.CallToolRequestParams) -> Any:
    known: dict[str, Round] = {"elicitation": NAME, "sampling": {"capital": sample("What is the capital of France?")}}
    wanted = {key: each for name, asks in known.items() if name in _declared(context) for key, each in asks.items()}
    return _done(request) if request.input_responses or not wanted else _asks(wanted)


async def _sampling_only(context: Context, request: types.CallToolRequestParams) -> Any:
    if "sampling" not in _declared(context):
        needed: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "this tool needs sampling", needed)
    return _done(request)


async def _plain(_: Context, request: types.CallToolRequestParams) -> Any:
    return _done(request)


INPUT_TOOLS: dict[str, InputTool] = {
    "test_input_required_result_elicitation": stateless(NAME),
    "test_input_required_result_sampling": stateless({"capital_question": sample("What is the capital of France?")}),
    "test_input_required_result_list_roots": stateless({"client_roots": ROOTS}),
    "test_input_required_result_request_state": rounds(CONFIRM),
    "test_input_required_result_tampered_state": rounds(CONFIRM),
    "test_input_required_result_multiple_inputs": rounds(
        {**NAME, "greeting": sample("Generate a greeting", 50), "client_roots": ROOTS}
    ),
    "test_input_required_result_multi_round": rounds(
        {"step1": elicit("Step 1: What is your name?", name="string")},
        {"step2": elicit("Step 2: What is your favorite color?", color="string")},
    ),
    "test_input_required_result_capabilities": _capabilities,
    "test_missing_capability": _sampling_only,
    "test_streaming_elicitation": stateless(NAME),
    "test_logging_tool": _plain,
}


def asked_prompt(request: types.GetPromptRequestParams) -> types.InputRequiredResult | None:
    """What a prompt needs before it can be made."""
    if request.name != "test_input_required_result_prompt" or request.input_responses:
        return None
    return _asks(CONTEXT)
