/** What the service says about an error, beside its message. */
export interface ErrorFacts {
  code: string;
  status: number;
  requestId?: string;
  details?: Record<string, unknown>;
  cause?: unknown;
}

/** Any error of the service or of the connection to it. */
export class AlmaError extends Error {
  /** The error code of the service, as `memory_not_found`; `unreachable` if there was no answer. */
  readonly code: string;
  /** The HTTP status; 0 if there was no answer. */
  readonly status: number;
  /** The id under which the log of the service has the request. */
  readonly requestId: string | undefined;
  readonly details: Record<string, unknown>;

  constructor(message: string, facts: ErrorFacts) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = new.target.name;
    this.code = facts.code;
    this.status = facts.status;
    this.requestId = facts.requestId;
    this.details = facts.details ?? {};
  }
}

/** The request is malformed, too large, or for another host. */
export class InvalidRequestError extends AlmaError {}
/** The API key is missing, invalid, or does not allow this. */
export class PermissionDeniedError extends AlmaError {}
/** The memory or session does not exist, or is outside of what the key can see. */
export class NotFoundError extends AlmaError {}
/** Another write came first, or the memory changed since it was read. */
export class ConflictError extends AlmaError {}
/** An argument is invalid; `details.field` names it. */
export class ValidationError extends AlmaError {}
/** A rule refuses the content, for example an agent's scope. */
export class RefusedError extends AlmaError {}
/** Too many requests. */
export class RateLimitError extends AlmaError {}
/** The store cannot do this, or does not answer. */
export class StorageError extends AlmaError {}
/** A model or the service is unavailable. */
export class UnavailableError extends AlmaError {}
/** The service did not answer: it is not running, the address is wrong, or the time ran out. */
export class UnreachableError extends AlmaError {}

type ErrorClass = new (message: string, facts: ErrorFacts) => AlmaError;

const CLASSES: Record<string, ErrorClass> = {
  invalid_request: InvalidRequestError,
  method_not_allowed: InvalidRequestError,
  unauthenticated: PermissionDeniedError,
  permission_denied: PermissionDeniedError,
  not_found: NotFoundError,
  memory_not_found: NotFoundError,
  session_not_found: NotFoundError,
  conflict: ConflictError,
  precondition_failed: ConflictError,
  validation_error: ValidationError,
  refused: RefusedError,
  rate_limit_exceeded: RateLimitError,
  storage_error: StorageError,
  search_error: StorageError,
  unavailable: UnavailableError,
};

/** The error of a response that is not a success. */
export async function errorOf(response: Response): Promise<AlmaError> {
  const body = await response.json().catch(() => undefined);
  const said = (body as { error?: Record<string, unknown> } | undefined)?.error;
  if (typeof said?.["message"] !== "string" || typeof said["code"] !== "string") {
    const message = `status ${response.status} without an ALMA error: is this the address of an ALMA service?`;
    return new AlmaError(message, { code: "unknown", status: response.status });
  }
  const facts: ErrorFacts = {
    code: said["code"],
    status: response.status,
    requestId: said["request_id"] as string | undefined,
    details: said["details"] as Record<string, unknown> | undefined,
  };
  return new (CLASSES[said["code"]] ?? AlmaError)(said["message"], facts);
}
