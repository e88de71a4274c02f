// Made by `python clients/typescript/generate.py` from the OpenAPI document. Do not edit.

export interface AddKnowledge {
  /** The project; default: the configured one. */
  project_id?: string | null;
  agent: string;
  domain: string;
  fact: string;
  source?: string;
  /** Ids of the facts this one supersedes, if known. */
  supersedes?: Array<string>;
}

export interface AddPreference {
  user_id: string;
  /** The topic: communication, code_style, workflow … */
  category: string;
  preference: string;
  source?: string;
  /** Ids of the facts this one supersedes, if known. */
  supersedes?: Array<string>;
}

export interface AddWebhook {
  /** A name of your choice, under which its changes wait. */
  name: string;
  /** Where to send the changes: https://… or http://… */
  url: string;
  /** Only these; default: all. */
  events?: Array<MemoryEventType>;
  /** Only changes of these kinds, such as memory or heuristic; default: all. */
  memory_types?: Array<string>;
  /** Only changes of this project. */
  project_id?: string | null;
  /** What the requests are signed with; default: a new one, which the answer has. */
  secret?: string | null;
}

export interface AgentCurve {
  agent?: string | null;
  tried: number;
  succeeded: number;
  /** For each part of the range in which there were outcomes. */
  points: Array<Point>;
}

/** The state that an agent keeps between turns, for a session or without one. */
export interface AgentState {
  id?: string;
  agent_id: string;
  session_id?: string | null;
  state_data: Record<string, unknown>;
  created_at?: string;
  updated_at?: string;
  expires_at?: string | null;
}

export interface Alive {
  /** ok, or degraded if an engine beside the store does not answer or has parked records. */
  status: string;
  version: string;
  storage: string;
  embedding_model: string;
  /** The engines beside the store; only for callers without limits. */
  engines?: Array<EngineState> | null;
}

export interface Allow {
  /** The project; default: the configured one. */
  project_id?: string | null;
  archive_ids: Array<string>;
  /** The user whose preferences were rejected. */
  preferences_of?: string | null;
}

export interface Allowed {
  /** The ids of the memories that are in use again. */
  restored: Array<string>;
  /** The archive ids of texts that wait in the inbox again. */
  waiting: Array<string>;
}

export interface Analyse {
  /** The project; default: the configured one. */
  project_id?: string | null;
  /** Only memories created since this time. */
  since?: string | null;
}

export interface Analytics {
  total: number;
  by_type: Record<string, number>;
  by_category: Record<string, number>;
  by_layer: Record<string, number>;
  average_importance?: number | null;
  accesses: number;
  never_read: number;
  /** Memory ids, most read first. */
  most_read: Array<string>;
  first_created?: string | null;
  last_created?: string | null;
}

/** What not to do, why, and what to do instead. */
export interface AntiPattern {
  id?: string;
  agent: string;
  project_id: string;
  pattern: string;
  why_bad?: string | null;
  better_alternative?: string | null;
  occurrence_count?: number;
  outcomes_for?: Array<string>;
  last_seen?: string | null;
  created_at?: string | null;
  metadata?: Record<string, unknown>;
}

/** Why a memory is in the archive. */
export type ArchiveCause = "forgotten" | "archived" | "quarantined" | "merged" | "rejected";

export interface Archived {
  id: string;
  kind: string;
  record_id: string;
  cause: string;
  reason?: string | null;
  archived_at: string;
  /** The text; empty if it is private to another user. */
  text: string;
}

export interface ArchivedPage {
  archived: Array<Archived>;
}

export interface Around {
  /** The project; default: the configured one. */
  project_id?: string | null;
  kind: "memory" | "heuristic" | "outcome" | "domain_knowledge" | "anti_pattern" | "user_preference" | "entity" | "pattern";
  id: string;
  limit?: number;
  /** The user who asks; private memories are visible to their user only. */
  user_id?: string | null;
}

export interface Assess {
  /** The project; default: the configured one. */
  project_id?: string | null;
  strategies: Array<string>;
  /** The task for which to assess the strategies. */
  context: string;
  agent: string;
}

/** The evidence about one strategy for a task. `expected` is the expected share of successes, with a 90 % interval between the bounds. `outcome_ids` are the outcomes on the most similar tasks, most similar first; `tried` and `succeeded` also count outcomes that only rules know. `evidence` is the weight of all of them, in which repetitions count less; `agents` reported it in so many `sessions` (an hour of one agent), 0 if that is unknown. `relevance` is that of the nearest task, where it was computed. */
export interface Assessed {
  strategy: string;
  expected: number;
  lower_bound: number;
  upper_bound: number;
  tried: number;
  succeeded: number;
  outcome_ids?: Array<string>;
  heuristic_ids?: Array<string>;
  evidence?: number;
  agents?: Array<string>;
  sessions?: number;
  relevance?: number | null;
}

/** An audit event: who did what to which record, and with which result. An operation on several records is one event with `resource_id` "*" and their ids in `resource_ids`. The store assigns the id and the position in a hash chain: `chain_hash` covers the event and the previous hash, so that changed, removed or inserted events are detected. */
export interface AuditEvent {
  id?: number | null;
  user_id?: string | null;
  session_id?: string | null;
  agent_id?: string | null;
  action: string;
  resource_type: string;
  resource_id: string;
  resource_ids?: Array<string> | null;
  details_json?: Record<string, unknown> | null;
  success?: boolean;
  error_message?: string | null;
  ip_address?: string | null;
  user_agent?: string | null;
  created_at?: string;
  chain?: number | null;
  chain_position?: number | null;
  chain_hash?: string | null;
}

export interface AuditList {
  events: Array<{
    id?: number | null;
    user_id?: string | null;
    session_id?: string | null;
    agent_id?: string | null;
    action: string;
    resource_type: string;
    resource_id: string;
    resource_ids?: Array<string> | null;
    details_json?: Record<string, unknown> | null;
    success?: boolean;
    error_message?: string | null;
    ip_address?: string | null;
    user_agent?: string | null;
    created_at?: string;
    chain?: number | null;
    chain_position?: number | null;
    chain_hash?: string | null;
  }>;
  next_before?: number | null;
}

export interface BackUp {
}

export interface BackupList {
  folder?: string | null;
  backups: Array<BackupShown>;
}

export interface BackupShown {
  name: string;
  /** The file, for callers on the machine of the store. */
  path?: string | null;
  /** database or export */
  form: string;
  size_bytes: number;
  written_at: string;
}

export interface BenefitReported {
  /** The tasks whose outcome counts. */
  trials: number;
  /** Tasks by what verified their outcome, or why none counts. */
  outcomes: Record<string, number>;
  /** The probability with which an interval never misses. */
  level?: number;
  /** Those that harm first, then those that help. */
  memories: Array<MemoryEffect>;
  /** How many memories more there are. */
  left_out?: number;
  groups: Array<GroupEffect>;
}

export interface Between {
  /** The project; default: the configured one. */
  project_id?: string | null;
  /** The earlier moment. */
  since: string;
  /** The later moment; default: now. */
  until?: string | null;
  /** Only these kinds; default: all. */
  kinds?: Array<"memory" | "heuristic" | "outcome" | "domain_knowledge" | "anti_pattern" | "user_preference"> | null;
  agent?: string | null;
  limit?: number;
  /** The user who asks; private memories are visible to their user only. */
  user_id?: string | null;
}

export interface Browse {
  /** The project; default: the configured one. */
  project_id?: string | null;
  kind?: "memory" | "heuristic" | "outcome" | "domain_knowledge" | "anti_pattern" | "user_preference";
  agent?: string | null;
  /** Only what belongs to this user, who also asks. */
  user_id?: string | null;
  session_id?: string | null;
  layer?: Layer | null;
  tag?: string | null;
  /** The memory type, task type, domain or category. */
  type?: string | null;
  /** Where it comes from: the source of a fact, preference or memory, or the tool of a memory. */
  source?: string | null;
  /** Of its source: trusted (user, agent, system), untrusted, or unknown for what has no source. */
  trust?: "trusted" | "untrusted" | "unknown" | null;
  /** Only outcomes that succeeded, or failed. */
  success?: boolean | null;
  /** true for pinned memories only. */
  pinned?: boolean | null;
  min_confidence?: number | null;
  max_confidence?: number | null;
  /** Created at this time or later. */
  since?: string | null;
  /** Created before this time. */
  until?: string | null;
  state?: "active" | "archived" | "deleted" | "expired" | "forgotten" | "merged" | "quarantined" | "rejected";
  /** Only what shares words with this text, best match first; with as_of, what does so now. */
  words?: string | null;
  /** As it was recorded at this time. */
  as_of?: string | null;
  limit?: number;
  /** Read no more than about this many records for a page, which may then be short: searched_until says how far, and next_cursor goes on. Default: until the page is full. */
  read_most?: number | null;
  /** next_cursor of the previous page. */
  cursor?: string | null;
}

export interface BrowsePage {
  rows: Array<Row>;
  next_cursor?: string | null;
  /** With read_most: older records than this were not searched yet. */
  searched_until?: string | null;
}

export interface BulkDelete {
  /** The project; default: the configured one. */
  project_id?: string | null;
  where?: MemoryFilter | null;
  older_than_days?: number | null;
  hard?: boolean;
  /** List what would be deleted without deleting anything. */
  dry_run?: boolean;
  reason?: string | null;
  user_id?: string | null;
}

export interface BulkDeleted {
  count: number;
  ids: Array<string>;
  dry_run: boolean;
}

export interface ChangesBetween {
  since: string;
  until: string;
  changes: Array<WhatChanged>;
  /** Whether there are more changes than the limit. */
  more: boolean;
}

export interface ColdSession {
  session_id: string;
  file: string;
  memories: number;
}

export interface ColdSessions {
  sessions: Array<ColdSession>;
}

export interface Compare {
  /** The project; default: the configured one. */
  project_id?: string | null;
  id: string;
  kind?: "memory" | "heuristic" | "outcome" | "domain_knowledge" | "anti_pattern";
  /** The user who asks; private memories are visible to their user only. */
  user_id?: string | null;
  first: number;
  second: number;
}

export interface CompareFacts {
  /** The project; default: the configured one. */
  project_id?: string | null;
  kind?: "memory" | "domain_knowledge" | "user_preference";
  /** The user whose preferences are compared; required for them. */
  user_id?: string | null;
  /** The maximum number of facts, newest first. */
  limit?: number;
}

export interface Connect {
  /** The project; default: the configured one. */
  project_id?: string | null;
  from_kind: "memory" | "heuristic" | "outcome" | "domain_knowledge" | "anti_pattern" | "user_preference" | "entity" | "pattern";
  from_id: string;
  to_kind: "memory" | "heuristic" | "outcome" | "domain_knowledge" | "anti_pattern" | "user_preference" | "entity" | "pattern";
  to_id: string;
  max_steps?: number;
  /** The user who asks; private memories are visible to their user only. */
  user_id?: string | null;
}

export interface Connection {
  found: boolean;
  /** The nodes of a shortest path, from one end to the other. */
  nodes?: Array<Node>;
  edges?: Array<Edge>;
}

export interface Consolidate {
  /** The project; default: the configured one. */
  project_id?: string | null;
  agent?: string | null;
  kind?: "heuristic" | "outcome" | "domain_knowledge" | "anti_pattern";
  similarity_threshold?: number;
  /** Show what would be merged without changing anything. */
  dry_run?: boolean;
}

export interface Consolidated {
  groups: Array<alma__operations__history__Merged>;
  memories_processed: number;
  dry_run: boolean;
}

export interface Context {
  prompt: string;
  items: Array<ContextPart>;
  /** The number of items that did not fit into max_tokens. */
  left_out: number;
  /** The layers that were searched, each with the reason. */
  layers: Record<string, string>;
  degraded?: string;
}

export interface ContextPart {
  kind: string;
  id: string;
  section: string;
  reason: string;
  text: string;
}

export interface Contradiction {
  stronger: Side;
  weaker: Side;
  /** How sure the judge is that the two say the opposite. */
  probability: number;
  /** How many successes of the weaker lesson would make it the stronger one. */
  successes_to_turn?: number | null;
}

export interface ContradictionList {
  contradictions: Array<Contradiction>;
}

export interface Contradictions {
  /** The project; default: the configured one. */
  project_id?: string | null;
  agent?: string | null;
  /** As it was recorded at this time. */
  as_of?: string | null;
}

export interface Conversation {
  /** The project; default: the configured one. */
  project_id?: string | null;
  agent: string;
  /** The messages: objects with role and content. */
  messages: Array<Record<string, unknown>>;
  /** The user whose preferences these are. */
  user_id?: string | null;
  /** Store the facts found; false only shows them. */
  commit?: boolean;
}

export interface Corrected {
  /** The id of the correct memory. */
  id: string;
  kind: string;
  /** The id of the fact or preference that no longer holds. */
  superseded?: string | null;
  /** Why the correction was quarantined and changed nothing. */
  quarantined?: string | null;
}

export interface CountOverTime {
  /** The project; default: the configured one. */
  project_id?: string | null;
  /** From this time on. */
  since?: string | null;
  /** Before this time; default: now. */
  until?: string | null;
  agent?: string | null;
  /** The length of the range, if since is not given. */
  days?: number;
  /** The number of equal parts of the range. */
  buckets?: number;
}

export interface CreateHandoff {
  /** The project; default: the configured one. */
  project_id?: string | null;
  session_id: string;
  agent: string;
  last_action?: string | null;
  /** success, failure, interrupted or unknown */
  last_outcome?: string | null;
  next_steps?: Array<string> | null;
  blockers?: Array<string> | null;
  key_decisions?: Array<string> | null;
  active_files?: Array<string> | null;
  risk_flags?: Array<string> | null;
  current_goal?: string | null;
  confidence_level?: number | null;
}

export interface CreateKey {
  /** The purpose of the key. */
  name: string;
  /** read, write, delete, admin; no right includes another. */
  rights: Array<Right>;
  /** Limit the key to this user. */
  user_id?: string | null;
  /** Limit the key to this project. */
  project_id?: string | null;
  /** Limit the key to this agent. */
  agent?: string | null;
  /** Days until the key expires; default: never. */
  days?: number | null;
}

export interface CreateMemory {
  /** The project; default: the configured one. */
  project_id?: string | null;
  title?: string | null;
  summary?: string | null;
  /** decision, task, progress, insight, pattern, error, solution, note, conversation … */
  memory_type?: string | null;
  /** Chosen by rules if not given. */
  category?: string | null;
  tags?: Array<string> | null;
  /** From 0 to 1; chosen by rules if not given. */
  importance_score?: number | null;
  /** Importance from 1 to 10; give one of the two. */
  priority?: number | null;
  /** session, project, global, temporal; chosen by rules if not given. */
  layers?: Array<Layer> | null;
  /** The lifetime in seconds. */
  ttl_seconds?: number | null;
  /** When it expires; give this or ttl_seconds. */
  expires_at?: string | null;
  /** When the event in the text happened. */
  event_time?: string | null;
  /** Where the memory comes from: files, line, command … */
  context_json?: Record<string, unknown> | null;
  source_tool?: string | null;
  external_id?: string | null;
  /** Visible to its user only. */
  is_private?: boolean | null;
  /** The content: text, or a JSON object with a text. */
  content: string | Record<string, unknown>;
  user_id?: string | null;
  session_id?: string | null;
  /** The agent that creates the memory. */
  agent?: string | null;
  /** The provenance of the text. Text that looks like a prompt injection is quarantined unless it comes from user, agent or system. */
  source?: string | null;
}

export interface CreateSession {
  /** The project; default: the configured one. */
  project_id?: string | null;
  name?: string;
  description?: string | null;
  session_type?: string;
  goal?: string | null;
  user_id?: string | null;
  agent?: string | null;
  parent_session_id?: string | null;
  git_branch?: string | null;
  git_commit?: string | null;
  working_directory?: string | null;
  context?: Record<string, unknown> | null;
  /** An id of your choice; generated if not given. */
  session_id?: string | null;
}

export interface CreateUser {
  username: string;
  user_id?: string | null;
  email?: string | null;
  display_name?: string | null;
  profile?: Record<string, unknown> | null;
  preferences?: Record<string, unknown> | null;
}

export interface CreateWorkItem {
  /** The project; default: the configured one. */
  project_id?: string | null;
  title: string;
  description?: string;
  item_type?: string;
  priority?: number;
  agent?: string | null;
  parent_id?: string | null;
  blocked_by?: Array<string>;
  acceptance_criteria?: Array<string>;
  estimate_minutes?: number | null;
}

export interface Curve {
  /** The project; default: the configured one. */
  project_id?: string | null;
  agent?: string | null;
  since?: string | null;
  /** Default: now. */
  until?: string | null;
  /** The length of the range, if since is not given. */
  days?: number;
  buckets?: number;
  /** Also the curve of each agent, of the newest 50,000 outcomes. */
  agents?: boolean;
}

export interface Curves {
  /** For an agent without memories: the known agent that was probably meant. */
  hint?: string;
  overall: AgentCurve;
  /** The agents with the most outcomes. */
  agents: Array<AgentCurve>;
}

export interface Decay {
  /** The project; default: the configured one. */
  project_id?: string | null;
  /** Show what would be archived, and why, without changing anything. */
  dry_run?: boolean;
  /** Archive memories whose strength decayed below this. */
  min_strength?: number;
}

export interface Decayed {
  archived: number;
  dry_run: boolean;
  items: Array<Pruned>;
}

export interface DeleteMemory {
  /** The project; default: the configured one. */
  project_id?: string | null;
  memory_id: string;
  /** The user who asks; private memories are visible to their user only. */
  user_id?: string | null;
  /** Delete permanently; otherwise it can be restored. */
  hard?: boolean;
  reason?: string | null;
  /** Fail if the memory has another version. */
  expected_version?: number | null;
}

export interface DeleteProject {
  /** The token of an earlier call without it; without a token nothing is deleted, only counted. */
  confirm?: string | null;
  /** A folder on this machine that receives an export first. */
  export_to?: string | null;
  /** The project; everything in it is deleted too, also of other users. */
  project_id: string;
}

export interface DeleteUser {
  /** The token of an earlier call without it; without a token nothing is deleted, only counted. */
  confirm?: string | null;
  /** A folder on this machine that receives an export first. */
  export_to?: string | null;
  /** The user; with the user go their projects, sessions and memories. */
  user_id: string;
}

export interface DemoteHarmful {
  /** The project; default: the configured one. */
  project_id?: string | null;
  /** Only these; default: all that harm. */
  ids?: Array<string> | null;
  /** Show what would be demoted without changing anything. */
  dry_run?: boolean;
}

export interface Demoted {
  memories: Array<MemoryEffect>;
  dry_run: boolean;
}

export interface Detect {
  /** The project; default: the configured one. */
  project_id?: string | null;
  memory_id: string;
  /** Store the relations found. */
  save?: boolean;
  user_id?: string | null;
}

export interface DetectedRelation {
  relation: string;
  from_id: string;
  to_id: string;
  strength: number;
  evidence: Array<string>;
}

export interface DetectedRelations {
  detected: Array<DetectedRelation>;
}

export interface DiffSkills {
  /** The project; default: the configured one. */
  project_id?: string | null;
  documents: Array<Document>;
  /** The agent that learns them; default: the one that the file names. */
  agent?: string | null;
  /** How far a stored lesson must be confirmed to be missed in files. */
  least?: "established" | "corroborated" | "provisional";
}

/** How an engine's entry of a record differs from the store's. */
export type Difference = "missing" | "stale" | "orphaned" | "corrupted";

export interface Differences {
  changes: Array<FieldChange>;
}

export interface Distinguish {
  /** The project; default: the configured one. */
  project_id?: string | null;
  /** The id of a memory, a fact or a preference. */
  memory_id: string;
  /** The user who asks, or whose preference it is. */
  user_id?: string | null;
  /** The other fact, or the former id of one that was merged into the first. */
  other_id: string;
  /** false takes it back: what was removed relates them again. */
  distinct?: boolean;
}

export interface Distinguished {
  /** The relations that were removed. */
  removed: Array<string>;
  /** The removed relations that are there again. */
  related?: Array<string>;
  /** The merged facts that are separate memories again. */
  restored?: Array<string>;
}

export interface Document {
  /** Its path; a file named SKILL.md is a skill, any other is an AGENTS.md. */
  path: string;
  text: string;
}

/** A fact about a domain, as opposed to a strategy. */
export interface DomainKnowledge {
  id?: string;
  agent: string;
  project_id: string;
  domain?: string | null;
  fact: string;
  source?: string | null;
  confidence?: number;
  last_verified?: string | null;
  metadata?: Record<string, unknown>;
}

export interface DroppedCandidate {
  row: Row;
  stage: string;
  reason: string;
}

export interface Edge {
  /** kind:id of a node. */
  source: string;
  target: string;
  relation: string;
  strength?: number;
}

export interface EndSession {
  /** The project; default: the configured one. */
  project_id?: string | null;
  session_id: string;
  /** A summary; otherwise made of the session's own sentences. */
  summary?: string | null;
  /** Also archive the session. */
  archive?: boolean;
}

export interface EngineRun {
  engine: string;
  applied: number;
  failed: number;
  pending: number;
  parked: number;
  problem?: string | null;
}

export interface EngineState {
  engine: string;
  /** ok, behind, parked, rebuilding, degraded, new before its first run, or unused if not configured. */
  state: string;
  is_configured: boolean;
  /** The number of records whose change has not reached the engine. */
  pending: number;
  /** The number of records that failed too often and wait for sync_retry_parked. */
  parked: number;
  /** The age of the oldest change that has not reached the engine. */
  lag_seconds: number;
  parked_error?: string | null;
  problem?: string | null;
  rebuilding?: Rebuilding | null;
  verified?: LastVerified | null;
}

export interface EngineStates {
  engines: Array<EngineState>;
}

export interface EngineSynced {
  engine: string;
  synced: boolean;
  problem?: string | null;
}

export interface EngineVerified {
  engine: string;
  is_consistent: boolean;
  checked: number;
  /** Entries that differ because their change still waits. */
  behind: number;
  parked: number;
  counts: Array<KindCounted>;
  /** The number of missing, stale, orphaned, corrupted entries. */
  differences: Record<string, number>;
  problem?: string | null;
}

/** Something that text mentions: a person, a company, a file, an idea. */
export interface Entity {
  id: string;
  name: string;
  entity_type: string;
  properties?: Record<string, unknown>;
  created_at?: string;
}

/** An error: a code for programs and a message for people. */
export interface Error {
  error: {
    code: "invalid_request" | "unauthenticated" | "permission_denied" | "not_found" | "memory_not_found" | "session_not_found" | "method_not_allowed" | "conflict" | "precondition_failed" | "validation_error" | "refused" | "rate_limit_exceeded" | "internal_error" | "storage_error" | "search_error" | "unavailable";
    message: string;
    details?: Record<string, unknown>;
    request_id: string;
  };
}

/** Why a memory is in a slice: the terms of its score, the sources that found it, and notes. `notes` say that it is superseded or contradicted by another found memory, when it is valid, or that only another agent reports it. `similarity` is its cosine with the query and `relevance` the calibrated probability that it is relevant, if computed. *Weak* memories are in prompts only on request. */
export interface Explanation {
  kind: string;
  id: string;
  score: number;
  terms: Record<string, number>;
  found_by?: Array<string>;
  notes?: Array<string>;
  similarity?: number | null;
  relevance?: number | null;
  strength?: "strong" | "weak";
}

export interface ExportSkills {
  /** The project; default: the configured one. */
  project_id?: string | null;
  /** Only lessons of this agent. */
  agent?: string | null;
  /** How far a lesson must be confirmed at least. */
  least?: "established" | "corroborated" | "provisional";
  /** A SKILL.md for each lesson, or one AGENTS.md. */
  form?: "skills" | "agents";
  /** The text of the AGENTS.md so far, of which everything else is kept. */
  before?: string;
}

export interface ExportedDocument {
  path: string;
  text: string;
  /** The ids of its lessons. */
  lessons: Array<string>;
}

export interface ExportedSkills {
  documents: Array<ExportedDocument>;
}

export interface FacetValues {
  projects?: Array<string>;
  agents?: Array<string>;
  users?: Array<string>;
  types?: Array<string>;
  tags?: Array<string>;
  domains?: Array<string>;
  sources?: Array<string>;
  /** The names of the newest sessions by id. */
  sessions?: Record<string, string>;
}

export interface Facets {
  /** The project; default: the configured one. */
  project_id?: string | null;
}

export interface FactsCompared {
  compared: number;
  /** The number of relations found, including known ones. */
  related: number;
}

export interface FactsLearned {
  report: Record<string, unknown>;
}

/** A field before and after a change, None where it had no value. */
export interface FieldChange {
  field: string;
  before: unknown;
  after: unknown;
}

export interface FindNodes {
  /** The project; default: the configured one. */
  project_id?: string | null;
  words: string;
  limit?: number;
  /** The user who asks; private memories are visible to their user only. */
  user_id?: string | null;
}

export interface FindPaths {
  /** The project; default: the configured one. */
  project_id?: string | null;
  from_id: string;
  to_id: string;
  relations?: Array<string> | null;
  direction?: "out" | "in" | "both";
  max_depth?: number;
  limit?: number;
  user_id?: string | null;
}

/** A change of the log: its kind, the event if known, and a message. */
export interface Finding {
  kind: "changed" | "removed" | "inserted";
  event_id?: number | null;
  message: string;
}

export interface Forget {
  /** The project; default: the configured one. */
  project_id?: string | null;
  /** Only what this agent learned. */
  agent?: string | null;
  /** Archive outcomes older than this many days. */
  older_than_days?: number;
  /** Archive heuristics with a lower confidence. */
  below_confidence?: number;
  /** Show what would be archived, and why, without changing anything. */
  dry_run?: boolean;
}

export interface ForgetOne {
  /** The project; default: the configured one. */
  project_id?: string | null;
  /** The id of the memory, fact, preference or lesson. */
  id: string;
  /** The user who asks, or whose preference it is. */
  user_id?: string | null;
  /** Why; kept with it. */
  reason?: string | null;
}

export interface ForgetRecords {
  /** The project; default: the configured one. */
  project_id?: string | null;
  kind: "memory" | "heuristic" | "outcome" | "domain_knowledge" | "anti_pattern" | "user_preference";
  ids: Array<string>;
  /** The user who asks; private memories are visible to their user only. */
  user_id?: string | null;
  /** Why; kept in the archive. */
  reason?: string;
}

export interface Forgotten {
  /** For an agent without memories: the known agent that was probably meant. */
  hint?: string;
  /** The number of memories archived, or that would be with dry_run. */
  forgotten: number;
  dry_run?: boolean;
  items?: Array<ToForget> | null;
}

export interface FoundIssue {
  engine: string;
  kind: string;
  record_id: string;
  difference?: Difference;
  details?: string;
}

export interface FromText {
  /** The project; default: the configured one. */
  project_id?: string | null;
  text: string;
  /** Add what is found to the graph. */
  save?: boolean;
}

/** Missing knowledge: its kind and subject, why it counts as missing, and what would fill the gap. */
export interface Gap {
  kind: string;
  subject: string;
  reason: string;
  suggestion: string;
  memory_ids: Array<string>;
}

export interface GapList {
  gaps: Array<Gap>;
}

export interface Gaps {
  /** The project; default: the configured one. */
  project_id?: string | null;
  activity?: string | null;
  files?: Array<string>;
  limit?: number;
}

export interface GetContext {
  /** The project; default: the configured one. */
  project_id?: string | null;
  /** What the agent is about to do, in a few words. */
  activity?: string;
  files?: Array<string>;
  git_branch?: string | null;
  max_tokens?: number;
  user_id?: string | null;
  session_id?: string | null;
  agent?: string | null;
}

export interface Graph {
  entities?: Array<Entity>;
  relationships?: Array<Relationship>;
}

/** The average effect of the memories of a kind, or of those for an agent. */
export interface GroupEffect {
  state: "helps" | "harms" | "no effect seen" | "not enough data";
  /** The difference of the success rates with and without, from -1 to 1. */
  effect: number;
  /** The lower limit of the 95 % interval, which holds at all times. */
  low: number;
  high: number;
  /** The tasks for which it was shown. */
  shown: number;
  /** The tasks for which it was withheld. */
  withheld: number;
  /** The success rate of the tasks for which it was shown. */
  rate_shown?: number | null;
  rate_withheld?: number | null;
  name: string;
}

export interface HandedOver {
  handoff?: {
    id?: string;
    project_id: string;
    agent: string;
    session_id: string;
    goal?: string | null;
    last_action: string;
    last_outcome?: string | null;
    current_goal?: string | null;
    key_decisions?: Array<string>;
    active_files?: Array<string>;
    blockers?: Array<string>;
    next_steps?: Array<string>;
    confidence_level?: number;
    risk_flags?: Array<string>;
    test_status?: Record<string, unknown>;
    duration_ms?: number | null;
    metadata?: Record<string, unknown>;
    created_at?: string;
  } | null;
  /** The agent's latest handoff as text for the next session. */
  quick_reload?: string;
}

export interface Health {
  healthy: boolean;
  total: number;
  archived: number;
  quarantined: number;
  stale_share: number;
  duplicates_share: number;
  recommendations: Array<string>;
}

export interface HealthOf {
  /** The project; default: the configured one. */
  project_id?: string | null;
}

export interface HeldBy {
  session_id: string;
  session: string;
  agent?: string | null;
  pinned: boolean;
  added_at: string;
}

/** A learned rule: when `condition`, do `strategy`. The counts are numbers of outcomes; the weights are the same evidence, decayed with age. A handwritten heuristic has no weights, and the confidence that its author gave. `outcomes_for` and `outcomes_against` are the ids of the newest hundred outcomes for and against it; `ALMA.evidence` lists all, which have its id as their `lesson_id`. */
export interface Heuristic {
  id?: string;
  agent: string;
  project_id: string;
  condition: string;
  strategy: string;
  confidence?: number;
  occurrence_count?: number;
  success_count?: number;
  weight_for?: number | null;
  weight_against?: number | null;
  outcomes_for?: Array<string>;
  outcomes_against?: Array<string>;
  last_validated?: string | null;
  created_at?: string | null;
  metadata?: Record<string, unknown>;
}

export interface Hit {
  /** A general memory: something said, decided, done or noticed. */
  memory: {
    id?: string;
    user_id?: string | null;
    project_id?: string | null;
    session_id?: string | null;
    title?: string;
    content: string;
    content_json?: Record<string, unknown> | null;
    summary?: string | null;
    memory_type?: string;
    category?: string | null;
    tags?: Array<string>;
    importance_score?: number;
    priority?: number;
    decay_rate?: number;
    access_count?: number;
    last_accessed_at?: string;
    context_json?: Record<string, unknown>;
    git_context_json?: Record<string, unknown>;
    layer_session?: boolean;
    layer_project?: boolean;
    layer_global?: boolean;
    layer_temporal?: boolean;
    source_agent?: string | null;
    source_tool?: string | null;
    provenance?: string | null;
    external_id?: string | null;
    is_private?: boolean;
    is_archived?: boolean;
    is_active?: boolean;
    expires_at?: string | null;
    event_time?: string | null;
    created_at?: string;
    updated_at?: string;
    valid_from?: string | null;
    valid_until?: string | null;
  };
  score: number;
  similarity?: number | null;
  /** The calibrated probability that the memory is relevant. */
  relevance?: number | null;
  /** The terms of the score. */
  why: string;
  /** By what the memory was superseded or contradicted, and when. */
  notes?: Array<string>;
}

export interface Hits {
  hits: Array<Hit>;
  mode: string;
  degraded?: string;
  why_not?: alma__model__slice__Dropped | null;
}

export interface HoldMemories {
  /** The project; default: the configured one. */
  project_id?: string | null;
  session_id: string;
  memory_ids: Array<string>;
  /** Never evict these memories. */
  pinned?: boolean;
  /** The size of the context window in tokens. */
  max_tokens?: number | null;
  /** The user who asks; private memories are visible to their user only. */
  user_id?: string | null;
}

export interface ImportLines {
  /** The project; default: the configured one. */
  project_id?: string | null;
  lines: Array<Line>;
  /** Where the texts come from; texts of unknown sources are screened. */
  source?: string;
}

export interface ImportSkills {
  /** The project; default: the configured one. */
  project_id?: string | null;
  documents: Array<Document>;
  /** The agent that learns them; default: the one that the file names. */
  agent?: string | null;
  /** Say what would happen, and store nothing. */
  dry_run?: boolean;
}

export interface ImportedLesson {
  path: string;
  condition?: string;
  status: "stored" | "known" | "quarantined" | "refused";
  id?: string | null;
  /** Of a quarantined lesson: restore accepts it. */
  archive_id?: string | null;
  reason?: string | null;
}

export interface ImportedSkills {
  lessons: Array<ImportedLesson>;
  dry_run: boolean;
}

export interface InMind {
  session_id: string;
  memories: Array<{
    id?: string;
    user_id?: string | null;
    project_id?: string | null;
    session_id?: string | null;
    title?: string;
    content: string;
    content_json?: Record<string, unknown> | null;
    summary?: string | null;
    memory_type?: string;
    category?: string | null;
    tags?: Array<string>;
    importance_score?: number;
    priority?: number;
    decay_rate?: number;
    access_count?: number;
    last_accessed_at?: string;
    context_json?: Record<string, unknown>;
    git_context_json?: Record<string, unknown>;
    layer_session?: boolean;
    layer_project?: boolean;
    layer_global?: boolean;
    layer_temporal?: boolean;
    source_agent?: string | null;
    source_tool?: string | null;
    provenance?: string | null;
    external_id?: string | null;
    is_private?: boolean;
    is_archived?: boolean;
    is_active?: boolean;
    expires_at?: string | null;
    event_time?: string | null;
    created_at?: string;
    updated_at?: string;
    valid_from?: string | null;
    valid_until?: string | null;
  }>;
  tokens: number;
  max_tokens: number;
  prompt: string;
  /** The memories that were evicted, with the reason. */
  evicted?: Array<LeftOut>;
}

export interface Inbox {
  /** The project; default: the configured one. */
  project_id?: string | null;
  categories?: Array<"quarantined" | "contradiction" | "duplicate" | "doubtful" | "harmful">;
  /** Facts and preferences with less confidence are doubtful. */
  below_confidence?: number;
  /** The least cosine of near-duplicates. */
  min_similarity?: number;
  limit?: number;
  /** The user who asks; private memories are visible to their user only. */
  user_id?: string | null;
}

export interface InboxItem {
  category: "quarantined" | "contradiction" | "duplicate" | "doubtful" | "harmful";
  row: Row;
  /** What it contradicts or repeats. */
  other?: Row | null;
  reason?: string;
  /** Of a harmful memory: whether prompts lack it already. */
  is_demoted?: boolean | null;
  /** Of a quarantined text: pass it to restore to accept it. */
  archive_id?: string | null;
}

export interface InboxPage {
  items: Array<InboxItem>;
}

export interface InitializeProject {
  /** The owner; default: the key's user. */
  user_id?: string | null;
  name?: string | null;
  /** The project directory on this machine, to detect language and framework. */
  path?: string | null;
  /** An id of your choice; generated if not given. */
  project_id?: string | null;
  description?: string | null;
  language?: string | null;
  framework?: string | null;
  project_type?: string | null;
  config?: Record<string, unknown> | null;
}

/** A pattern that recurs in several projects of one user, with its evidence by project. */
export interface Insight {
  pattern_type: string;
  name: string;
  description: string;
  success_rate: number;
  usage_count: number;
  evidence: Record<string, Array<string>>;
}

export interface InsightList {
  insights: Array<Insight>;
}

export interface Insights {
  user_id?: string | null;
  min_projects?: number;
  min_success_rate?: number;
  limit?: number;
}

export interface Issue {
  engine: string;
  kind: string;
  record_id: string;
  difference: Difference;
  details?: string;
}

export interface Judge {
  /** The project; default: the configured one. */
  project_id?: string | null;
  memory_id: string;
  /** The user who asks; private memories are visible to their user only. */
  user_id?: string | null;
  helpful?: boolean;
  session_id?: string | null;
}

export interface Judged {
  memory_id: string;
  helpful: boolean;
}

export interface KeyCreated {
  key: KeyShown;
  /** The token; it cannot be read again. */
  token: string;
}

export interface KeyList {
  keys: Array<KeyShown>;
}

export interface KeyRevoked {
  key: KeyShown;
}

export interface KeyShown {
  id: string;
  name: string;
  prefix: string;
  rights: Array<string>;
  user_id?: string | null;
  project_id?: string | null;
  agent?: string | null;
  /** valid, expired or revoked */
  status: string;
  created_at: string;
  expires_at?: string | null;
  last_used_at?: string | null;
}

export interface KindCounted {
  kind: string;
  stored: number;
  held: number;
}

export interface KnowledgeKept {
  /** A fact about a domain, as opposed to a strategy. */
  knowledge: {
    id?: string;
    agent: string;
    project_id: string;
    domain?: string | null;
    fact: string;
    source?: string | null;
    confidence?: number;
    last_verified?: string | null;
    metadata?: Record<string, unknown>;
  };
}

export interface LastRun {
  started_at: string;
  finished_at: string;
  counts: Record<string, number>;
  error?: string | null;
}

export interface LastVerified {
  at: string;
  is_consistent: boolean;
  issues: number;
}

export interface LatestHandoff {
  /** The project; default: the configured one. */
  project_id?: string | null;
  agent: string;
  /** Only a handoff of this session. */
  session_id?: string | null;
  /** The latest one at this time. */
  as_of?: string | null;
  max_tokens?: number;
}

/** The layer of a general memory, which decides where it is visible. */
export type Layer = "session" | "project" | "global" | "temporal";

export interface Learn {
  /** The project; default: the configured one. */
  project_id?: string | null;
  /** The agent that did the task. */
  agent: string;
  /** The task, in one or a few sentences. */
  task: string;
  /** success or failure; common synonyms are accepted. */
  outcome: string | boolean;
  /** What the agent did that mattered, in one sentence. */
  strategy_used: string;
  /** The domain of the task, which the agent's scope must allow. */
  task_type?: string | null;
  /** The duration in milliseconds. */
  duration_ms?: number | null;
  /** What went wrong. */
  error_message?: string | null;
  /** What the user said about the result. */
  feedback?: string | null;
  /** What verified the outcome; lessons weigh it accordingly. */
  verified_by?: "tests" | "tool" | "human" | "self-report" | null;
  /** The retrieval_id of the memories that were used, if any. */
  retrieval_id?: string | null;
}

export interface LearnedFrom {
  /** The result of a task and the strategy that was used; `lesson_id` is the lesson that it is evidence for. Its vector is that of the task alone, because outcomes are compared by task. */
  outcome: {
    id?: string;
    agent: string;
    project_id: string;
    task_type?: string | null;
    task_description: string;
    success?: boolean;
    strategy_used?: string | null;
    lesson_id?: string | null;
    duration_ms?: number | null;
    error_message?: string | null;
    user_feedback?: string | null;
    timestamp?: string | null;
    metadata?: Record<string, unknown>;
  };
  /** The lesson created or updated by this outcome. */
  heuristic?: {
    id?: string;
    agent: string;
    project_id: string;
    condition: string;
    strategy: string;
    confidence?: number;
    occurrence_count?: number;
    success_count?: number;
    weight_for?: number | null;
    weight_against?: number | null;
    outcomes_for?: Array<string>;
    outcomes_against?: Array<string>;
    last_validated?: string | null;
    created_at?: string | null;
    metadata?: Record<string, unknown>;
  } | null;
  /** A strategy that failed often enough to be avoided. */
  anti_pattern?: {
    id?: string;
    agent: string;
    project_id: string;
    pattern: string;
    why_bad?: string | null;
    better_alternative?: string | null;
    occurrence_count?: number;
    outcomes_for?: Array<string>;
    last_seen?: string | null;
    created_at?: string | null;
    metadata?: Record<string, unknown>;
  } | null;
  notes?: Array<string>;
}

export interface LearnedId {
  /** The project; default: the configured one. */
  project_id?: string | null;
  kind: "heuristic" | "outcome" | "domain_knowledge" | "anti_pattern";
  id: string;
}

export interface LearnedPage {
  /** For an agent without memories: the known agent that was probably meant. */
  hint?: string;
  heuristics?: Array<{
    id?: string;
    agent: string;
    project_id: string;
    condition: string;
    strategy: string;
    confidence?: number;
    occurrence_count?: number;
    success_count?: number;
    weight_for?: number | null;
    weight_against?: number | null;
    outcomes_for?: Array<string>;
    outcomes_against?: Array<string>;
    last_validated?: string | null;
    created_at?: string | null;
    metadata?: Record<string, unknown>;
  }> | null;
  outcomes?: Array<{
    id?: string;
    agent: string;
    project_id: string;
    task_type?: string | null;
    task_description: string;
    success?: boolean;
    strategy_used?: string | null;
    lesson_id?: string | null;
    duration_ms?: number | null;
    error_message?: string | null;
    user_feedback?: string | null;
    timestamp?: string | null;
    metadata?: Record<string, unknown>;
  }> | null;
  domain_knowledge?: Array<{
    id?: string;
    agent: string;
    project_id: string;
    domain?: string | null;
    fact: string;
    source?: string | null;
    confidence?: number;
    last_verified?: string | null;
    metadata?: Record<string, unknown>;
  }> | null;
  anti_patterns?: Array<{
    id?: string;
    agent: string;
    project_id: string;
    pattern: string;
    why_bad?: string | null;
    better_alternative?: string | null;
    occurrence_count?: number;
    outcomes_for?: Array<string>;
    last_seen?: string | null;
    created_at?: string | null;
    metadata?: Record<string, unknown>;
  }> | null;
  next_cursor?: string | null;
}

/** A memory that was left out, and the reason. */
export interface LeftOut {
  memory_id: string;
  reason: string;
}

export interface LessonHistory {
  heuristic_id: string;
  /** After each outcome that is still stored, oldest first. */
  points: Array<Point>;
  /** Outcomes that the rule counts and that are no longer stored. */
  unstored: number;
  /** How many opposite outcomes in a row bring the expected success to the other side of 0.5. */
  to_turn?: number | null;
}

export interface LessonId {
  /** The project; default: the configured one. */
  project_id?: string | null;
  heuristic_id: string;
  /** Only outcomes reported before this time. */
  as_of?: string | null;
}

/** A text to import. */
export interface Line {
  content: string;
  title?: string | null;
  memory_type?: string | null;
  tags?: Array<string> | null;
  agent?: string | null;
  user_id?: string | null;
}

export interface LinesImported {
  stored: number;
  /** Lines that were known already. */
  merged: number;
  quarantined: number;
  refused: number;
  /** Why lines were quarantined or refused, with their number. */
  reasons: Record<string, number>;
}

export interface ListArchived {
  /** The project; default: the configured one. */
  project_id?: string | null;
  /** forgotten, archived, quarantined or merged */
  cause?: ArchiveCause | null;
  /** Only what became of the memory with this id. */
  record_id?: string | null;
  /** The user whose preferences are meant; preferences belong to no project. */
  preferences_of?: string | null;
  limit?: number;
  /** The user who asks; private memories are visible to their user only. */
  user_id?: string | null;
}

export interface ListAudit {
  user_id?: string | null;
  agent?: string | null;
  action?: string | null;
  resource_type?: string | null;
  resource_id?: string | null;
  success?: boolean | null;
  since?: string | null;
  until?: string | null;
  limit?: number;
  /** next_before of the previous page. */
  before?: number | null;
}

export interface ListKeys {
}

export interface ListLearned {
  /** The project; default: the configured one. */
  project_id?: string | null;
  /** heuristic, outcome, domain_knowledge or anti_pattern */
  kind: "heuristic" | "outcome" | "domain_knowledge" | "anti_pattern";
  agent?: string | null;
  limit?: number;
  /** next_cursor of the previous page. */
  cursor?: string | null;
}

export interface ListMemories {
  /** The project; default: the configured one. */
  project_id?: string | null;
  /** Exactly these memories, in this order. */
  ids?: Array<string> | null;
  /** A filter. */
  where?: MemoryFilter | null;
  /** Sort fields; minus for descending. */
  sort?: Array<string>;
  limit?: number;
  offset?: number;
  cursor?: string | null;
  user_id?: string | null;
  session_id?: string | null;
}

export interface ListSessions {
  /** The project; default: the configured one. */
  project_id?: string | null;
  /** true for open sessions only, false for ended ones only. */
  active?: boolean | null;
  /** false without archived ones, true for these only, null for all. */
  archived?: boolean | null;
  session_type?: string | null;
  agent?: string | null;
  limit?: number;
}

export interface ListWebhooks {
}

export interface Maintain {
  /** Only these; default: all that are configured. */
  tasks?: Array<Task> | null;
  /** Count what would be done without changing anything. */
  dry_run?: boolean;
}

export interface Maintained {
  results: Array<TaskDone>;
  dry_run: boolean;
}

export interface MaintenanceState {
  /** Whether this service runs it at the interval. */
  is_running: boolean;
  /** The tasks that are configured. */
  tasks: Array<Task>;
  last_run?: LastRun | null;
  /** When a service runs it next. */
  next_run: string;
}

export interface Me {
  rights: Array<string>;
  user_id?: string | null;
  /** The project of requests that do not name one. */
  project_id: string;
  agent?: string | null;
  /** Whether the key is limited to a user, project or agent. */
  is_limited: boolean;
  /** The id of the API key; absent for the owner of the store. */
  key_id?: string | null;
  key_name?: string | null;
  version: string;
  storage: string;
  embedding_model: string;
  /** The names of the operations that the caller has the right to. */
  operations: Array<string>;
}

/** A general memory: something said, decided, done or noticed. */
export interface Memory {
  id?: string;
  user_id?: string | null;
  project_id?: string | null;
  session_id?: string | null;
  title?: string;
  content: string;
  content_json?: Record<string, unknown> | null;
  summary?: string | null;
  memory_type?: string;
  category?: string | null;
  tags?: Array<string>;
  importance_score?: number;
  priority?: number;
  decay_rate?: number;
  access_count?: number;
  last_accessed_at?: string;
  context_json?: Record<string, unknown>;
  git_context_json?: Record<string, unknown>;
  layer_session?: boolean;
  layer_project?: boolean;
  layer_global?: boolean;
  layer_temporal?: boolean;
  source_agent?: string | null;
  source_tool?: string | null;
  provenance?: string | null;
  external_id?: string | null;
  is_private?: boolean;
  is_archived?: boolean;
  is_active?: boolean;
  expires_at?: string | null;
  event_time?: string | null;
  created_at?: string;
  updated_at?: string;
  valid_from?: string | null;
  valid_until?: string | null;
}

/** The effect of a memory. */
export interface MemoryEffect {
  state: "helps" | "harms" | "no effect seen" | "not enough data";
  /** The difference of the success rates with and without, from -1 to 1. */
  effect: number;
  /** The lower limit of the 95 % interval, which holds at all times. */
  low: number;
  high: number;
  /** The tasks for which it was shown. */
  shown: number;
  /** The tasks for which it was withheld. */
  withheld: number;
  /** The success rate of the tasks for which it was shown. */
  rate_shown?: number | null;
  rate_withheld?: number | null;
  memory_id: string;
  kind: string;
  /** What it says, shortened; empty if it is no longer stored. */
  text: string;
  agent?: string | null;
  /** The effect with the memories shown beside it held fixed. */
  additive?: number | null;
  is_demoted: boolean;
  is_stored: boolean;
}

/** The kind of change. */
export type MemoryEventType = "created" | "updated" | "deleted" | "archived" | "restored" | "consolidated";

/** Conditions on memories; all that are given must hold. All `tags` must be present, of `any_tags` one. `layers` means one of them; a memory without layers belongs to the project layer. `content` maps keys or paths of `content_json`, as a tuple or with dots, to values: a list matches if it contains the value, a dict or list matches if all its parts do, a dict also matches a member of a list. Time ranges are half open: from `since` up to, but not including, `until`. `trust` is that of the source: trusted, untrusted, or unknown for memories of early versions. Archived, deleted and expired memories are left out unless included. */
export interface MemoryFilter {
  types?: Array<string>;
  categories?: Array<string>;
  tags?: Array<string>;
  any_tags?: Array<string>;
  layers?: Array<Layer>;
  user_id?: string | null;
  project_id?: string | null;
  session_id?: string | null;
  source_agent?: string | null;
  event_since?: string | null;
  event_until?: string | null;
  created_since?: string | null;
  created_until?: string | null;
  min_importance?: number | null;
  min_priority?: number | null;
  trust?: "trusted" | "untrusted" | "unknown" | null;
  content?: Record<string, unknown>;
  private?: boolean | null;
  include_archived?: boolean;
  include_deleted?: boolean;
  include_expired?: boolean;
}

export interface MemoryId {
  /** The project; default: the configured one. */
  project_id?: string | null;
  memory_id: string;
  /** The user who asks; private memories are visible to their user only. */
  user_id?: string | null;
}

export interface MemoryKept {
  /** A general memory: something said, decided, done or noticed. */
  memory: {
    id?: string;
    user_id?: string | null;
    project_id?: string | null;
    session_id?: string | null;
    title?: string;
    content: string;
    content_json?: Record<string, unknown> | null;
    summary?: string | null;
    memory_type?: string;
    category?: string | null;
    tags?: Array<string>;
    importance_score?: number;
    priority?: number;
    decay_rate?: number;
    access_count?: number;
    last_accessed_at?: string;
    context_json?: Record<string, unknown>;
    git_context_json?: Record<string, unknown>;
    layer_session?: boolean;
    layer_project?: boolean;
    layer_global?: boolean;
    layer_temporal?: boolean;
    source_agent?: string | null;
    source_tool?: string | null;
    provenance?: string | null;
    external_id?: string | null;
    is_private?: boolean;
    is_archived?: boolean;
    is_active?: boolean;
    expires_at?: string | null;
    event_time?: string | null;
    created_at?: string;
    updated_at?: string;
    valid_from?: string | null;
    valid_until?: string | null;
  };
  /** Pass it as expected_version to update without conflicts. */
  version?: number | null;
}

export interface MemoryPage {
  memories: Array<{
    id?: string;
    user_id?: string | null;
    project_id?: string | null;
    session_id?: string | null;
    title?: string;
    content: string;
    content_json?: Record<string, unknown> | null;
    summary?: string | null;
    memory_type?: string;
    category?: string | null;
    tags?: Array<string>;
    importance_score?: number;
    priority?: number;
    decay_rate?: number;
    access_count?: number;
    last_accessed_at?: string;
    context_json?: Record<string, unknown>;
    git_context_json?: Record<string, unknown>;
    layer_session?: boolean;
    layer_project?: boolean;
    layer_global?: boolean;
    layer_temporal?: boolean;
    source_agent?: string | null;
    source_tool?: string | null;
    provenance?: string | null;
    external_id?: string | null;
    is_private?: boolean;
    is_archived?: boolean;
    is_active?: boolean;
    expires_at?: string | null;
    event_time?: string | null;
    created_at?: string;
    updated_at?: string;
    valid_from?: string | null;
    valid_until?: string | null;
  }>;
  /** Pass it as cursor for the next page; absent on the last page. */
  next_cursor?: string | null;
}

/** A relationship between two memories. */
export interface MemoryRelationship {
  id?: string;
  from_memory_id: string;
  to_memory_id: string;
  relationship_type: string;
  strength?: number;
  context?: string | null;
  auto_detected?: boolean;
  metadata?: Record<string, unknown>;
  created_at?: string;
  created_by?: string | null;
}

export interface MemorySynced {
  record_id: string;
  kind?: string | null;
  exists: boolean;
  success: boolean;
  engines: Array<EngineSynced>;
}

export interface MergeRecords {
  /** The project; default: the configured one. */
  project_id?: string | null;
  kind: "memory" | "heuristic" | "domain_knowledge" | "user_preference";
  /** The one that stays. */
  keep_id: string;
  merge_ids: Array<string>;
  /** The user who asks; private memories are visible to their user only. */
  user_id?: string | null;
}

export interface Mine {
  /** The project; default: the configured one. */
  project_id?: string | null;
  min_occurrences?: number;
}

export interface Mined {
  created: Array<string>;
  updated: Array<string>;
  removed: Array<string>;
  unchanged: Array<string>;
}

export interface NamedEngine {
  /** The engine: qdrant, neo4j or redis. */
  engine: string;
}

export interface Neighbourhood {
  /** kind:id of the node in the middle. */
  center: string;
  nodes: Array<Node>;
  edges: Array<Edge>;
  /** Whether it has more neighbours than the limit. */
  more?: boolean;
}

export interface NextWorkItem {
  /** The project; default: the configured one. */
  project_id?: string | null;
  agent?: string | null;
  /** priority, blocked_unblock, quick_win or fifo */
  strategy?: Strategy;
}

export interface Node {
  kind: string;
  id: string;
  label: string;
  agent?: string | null;
  type?: string | null;
  created_at?: string | null;
}

export interface NodesFound {
  nodes: Array<Node>;
}

export interface NotTheSame {
  /** The project; default: the configured one. */
  project_id?: string | null;
  /** The lesson that counted the strategy as its own. */
  heuristic_id: string;
  /** The strategy, exactly as in its outcomes. */
  strategy: string;
  /** The agent of the lesson. */
  agent: string;
}

export interface Nothing {
}

export interface Observe {
  /** The project; default: the configured one. */
  project_id?: string | null;
  /** What was observed. */
  signal: "test-results" | "exit-status" | "correction" | "handoff" | "conversation" | "thanks" | "retry";
  /** Whether it indicates a success. */
  success: boolean;
  agent: string;
  /** The task that retrieve was asked about. */
  task?: string | null;
  /** Instead of the task: the retrieval_id of the memories. */
  retrieval_id?: string | null;
}

export interface ObservedOutcome {
  /** The retrieval it counts for; none if nothing is measured. */
  retrieval_id?: string | null;
  signal: "test-results" | "exit-status" | "correction" | "handoff" | "conversation" | "thanks" | "retry";
  /** What it counts where nothing is reported; a reported outcome counts 1 or more. */
  weight: number;
}

export interface OfFact {
  /** The project; default: the configured one. */
  project_id?: string | null;
  /** The id of a memory, a fact or a preference. */
  memory_id: string;
  /** The user who asks, or whose preference it is. */
  user_id?: string | null;
}

export interface OfRecord {
  /** The project; default: the configured one. */
  project_id?: string | null;
  id: string;
  kind?: "memory" | "heuristic" | "outcome" | "domain_knowledge" | "anti_pattern";
  /** The user who asks; private memories are visible to their user only. */
  user_id?: string | null;
}

export interface OfSession {
  session_id: string;
}

export interface OfUser {
  /** The user; default: the key's user. */
  user_id?: string | null;
  category?: string | null;
}

export interface OneEngine {
  /** Only this engine: qdrant, neo4j or redis; default: all configured ones. */
  engine?: string | null;
}

export interface OneForgotten {
  id: string;
  kind: string;
}

export interface OneRecord {
  /** The id of a memory, or of another record that the engines follow. */
  memory_id: string;
}

/** The result of a task and the strategy that was used; `lesson_id` is the lesson that it is evidence for. Its vector is that of the task alone, because outcomes are compared by task. */
export interface Outcome {
  id?: string;
  agent: string;
  project_id: string;
  task_type?: string | null;
  task_description: string;
  success?: boolean;
  strategy_used?: string | null;
  lesson_id?: string | null;
  duration_ms?: number | null;
  error_message?: string | null;
  user_feedback?: string | null;
  timestamp?: string | null;
  metadata?: Record<string, unknown>;
}

export interface PastHit {
  /** A general memory: something said, decided, done or noticed. */
  memory: {
    id?: string;
    user_id?: string | null;
    project_id?: string | null;
    session_id?: string | null;
    title?: string;
    content: string;
    content_json?: Record<string, unknown> | null;
    summary?: string | null;
    memory_type?: string;
    category?: string | null;
    tags?: Array<string>;
    importance_score?: number;
    priority?: number;
    decay_rate?: number;
    access_count?: number;
    last_accessed_at?: string;
    context_json?: Record<string, unknown>;
    git_context_json?: Record<string, unknown>;
    layer_session?: boolean;
    layer_project?: boolean;
    layer_global?: boolean;
    layer_temporal?: boolean;
    source_agent?: string | null;
    source_tool?: string | null;
    provenance?: string | null;
    external_id?: string | null;
    is_private?: boolean;
    is_archived?: boolean;
    is_active?: boolean;
    expires_at?: string | null;
    event_time?: string | null;
    created_at?: string;
    updated_at?: string;
    valid_from?: string | null;
    valid_until?: string | null;
  };
  score: number;
}

export interface PastHits {
  hits: Array<PastHit>;
}

/** A path between two memories: the memories, and the relation of each step. */
export interface Path {
  memory_ids: Array<string>;
  relations: Array<string>;
  strength: number;
}

export interface Paths {
  paths: Array<Path>;
}

export interface Pin {
  /** The project; default: the configured one. */
  project_id?: string | null;
  kind: "memory" | "heuristic" | "outcome" | "domain_knowledge" | "anti_pattern" | "user_preference";
  ids: Array<string>;
  /** The user who asks; private memories are visible to their user only. */
  user_id?: string | null;
  /** false takes the pin off. */
  pinned?: boolean;
}

export interface PinnedRecords {
  changed: Array<string>;
}

/** What was known at a time: the expected success rate and its 90 % credible interval. */
export interface Point {
  at: string;
  expected: number;
  low: number;
  high: number;
  tried: number;
  succeeded: number;
  /** The outcome at this time, if there was one alone. */
  success?: boolean | null;
  outcome_id?: string | null;
}

export interface PreferenceKept {
  /** How a user wants things done. */
  preference: {
    id?: string;
    user_id: string;
    category?: string | null;
    preference: string;
    source?: string | null;
    confidence?: number;
    timestamp?: string | null;
    metadata?: Record<string, unknown>;
  };
}

export interface Preferences {
  preferences: Array<{
    id?: string;
    user_id: string;
    category?: string | null;
    preference: string;
    source?: string | null;
    confidence?: number;
    timestamp?: string | null;
    metadata?: Record<string, unknown>;
  }>;
}

export interface ProgressMade {
  summary: string;
  total: number;
  done: number;
  in_progress: number;
  blocked: number;
  failed: number;
  completion: number;
}

export interface ProgressOf {
  /** The project; default: the configured one. */
  project_id?: string | null;
  agent?: string | null;
}

/** Something a user works on. */
export interface Project {
  id?: string;
  user_id: string;
  name: string;
  description?: string | null;
  path?: string | null;
  git_remote_url?: string | null;
  git_branch?: string | null;
  project_type?: string | null;
  language?: string | null;
  framework?: string | null;
  config_json?: Record<string, unknown>;
  created_at?: string;
  updated_at?: string;
  last_accessed_at?: string;
  is_active?: boolean;
}

export interface ProjectCounts {
  stats: ProjectStats;
}

export interface ProjectKept {
  /** Something a user works on. */
  project: {
    id?: string;
    user_id: string;
    name: string;
    description?: string | null;
    path?: string | null;
    git_remote_url?: string | null;
    git_branch?: string | null;
    project_type?: string | null;
    language?: string | null;
    framework?: string | null;
    config_json?: Record<string, unknown>;
    created_at?: string;
    updated_at?: string;
    last_accessed_at?: string;
    is_active?: boolean;
  };
}

export interface ProjectList {
  projects: Array<{
    id?: string;
    user_id: string;
    name: string;
    description?: string | null;
    path?: string | null;
    git_remote_url?: string | null;
    git_branch?: string | null;
    project_type?: string | null;
    language?: string | null;
    framework?: string | null;
    config_json?: Record<string, unknown>;
    created_at?: string;
    updated_at?: string;
    last_accessed_at?: string;
    is_active?: boolean;
  }>;
}

/** A recurring pattern of a project. */
export interface ProjectPattern {
  id?: string;
  project_id: string;
  pattern_type: string;
  pattern_name: string;
  pattern_description: string;
  pattern_data_json?: Record<string, unknown>;
  success_rate?: number;
  usage_count?: number;
  memory_ids?: Array<string>;
  created_at?: string;
  updated_at?: string;
  last_used_at?: string;
}

/** The number of records that a store holds for a project. */
export interface ProjectStats {
  project_id: string;
  memories: number;
  memories_by_type: Record<string, number>;
  memories_by_layer: Record<string, number>;
  heuristics: number;
  outcomes: number;
  success_rate?: number | null;
  anti_patterns: number;
  domain_knowledge: number;
  patterns: number;
  sessions: number;
  active_sessions: number;
  handoffs: number;
  work_items: Record<string, number>;
  last_activity?: string | null;
}

export interface ProjectsOf {
  user_id?: string | null;
  active_only?: boolean;
}

export interface Promote {
  /** The project; default: the configured one. */
  project_id?: string | null;
  /** Only these; default: all. */
  memory_ids?: Array<string> | null;
  /** Show what the rules propose without changing anything. */
  dry_run?: boolean;
}

export interface PromotionMade {
  memory_id: string;
  before: Array<string>;
  to: string;
  rule: string;
  reason: string;
}

export interface PromotionsMade {
  promotions: Array<PromotionMade>;
  dry_run: boolean;
}

/** Why a memory is forgotten. */
export type PruneReason = "expired" | "old" | "stale" | "low_confidence" | "decayed" | "space";

/** A memory that was forgotten, or in a dry run would be, with the reason. */
export interface Pruned {
  kind: string;
  id: string;
  reason: PruneReason;
  rule: string;
}

export interface Purge {
  /** The project; default: the configured one. */
  project_id?: string | null;
  /** Delete what was archived more than this many days ago. */
  retention_days?: number;
  /** The user whose preferences are meant; preferences belong to no project. */
  preferences_of?: string | null;
}

export interface Purged {
  purged: number;
}

export interface PutAway {
  /** Pass them to restore to undo it. */
  archive_ids: Array<string>;
  /** Pass it to restore as well, for preferences. */
  preferences_of?: string | null;
}

export interface Quarantine {
  /** The project; default: the configured one. */
  project_id?: string | null;
  kind: "memory" | "heuristic" | "outcome" | "domain_knowledge" | "anti_pattern" | "user_preference";
  ids: Array<string>;
  /** The user who asks; private memories are visible to their user only. */
  user_id?: string | null;
  /** Why it is put aside. */
  reason?: string;
}

export interface QueryGraph {
  /** The project; default: the configured one. */
  project_id?: string | null;
  names?: Array<string>;
  entity_types?: Array<string>;
  relation_types?: Array<string>;
  max_hops?: number;
  limit?: number;
  direction?: "out" | "in" | "both";
  min_confidence?: number;
}

export interface ReadBy {
  session_id?: string | null;
  /** The name of the session. */
  session?: string;
  agent?: string | null;
  reads: number;
  helpful: number;
  unhelpful: number;
  last_at: string;
}

export interface ReadRecord {
  /** The project; default: the configured one. */
  project_id?: string | null;
  kind: "memory" | "heuristic" | "outcome" | "domain_knowledge" | "anti_pattern" | "user_preference";
  id: string;
  /** As it was recorded at this time. */
  as_of?: string | null;
  /** The user who asks; private memories are visible to their user only. */
  user_id?: string | null;
}

export interface ReadTimeline {
  /** The project; default: the configured one. */
  project_id?: string | null;
  /** From this time on. */
  since?: string | null;
  /** Before this time; default: now. */
  until?: string | null;
  agent?: string | null;
  /** Only these kinds; default: all. */
  kinds?: Array<"memory" | "heuristic" | "outcome" | "domain_knowledge" | "anti_pattern" | "user_preference"> | null;
  /** Also the starts and ends of sessions, and handoffs. */
  sessions?: boolean;
  limit?: number;
  /** The user who asks; private memories are visible to their user only. */
  user_id?: string | null;
}

export interface Reason {
  /** The project; default: the configured one. */
  project_id?: string | null;
  kind: "heuristic" | "outcome" | "domain_knowledge" | "anti_pattern";
  id: string;
  /** Why it is forgotten; kept in the archive. */
  reason?: string;
}

export interface Rebuilding {
  done: number;
  total: number;
}

export interface Recommend {
  /** The project; default: the configured one. */
  project_id?: string | null;
  task: string;
  agent: string;
  /** The strategies to choose from; default: all known ones. */
  among?: Array<string> | null;
  /** Also use evidence from less similar tasks, and sometimes recommend rarely tried strategies. */
  explore?: boolean;
}

export interface Recommended {
  /** For an agent without memories: the known agent that was probably meant. */
  hint?: string;
  /** The recommended strategy; absent if nothing was tried on a similar task. */
  strategy?: string | null;
  support: "supported" | "weak" | "none";
  reason: string;
  /** The evidence for each strategy, best first. */
  ranked: Array<Assessed>;
}

export interface RecordKept {
  row: Row;
}

export interface RecordRead {
  row: Row;
  /** The whole text. */
  text: string;
  /** Every stored field, by name. */
  fields: Record<string, unknown>;
  /** The 90 % credible interval of a lesson's success rate. */
  interval?: Array<number> | null;
}

export interface Reindex {
  /** The project; default: the configured one. */
  project_id?: string | null;
}

export interface Reindexed {
  model: string;
  /** The number of vectors created. */
  embedded: number;
}

export interface Reinstate {
  /** The project; default: the configured one. */
  project_id?: string | null;
  kind: "heuristic" | "domain_knowledge";
  ids: Array<string>;
}

export interface Reinstated {
  reinstated: Array<string>;
}

export interface Reject {
  /** The project; default: the configured one. */
  project_id?: string | null;
  kind: "memory" | "heuristic" | "outcome" | "domain_knowledge" | "anti_pattern" | "user_preference";
  ids?: Array<string>;
  /** The user who asks; private memories are visible to their user only. */
  user_id?: string | null;
  /** Also these rows of the archive, such as quarantined texts. */
  archive_ids?: Array<string>;
  reason?: string;
}

export interface Relate {
  /** The project; default: the configured one. */
  project_id?: string | null;
  from_id: string;
  to_id: string;
  /** relates_to, contradicts, builds_on, resolves, supersedes, reply_to … or a name of your choice */
  relation: string;
  strength?: number | null;
  /** Why they are related. */
  context?: string | null;
  user_id?: string | null;
}

export interface RelatedMemories {
  related: Array<RelatedMemory>;
}

export interface RelatedMemory {
  /** A general memory: something said, decided, done or noticed. */
  memory: {
    id?: string;
    user_id?: string | null;
    project_id?: string | null;
    session_id?: string | null;
    title?: string;
    content: string;
    content_json?: Record<string, unknown> | null;
    summary?: string | null;
    memory_type?: string;
    category?: string | null;
    tags?: Array<string>;
    importance_score?: number;
    priority?: number;
    decay_rate?: number;
    access_count?: number;
    last_accessed_at?: string;
    context_json?: Record<string, unknown>;
    git_context_json?: Record<string, unknown>;
    layer_session?: boolean;
    layer_project?: boolean;
    layer_global?: boolean;
    layer_temporal?: boolean;
    source_agent?: string | null;
    source_tool?: string | null;
    provenance?: string | null;
    external_id?: string | null;
    is_private?: boolean;
    is_archived?: boolean;
    is_active?: boolean;
    expires_at?: string | null;
    event_time?: string | null;
    created_at?: string;
    updated_at?: string;
    valid_from?: string | null;
    valid_until?: string | null;
  };
  relation: string;
  depth: number;
  /** The previous memory on the path. */
  before_id: string;
}

export interface RelatedTo {
  /** The project; default: the configured one. */
  project_id?: string | null;
  memory_id: string;
  relations?: Array<string> | null;
  direction?: "out" | "in" | "both";
  max_depth?: number;
  min_strength?: number;
  limit?: number;
  user_id?: string | null;
}

export interface RelationKept {
  /** A relationship between two memories. */
  relationship: {
    id?: string;
    from_memory_id: string;
    to_memory_id: string;
    relationship_type: string;
    strength?: number;
    context?: string | null;
    auto_detected?: boolean;
    metadata?: Record<string, unknown>;
    created_at?: string;
    created_by?: string | null;
  };
}

export interface RelationTold {
  /** supersedes, superseded_by, contradicts, builds_on, distinct_from … */
  relation: string;
  other_id: string;
  /** The text of the other fact. */
  other: string;
  probability: number;
  /** Whether the judge found the relation; otherwise a caller stated it. */
  detected: boolean;
  /** Which judge found it, with its verdict and probability. */
  evidence?: Array<string>;
  /** The date of this fact. */
  date?: string | null;
  other_date?: string | null;
  related_at: string;
}

export interface RelationsTold {
  kind: string;
  text: string;
  relations: Array<RelationTold>;
  /** Near-duplicates that were merged into this fact. */
  merged?: Array<alma__operations__facts__Merged>;
}

/** A directed relationship from a source to a target entity. */
export interface Relationship {
  id: string;
  source_id: string;
  target_id: string;
  relation_type: string;
  properties?: Record<string, unknown>;
  confidence?: number;
  created_at?: string;
}

export interface ReleaseMemories {
  /** The project; default: the configured one. */
  project_id?: string | null;
  session_id: string;
  memory_ids: Array<string>;
}

export interface Released {
  released: number;
}

export interface RemoveWebhook {
  /** The name of the webhook in the list. */
  name: string;
}

export interface RepairSync {
  /** Only this engine: qdrant, neo4j or redis; default: all configured ones. */
  engine?: string | null;
  /** Only these issues, as sync_verify lists them; default: whatever differs. */
  issues?: Array<FoundIssue> | null;
}

export interface Report {
  /** The project; default: the configured one. */
  project_id?: string | null;
  /** Only tasks of this agent. */
  agent?: string | null;
  /** Also tasks of which an outcome was only observed, with less weight. */
  signals?: boolean;
  /** Only tasks begun since this time. */
  since?: string | null;
  /** The maximum number of memories. */
  limit?: number;
}

export interface Restore {
  /** The project; default: the configured one. */
  project_id?: string | null;
  /** Ids of memories or of archive rows. */
  ids: Array<string>;
  /** The user whose preferences are meant; preferences belong to no project. */
  preferences_of?: string | null;
}

export interface RestoreMemory {
  /** The project; default: the configured one. */
  project_id?: string | null;
  memory_id: string;
  /** The user who asks; private memories are visible to their user only. */
  user_id?: string | null;
  reason?: string | null;
}

export interface RestoreVersion {
  /** The project; default: the configured one. */
  project_id?: string | null;
  id: string;
  kind?: "memory" | "heuristic" | "outcome" | "domain_knowledge" | "anti_pattern";
  /** The user who asks; private memories are visible to their user only. */
  user_id?: string | null;
  number: number;
  /** Why; kept in the history. */
  reason: string;
}

export interface Restored {
  /** The ids of the restored memories. */
  restored: Array<string>;
}

export interface Retried {
  /** The number of records that the next run tries again. */
  retried: number;
}

export interface Retrieve {
  /** The project; default: the configured one. */
  project_id?: string | null;
  /** The task the agent is about to do, in one or a few sentences. */
  task: string;
  /** The agent that does the task. */
  agent: string;
  /** Whose preferences apply. */
  user_id?: string | null;
  /** The maximum number of memories of each kind. */
  top_k?: number;
  /** The agent's session, to include memories visible only in it. */
  session_id?: string | null;
  /** The token budget of the prompt. */
  max_tokens?: number;
  /** Include weakly relevant memories, and show them in the prompt. */
  weak?: boolean;
  /** Return the terms of every memory's score, and what was dropped and why. */
  explain?: boolean;
  /** The id of a memory: explain at which stage it was dropped. */
  why_not?: string | null;
  /** A session: leave out what a retrieve with this name showed, unless it changed, and return a stable block for the session and a block for the task. */
  already_shown?: string | null;
  /** Search what was recorded at this time, by words and meaning, without the relevance filter. */
  as_of?: string | null;
}

export interface Retrieved {
  /** The memories as text for a language model, within the token budget. */
  prompt: string;
  /** The length of the prompt in tokens. */
  prompt_tokens?: number;
  total_items: number;
  heuristics?: Array<{
    id?: string;
    agent: string;
    project_id: string;
    condition: string;
    strategy: string;
    confidence?: number;
    occurrence_count?: number;
    success_count?: number;
    weight_for?: number | null;
    weight_against?: number | null;
    outcomes_for?: Array<string>;
    outcomes_against?: Array<string>;
    last_validated?: string | null;
    created_at?: string | null;
    metadata?: Record<string, unknown>;
  }>;
  anti_patterns?: Array<{
    id?: string;
    agent: string;
    project_id: string;
    pattern: string;
    why_bad?: string | null;
    better_alternative?: string | null;
    occurrence_count?: number;
    outcomes_for?: Array<string>;
    last_seen?: string | null;
    created_at?: string | null;
    metadata?: Record<string, unknown>;
  }>;
  preferences?: Array<{
    id?: string;
    user_id: string;
    category?: string | null;
    preference: string;
    source?: string | null;
    confidence?: number;
    timestamp?: string | null;
    metadata?: Record<string, unknown>;
  }>;
  domain_knowledge?: Array<{
    id?: string;
    agent: string;
    project_id: string;
    domain?: string | null;
    fact: string;
    source?: string | null;
    confidence?: number;
    last_verified?: string | null;
    metadata?: Record<string, unknown>;
  }>;
  outcomes?: Array<{
    id?: string;
    agent: string;
    project_id: string;
    task_type?: string | null;
    task_description: string;
    success?: boolean;
    strategy_used?: string | null;
    lesson_id?: string | null;
    duration_ms?: number | null;
    error_message?: string | null;
    user_feedback?: string | null;
    timestamp?: string | null;
    metadata?: Record<string, unknown>;
  }>;
  memories?: Array<{
    id?: string;
    user_id?: string | null;
    project_id?: string | null;
    session_id?: string | null;
    title?: string;
    content: string;
    content_json?: Record<string, unknown> | null;
    summary?: string | null;
    memory_type?: string;
    category?: string | null;
    tags?: Array<string>;
    importance_score?: number;
    priority?: number;
    decay_rate?: number;
    access_count?: number;
    last_accessed_at?: string;
    context_json?: Record<string, unknown>;
    git_context_json?: Record<string, unknown>;
    layer_session?: boolean;
    layer_project?: boolean;
    layer_global?: boolean;
    layer_temporal?: boolean;
    source_agent?: string | null;
    source_tool?: string | null;
    provenance?: string | null;
    external_id?: string | null;
    is_private?: boolean;
    is_archived?: boolean;
    is_active?: boolean;
    expires_at?: string | null;
    event_time?: string | null;
    created_at?: string;
    updated_at?: string;
    valid_from?: string | null;
    valid_until?: string | null;
  }>;
  instructions?: Array<Memory>;
  /** By memory id: by what it was superseded or contradicted, and when. */
  notes?: Record<string, Array<string>>;
  /** By lesson id: corroborated, established, contested or retired; others are provisional. */
  maturity?: Record<string, string>;
  /** With already_shown: the same text in every answer of the session, to begin prompts with. */
  stable_block?: TextBlock | null;
  /** With already_shown: what the session was not shown yet. */
  task_block?: TextBlock | null;
  /** For learn, where the benefit of memories is measured. */
  retrieval_id?: string | null;
  retrieval_time_ms?: number | null;
  /** What was unavailable during retrieval; empty if everything worked. */
  degraded?: string;
  /** For an agent without memories: the known agent that was probably meant. */
  hint?: string;
  explanations?: Array<Explanation> | null;
  /** What shares words with the task and was left out, with the stage and the reason. */
  dropped?: Array<DroppedCandidate> | null;
  why_not?: alma__model__slice__Dropped | null;
}

export interface RetryWebhook {
  /** The name of the webhook in the list. */
  name: string;
}

export interface RevokeKey {
  /** The id of the key, or its prefix: alma_…. */
  key_id: string;
}

/** A right of a caller; no right includes another. */
export type Right = "read" | "write" | "delete" | "admin";

/** A record of any kind, with the fields that all kinds have in some form. */
export interface Row {
  kind: string;
  id: string;
  /** The task, condition, domain or title. */
  title?: string;
  /** What it says; long texts are cut. */
  text: string;
  /** Whether the text is longer. */
  is_cut?: boolean;
  agent?: string | null;
  user_id?: string | null;
  project_id?: string | null;
  session_id?: string | null;
  /** The memory type, task type, domain or category. */
  type?: string | null;
  tags?: Array<string>;
  /** The source of a fact or preference, or the tool of a memory. */
  source?: string | null;
  /** Where the text comes from: user, agent, tool, web, import … */
  provenance?: string | null;
  /** Of the provenance: trusted, untrusted, or unknown. */
  trust?: "trusted" | "untrusted" | "unknown";
  confidence?: number | null;
  importance?: number | null;
  tried?: number | null;
  succeeded?: number | null;
  success?: boolean | null;
  pinned?: boolean;
  /** active, archived, deleted or expired; or why it is in the archive. */
  state?: string;
  created_at?: string | null;
  updated_at?: string | null;
}

export interface RunSync {
  /** Only this engine: qdrant, neo4j or redis; default: all configured ones. */
  engine?: string | null;
  /** Seconds to wait for records that another relay holds or that failed. */
  wait_seconds?: number;
}

export interface SaveState {
  /** The project; default: the configured one. */
  project_id?: string | null;
  agent: string;
  /** The state in a session; default: outside of any session. */
  session_id?: string | null;
  state: Record<string, unknown>;
  ttl_seconds?: number | null;
  /** Change only the given keys. */
  merge?: boolean;
}

export interface SearchMemories {
  /** The project; default: the configured one. */
  project_id?: string | null;
  query: string;
  mode?: "hybrid" | "semantic" | "keyword";
  where?: MemoryFilter | null;
  /** The least cosine; default in semantic mode: the setting semantic_search_threshold. */
  min_similarity?: number | null;
  limit?: number;
  user_id?: string | null;
  session_id?: string | null;
  /** Choose the layers to search from the words of the query. */
  route_layers?: boolean;
  /** The id of a memory: explain why it was not found. */
  why_not?: string | null;
}

export interface SearchPast {
  /** The project; default: the configured one. */
  project_id?: string | null;
  query: string;
  /** Search what had been recorded by this time. */
  known_at?: string | null;
  /** Search what was true at this time. */
  true_at?: string | null;
  mode?: "keyword" | "semantic" | "hybrid";
  /** The least cosine; default in semantic mode: the setting semantic_search_threshold. */
  min_similarity?: number | null;
  limit?: number;
  user_id?: string | null;
}

/** A sentence of a summary and the memory that it comes from. */
export interface Sentence {
  text: string;
  memory_id: string;
}

export interface Separated {
  /** The outcomes that now belong to a separate lesson. */
  outcome_ids: Array<string>;
}

/** A period of work or conversation. */
export interface Session {
  id?: string;
  user_id?: string | null;
  project_id?: string | null;
  agent?: string | null;
  name?: string;
  description?: string | null;
  session_type?: string;
  goal?: string | null;
  summary?: string | null;
  git_branch?: string | null;
  git_commit?: string | null;
  working_directory?: string | null;
  context_json?: Record<string, unknown>;
  metadata?: Record<string, unknown>;
  parent_session_id?: string | null;
  created_at?: string;
  updated_at?: string;
  last_active_at?: string;
  ended_at?: string | null;
  is_active?: boolean;
  is_archived?: boolean;
}

/** The handoff of one session to the next. */
export interface SessionHandoff {
  id?: string;
  project_id: string;
  agent: string;
  session_id: string;
  goal?: string | null;
  last_action: string;
  last_outcome?: string | null;
  current_goal?: string | null;
  key_decisions?: Array<string>;
  active_files?: Array<string>;
  blockers?: Array<string>;
  next_steps?: Array<string>;
  confidence_level?: number;
  risk_flags?: Array<string>;
  test_status?: Record<string, unknown>;
  duration_ms?: number | null;
  metadata?: Record<string, unknown>;
  created_at?: string;
}

export interface SessionId {
  /** The project; default: the configured one. */
  project_id?: string | null;
  session_id: string;
}

export interface SessionList {
  sessions: Array<{
    id?: string;
    user_id?: string | null;
    project_id?: string | null;
    agent?: string | null;
    name?: string;
    description?: string | null;
    session_type?: string;
    goal?: string | null;
    summary?: string | null;
    git_branch?: string | null;
    git_commit?: string | null;
    working_directory?: string | null;
    context_json?: Record<string, unknown>;
    metadata?: Record<string, unknown>;
    parent_session_id?: string | null;
    created_at?: string;
    updated_at?: string;
    last_active_at?: string;
    ended_at?: string | null;
    is_active?: boolean;
    is_archived?: boolean;
  }>;
}

export interface SessionOpen {
  /** A period of work or conversation. */
  session: {
    id?: string;
    user_id?: string | null;
    project_id?: string | null;
    agent?: string | null;
    name?: string;
    description?: string | null;
    session_type?: string;
    goal?: string | null;
    summary?: string | null;
    git_branch?: string | null;
    git_commit?: string | null;
    working_directory?: string | null;
    context_json?: Record<string, unknown>;
    metadata?: Record<string, unknown>;
    parent_session_id?: string | null;
    created_at?: string;
    updated_at?: string;
    last_active_at?: string;
    ended_at?: string | null;
    is_active?: boolean;
    is_archived?: boolean;
  };
  /** The previous session, after a switch. */
  previous?: Session | null;
}

export interface SessionRemoved {
  deleted: boolean;
}

export interface SetSetting {
  /** The user; default: the key's user. */
  user_id?: string | null;
  key: string;
  /** The new value, of the setting's type. */
  value: boolean | number | string;
}

export interface SettingList {
  settings: Array<SettingShown>;
}

export interface SettingShown {
  key: string;
  value: boolean | number | string;
  default: boolean | number | string;
  /** Where the value comes from: default, model (the embedding model), global or user. */
  source: string;
  description: string;
  is_user_configurable: boolean;
}

export interface Side {
  id: string;
  agent: string;
  condition: string;
  strategy: string;
  expected: number;
  low: number;
  high: number;
  tried: number;
  succeeded: number;
}

export interface Signal {
  strategy: string;
  confidence_score: number;
  /** strong_yes, yes, neutral, caution or avoid */
  recommendation: string;
  reasoning: string;
  risks?: Array<string>;
  opportunities?: Array<string>;
  assessed: Assessed;
}

export interface Signals {
  /** For an agent without memories: the known agent that was probably meant. */
  hint?: string;
  signals: Array<Signal>;
}

export interface Similar {
  /** The project; default: the configured one. */
  project_id?: string | null;
  /** A description of the pattern. */
  pattern: string;
  /** Also search the other projects of this user. */
  user_id?: string | null;
  min_similarity?: number;
  limit?: number;
}

/** A similar pattern, its similarity and the shared words. */
export interface SimilarPattern {
  /** A recurring pattern of a project. */
  pattern: {
    id?: string;
    project_id: string;
    pattern_type: string;
    pattern_name: string;
    pattern_description: string;
    pattern_data_json?: Record<string, unknown>;
    success_rate?: number;
    usage_count?: number;
    memory_ids?: Array<string>;
    created_at?: string;
    updated_at?: string;
    last_used_at?: string;
  };
  similarity: number;
  shared_words: Array<string>;
}

export interface SimilarPatterns {
  patterns: Array<SimilarPattern>;
}

export interface SkillDifference {
  difference: "changed" | "only in the files" | "only in the store";
  condition: string;
  path?: string | null;
  id?: string | null;
  /** What the file says to do. */
  in_file?: string | null;
  /** What the store says to do. */
  in_store?: string | null;
}

export interface SkillDifferences {
  /** The number of lessons that the files and the store both have. */
  same: number;
  differences: Array<SkillDifference>;
}

export interface StateCleared {
  cleared: boolean;
}

export interface StateKept {
  state?: {
    id?: string;
    agent_id: string;
    session_id?: string | null;
    state_data: Record<string, unknown>;
    created_at?: string;
    updated_at?: string;
    expires_at?: string | null;
  } | null;
}

export interface StateOf {
  /** The project; default: the configured one. */
  project_id?: string | null;
  agent: string;
  /** The state in a session; default: outside of any session. */
  session_id?: string | null;
}

export interface Stats {
  /** For an agent without memories: the known agent that was probably meant. */
  hint?: string;
  project_id: string;
  agent?: string | null;
  counts: Record<string, unknown>;
}

export interface StatsOf {
  /** The project; default: the configured one. */
  project_id?: string | null;
  agent?: string | null;
}

export interface StatsOfProject {
  /** The project; default: the configured one. */
  project_id?: string | null;
}

/** How the next item is chosen. */
export type Strategy = "priority" | "blocked_unblock" | "quick_win" | "fifo";

export interface Summarize {
  /** The project; default: the configured one. */
  project_id?: string | null;
  /** Which memories to summarize, for example a time range. */
  where?: MemoryFilter | null;
  max_tokens?: number;
  user_id?: string | null;
  session_id?: string | null;
}

export interface Summarized {
  text: string;
  method: string;
  sentences?: Array<Sentence>;
  memory_ids?: Array<string>;
  degraded?: string;
}

export interface Supersede {
  /** The project; default: the configured one. */
  project_id?: string | null;
  kind: "memory" | "domain_knowledge" | "user_preference";
  /** What no longer holds. */
  id: string;
  /** What holds now. */
  text: string;
  reason?: string;
  /** The user who asks; private memories are visible to their user only. */
  user_id?: string | null;
}

export interface SwitchSession {
  /** The project; default: the configured one. */
  project_id?: string | null;
  session_id: string;
  /** Reopen the session if it has ended. */
  reopen?: boolean;
}

export interface SyncRan {
  engines: Array<EngineRun>;
}

export interface SyncRepaired {
  /** Whether every engine could be repaired, and no issue remains. */
  success: boolean;
  repaired: number;
  remaining: Array<Issue>;
  /** Why an engine could not be repaired, by its name. */
  problems: Record<string, string>;
}

export interface SyncVerified {
  is_consistent: boolean;
  verified_at: string;
  engines: Array<EngineVerified>;
  issues: Array<Issue>;
}

/** The tasks of maintenance, in the order in which they run. */
export type Task = "expire" | "decay" | "cleanup" | "benefit" | "retention" | "sessions" | "outbox" | "audit";

export interface TaskDone {
  task: Task;
  /** How many records it archived, deleted or changed, or would. */
  count: number;
  error?: string | null;
  /** Whether the task is configured; if not, nothing was done. */
  is_on: boolean;
}

export interface TextBlock {
  text: string;
  tokens: number;
  /** The memories in it. */
  ids?: Array<string>;
}

export interface TimeCounts {
  /** The start of each part. */
  starts: Array<string>;
  until: string;
  /** For each kind, the number of records created in each part. */
  counts: Record<string, Array<number>>;
  /** The outcomes that succeeded in each part. */
  succeeded: Array<number>;
  /** For each cause (forgotten, quarantined, merged …), what was put into the archive in each part. */
  archived: Record<string, Array<number>>;
  /** The number of records of each kind; with until, of those that were created before. */
  totals: Record<string, number>;
}

export interface Timeline {
  events: Array<TimelineEvent>;
  /** Pass it as until for the next page. */
  next_until?: string | null;
}

export interface TimelineEvent {
  at: string;
  /** created, succeeded, failed, archived, session_started, session_ended or handoff */
  event: string;
  kind: string;
  id: string;
  agent?: string | null;
  title?: string;
  text?: string;
  session_id?: string | null;
}

export interface ToForget {
  kind: string;
  id: string;
  reason: string;
  rule: string;
  /** The beginning of its text, for the first 100. */
  text?: string;
}

export interface Unrelate {
  /** The project; default: the configured one. */
  project_id?: string | null;
  from_id: string;
  to_id: string;
  relation: string;
  user_id?: string | null;
}

export interface Unrelated {
  removed: boolean;
}

export interface UpdateMemory {
  /** The project; default: the configured one. */
  project_id?: string | null;
  title?: string | null;
  summary?: string | null;
  /** decision, task, progress, insight, pattern, error, solution, note, conversation … */
  memory_type?: string | null;
  /** Chosen by rules if not given. */
  category?: string | null;
  tags?: Array<string> | null;
  /** From 0 to 1; chosen by rules if not given. */
  importance_score?: number | null;
  /** Importance from 1 to 10; give one of the two. */
  priority?: number | null;
  /** session, project, global, temporal; chosen by rules if not given. */
  layers?: Array<Layer> | null;
  /** The lifetime in seconds. */
  ttl_seconds?: number | null;
  /** When it expires; give this or ttl_seconds. */
  expires_at?: string | null;
  /** When the event in the text happened. */
  event_time?: string | null;
  /** Where the memory comes from: files, line, command … */
  context_json?: Record<string, unknown> | null;
  source_tool?: string | null;
  external_id?: string | null;
  /** Visible to its user only. */
  is_private?: boolean | null;
  memory_id: string;
  content?: string | Record<string, unknown> | null;
  /** Archive the memory, or restore it. */
  is_archived?: boolean | null;
  /** Who changes it. */
  user_id?: string | null;
  /** Why; kept in the history. */
  reason?: string | null;
  /** Fail if the memory has another version. */
  expected_version?: number | null;
  /** The provenance of the text. Text that looks like a prompt injection is quarantined unless it comes from user, agent or system. */
  source?: string | null;
}

export interface UpdateUser {
  /** The user; default: the key's user. */
  user_id?: string | null;
  email?: string | null;
  display_name?: string | null;
  /** Keys to change; null removes a key. */
  profile?: Record<string, unknown> | null;
  /** Keys to change; null removes a key. */
  preferences?: Record<string, unknown> | null;
}

export interface UpdateWorkItem {
  /** The project; default: the configured one. */
  project_id?: string | null;
  item_id: string;
  /** pending, in_progress, blocked, review, done or failed */
  status: WorkItemStatus;
  note?: string | null;
}

export interface Usage {
  /** The number of reads, of all sessions. */
  reads: number;
  by_session: Array<ReadBy>;
  /** The sessions whose working memory holds it. */
  held_by: Array<HeldBy>;
  /** The agents that were handed it within the last hour. */
  handed_to: Array<string>;
  /** The ids of outcomes for and against a lesson. */
  evidence?: Record<string, Array<string>>;
}

export interface UsageOf {
  /** The project; default: the configured one. */
  project_id?: string | null;
  kind: "memory" | "heuristic" | "outcome" | "domain_knowledge" | "anti_pattern" | "user_preference";
  id: string;
  /** The user who asks; private memories are visible to their user only. */
  user_id?: string | null;
}

/** A person, with a profile and preferences. */
export interface User {
  id?: string;
  username: string;
  email?: string | null;
  display_name?: string | null;
  profile_json?: Record<string, unknown>;
  preferences_json?: Record<string, unknown>;
  created_at?: string;
  updated_at?: string;
  last_active_at?: string;
  is_active?: boolean;
}

export interface UserId {
  /** The user; default: the key's user. */
  user_id?: string | null;
}

export interface UserKept {
  /** A person, with a profile and preferences. */
  user: {
    id?: string;
    username: string;
    email?: string | null;
    display_name?: string | null;
    profile_json?: Record<string, unknown>;
    preferences_json?: Record<string, unknown>;
    created_at?: string;
    updated_at?: string;
    last_active_at?: string;
    is_active?: boolean;
  };
}

/** How a user wants things done. */
export interface UserPreference {
  id?: string;
  user_id: string;
  category?: string | null;
  preference: string;
  source?: string | null;
  confidence?: number;
  timestamp?: string | null;
  metadata?: Record<string, unknown>;
}

export interface Verified {
  ok: boolean;
  checked: number;
  chains: number;
  findings: Array<Finding>;
}

export interface VerifyAudit {
}

export interface VerifySync {
  /** Only this engine: qdrant, neo4j or redis; default: all configured ones. */
  engine?: string | null;
  /** The maximum number of issues to list; all are counted. */
  limit?: number;
}

export interface VersionRestored {
  id: string;
  kind: string;
  text: string;
}

export interface VersionShown {
  number: number;
  change: string;
  reason?: string | null;
  author?: string | null;
  recorded_at: string;
  changes: Array<FieldChange>;
}

export interface Versions {
  versions: Array<VersionShown>;
}

export interface WebhookAdded {
  name: string;
  /** The secret that was made; it cannot be read again. */
  secret?: string | null;
}

export interface WebhookList {
  webhooks: Array<WebhookShown>;
}

export interface WebhookRemoved {
  /** false if no webhook has this name. */
  removed: boolean;
}

export interface WebhookRetried {
  /** How many; 0 as well if no webhook has this name. */
  retried: number;
}

export interface WebhookShown {
  /** The name of the webhook, or a digest of its address. */
  name: string;
  kinds: Array<string>;
  /** Where it is sent, of a webhook that add_webhook added. */
  host?: string | null;
  /** Only these events, of a webhook that add_webhook added. */
  events?: Array<string>;
  /** Only changes of this project. */
  project_id?: string | null;
  /** Whether it is in the configuration of this service. */
  is_configured?: boolean;
  /** Changes that were not delivered yet. */
  waiting: number;
  /** Changes that the receiver refused too often. */
  parked: number;
  /** The time of the oldest change that waits. */
  oldest?: string | null;
}

export interface WhatChanged {
  change: "created" | "changed" | "removed";
  kind: string;
  id: string;
  title?: string;
  text?: string;
  agent?: string | null;
  at: string;
  author?: string | null;
  reason?: string | null;
  /** The fields that differ between the two moments. */
  changes?: Array<FieldChange>;
}

export interface WhoAmI {
}

/** A work item: a task, its status and its dependencies. */
export interface WorkItem {
  id?: string;
  project_id: string;
  agent?: string | null;
  title: string;
  description?: string;
  item_type?: string;
  status?: WorkItemStatus;
  priority?: number;
  parent_id?: string | null;
  blocks?: Array<string>;
  blocked_by?: Array<string>;
  tests?: Array<string>;
  tests_passing?: boolean;
  acceptance_criteria?: Array<string>;
  attempt_count?: number;
  time_spent_ms?: number;
  metadata?: Record<string, unknown>;
  created_at?: string;
  updated_at?: string;
  started_at?: string | null;
  completed_at?: string | null;
  estimate_minutes?: number | null;
}

export interface WorkItemKept {
  item?: {
    id?: string;
    project_id: string;
    agent?: string | null;
    title: string;
    description?: string;
    item_type?: string;
    status?: WorkItemStatus;
    priority?: number;
    parent_id?: string | null;
    blocks?: Array<string>;
    blocked_by?: Array<string>;
    tests?: Array<string>;
    tests_passing?: boolean;
    acceptance_criteria?: Array<string>;
    attempt_count?: number;
    time_spent_ms?: number;
    metadata?: Record<string, unknown>;
    created_at?: string;
    updated_at?: string;
    started_at?: string | null;
    completed_at?: string | null;
    estimate_minutes?: number | null;
  } | null;
}

export interface WorkItemList {
  items: Array<{
    id?: string;
    project_id: string;
    agent?: string | null;
    title: string;
    description?: string;
    item_type?: string;
    status?: WorkItemStatus;
    priority?: number;
    parent_id?: string | null;
    blocks?: Array<string>;
    blocked_by?: Array<string>;
    tests?: Array<string>;
    tests_passing?: boolean;
    acceptance_criteria?: Array<string>;
    attempt_count?: number;
    time_spent_ms?: number;
    metadata?: Record<string, unknown>;
    created_at?: string;
    updated_at?: string;
    started_at?: string | null;
    completed_at?: string | null;
    estimate_minutes?: number | null;
  }>;
}

/** The status of a work item. */
export type WorkItemStatus = "pending" | "in_progress" | "blocked" | "review" | "done" | "failed";

export interface WorkItems {
  /** The project; default: the configured one. */
  project_id?: string | null;
  status?: WorkItemStatus | null;
  agent?: string | null;
  limit?: number;
}

export interface WorkingSetOf {
  /** The project; default: the configured one. */
  project_id?: string | null;
  session_id: string;
  max_tokens?: number | null;
  /** The user who asks; private memories are visible to their user only. */
  user_id?: string | null;
}

/** Why a memory is not in a slice: the stage at which it was dropped, and the reason in a sentence. */
export interface alma__model__slice__Dropped {
  stage: string;
  reason: string;
}

export interface alma__operations__care__Correct {
  /** The project; default: the configured one. */
  project_id?: string | null;
  kind: "memory" | "heuristic" | "domain_knowledge" | "anti_pattern" | "user_preference";
  id: string;
  /** The corrected text: content, strategy, fact, pattern or preference. */
  text?: string | null;
  /** The corrected confidence of a heuristic, fact or preference. */
  confidence?: number | null;
  /** Why; kept in the history. */
  reason?: string;
  /** The user who asks; private memories are visible to their user only. */
  user_id?: string | null;
}

export interface alma__operations__corrections__Correct {
  /** The project; default: the configured one. */
  project_id?: string | null;
  /** The id of the memory, fact or preference that is wrong, as a search returned it. */
  id: string;
  /** What is right, as a complete statement that replaces the old one. */
  correction: string;
  /** The user who corrects, or whose preference it is. */
  user_id?: string | null;
  /** Why; kept in the history. */
  reason?: string | null;
}

export interface alma__operations__engines__Dropped {
  engine: string;
  dropped: boolean;
}

export interface alma__operations__facts__Merged {
  /** Pass it as other_id to distinguish_memories if the texts differ in meaning. */
  id: string;
  text: string;
  reason: string;
}

export interface alma__operations__history__Merged {
  kept_id: string;
  kept_text: string;
  /** The id of each merged memory, with the reason. */
  merged: Record<string, string>;
}

export interface alma__operations__memories__Deleted {
  deleted: boolean;
}

export interface alma__operations__workspace__Deleted {
  deleted: boolean;
  /** The number of records of each kind. */
  counts: Record<string, number>;
  /** The projects that are deleted as well. */
  projects: Array<string>;
  /** How many of the records belong to other users. */
  of_others: number;
  /** The token that confirms the deletion of exactly these records. */
  confirm?: string | null;
  exported?: Array<string>;
}

/** The input and output of every operation, by its name. */
export interface Operations {
  retrieve: { input: Retrieve; output: Retrieved };
  learn: { input: Learn; output: LearnedFrom };
  not_the_same: { input: NotTheSame; output: Separated };
  learn_from_conversation: { input: Conversation; output: FactsLearned };
  recommend: { input: Recommend; output: Recommended };
  assess_strategies: { input: Assess; output: Signals };
  add_preference: { input: AddPreference; output: PreferenceKept };
  list_preferences: { input: OfUser; output: Preferences };
  add_knowledge: { input: AddKnowledge; output: KnowledgeKept };
  list_learned: { input: ListLearned; output: LearnedPage };
  get_learned: { input: LearnedId; output: LearnedPage };
  forget_learned: { input: Reason; output: Forgotten };
  forget: { input: Forget; output: Forgotten };
  list_archived: { input: ListArchived; output: ArchivedPage };
  restore: { input: Restore; output: Restored };
  purge: { input: Purge; output: Purged };
  consolidate: { input: Consolidate; output: Consolidated };
  stats: { input: StatsOf; output: Stats };
  memory_health: { input: HealthOf; output: Health };
  health: { input: Nothing; output: Alive };
  create_memory: { input: CreateMemory; output: MemoryKept };
  get_memory: { input: MemoryId; output: MemoryKept };
  update_memory: { input: UpdateMemory; output: MemoryKept };
  delete_memory: { input: DeleteMemory; output: alma__operations__memories__Deleted };
  restore_memory: { input: RestoreMemory; output: MemoryKept };
  list_memories: { input: ListMemories; output: MemoryPage };
  search_memories: { input: SearchMemories; output: Hits };
  bulk_delete: { input: BulkDelete; output: BulkDeleted };
  summarize: { input: Summarize; output: Summarized };
  get_context: { input: GetContext; output: Context };
  memory_relations: { input: OfFact; output: RelationsTold };
  distinguish_memories: { input: Distinguish; output: Distinguished };
  compare_memories: { input: CompareFacts; output: FactsCompared };
  correct: { input: alma__operations__corrections__Correct; output: Corrected };
  forget_one: { input: ForgetOne; output: OneForgotten };
  promote_memories: { input: Promote; output: PromotionsMade };
  demote_memory: { input: RestoreMemory; output: MemoryKept };
  mark_helpful: { input: Judge; output: Judged };
  get_memory_analytics: { input: Analyse; output: Analytics };
  process_memory_decay: { input: Decay; output: Decayed };
  reindex_memories: { input: Reindex; output: Reindexed };
  create_session: { input: CreateSession; output: SessionOpen };
  get_session: { input: SessionId; output: SessionOpen };
  list_sessions: { input: ListSessions; output: SessionList };
  switch_session: { input: SwitchSession; output: SessionOpen };
  end_session: { input: EndSession; output: SessionOpen };
  delete_session: { input: SessionId; output: SessionRemoved };
  hold_memories: { input: HoldMemories; output: InMind };
  working_set: { input: WorkingSetOf; output: InMind };
  release_memories: { input: ReleaseMemories; output: Released };
  create_handoff: { input: CreateHandoff; output: HandedOver };
  latest_handoff: { input: LatestHandoff; output: HandedOver };
  save_agent_state: { input: SaveState; output: StateKept };
  load_agent_state: { input: StateOf; output: StateKept };
  clear_agent_state: { input: StateOf; output: StateCleared };
  initialize_project: { input: InitializeProject; output: ProjectKept };
  list_projects: { input: ProjectsOf; output: ProjectList };
  get_project_stats: { input: StatsOfProject; output: ProjectCounts };
  create_user: { input: CreateUser; output: UserKept };
  get_user: { input: UserId; output: UserKept };
  update_user: { input: UpdateUser; output: UserKept };
  delete_user: { input: DeleteUser; output: alma__operations__workspace__Deleted };
  delete_project: { input: DeleteProject; output: alma__operations__workspace__Deleted };
  list_settings: { input: UserId; output: SettingList };
  set_setting: { input: SetSetting; output: SettingShown };
  create_work_item: { input: CreateWorkItem; output: WorkItemKept };
  list_work_items: { input: WorkItems; output: WorkItemList };
  update_work_item: { input: UpdateWorkItem; output: WorkItemKept };
  next_work_item: { input: NextWorkItem; output: WorkItemKept };
  progress_summary: { input: ProgressOf; output: ProgressMade };
  relate_memories: { input: Relate; output: RelationKept };
  unrelate_memories: { input: Unrelate; output: Unrelated };
  related_memories: { input: RelatedTo; output: RelatedMemories };
  find_paths: { input: FindPaths; output: Paths };
  detect_relations: { input: Detect; output: DetectedRelations };
  add_to_graph: { input: FromText; output: Graph };
  query_graph: { input: QueryGraph; output: Graph };
  mine_patterns: { input: Mine; output: Mined };
  find_similar_patterns: { input: Similar; output: SimilarPatterns };
  get_cross_project_insights: { input: Insights; output: InsightList };
  suggest_context_gaps: { input: Gaps; output: GapList };
  list_versions: { input: OfRecord; output: Versions };
  compare_versions: { input: Compare; output: Differences };
  restore_version: { input: RestoreVersion; output: VersionRestored };
  search_as_of: { input: SearchPast; output: PastHits };
  list_audit: { input: ListAudit; output: AuditList };
  verify_audit: { input: VerifyAudit; output: Verified };
  sync_status: { input: OneEngine; output: EngineStates };
  sync_run: { input: RunSync; output: SyncRan };
  sync_verify: { input: VerifySync; output: SyncVerified };
  sync_repair: { input: RepairSync; output: SyncRepaired };
  sync_retry_parked: { input: OneEngine; output: Retried };
  sync_rebuild: { input: NamedEngine; output: EngineRun };
  sync_drop: { input: NamedEngine; output: alma__operations__engines__Dropped };
  sync_memory: { input: OneRecord; output: MemorySynced };
  maintain: { input: Maintain; output: Maintained };
  maintenance_status: { input: Nothing; output: MaintenanceState };
  list_cold_sessions: { input: Nothing; output: ColdSessions };
  store_session: { input: OfSession; output: ColdSession };
  restore_session: { input: OfSession; output: ColdSession };
  whoami: { input: WhoAmI; output: Me };
  browse_memories: { input: Browse; output: BrowsePage };
  read_record: { input: ReadRecord; output: RecordRead };
  list_facets: { input: Facets; output: FacetValues };
  count_over_time: { input: CountOverTime; output: TimeCounts };
  timeline: { input: ReadTimeline; output: Timeline };
  changes_between: { input: Between; output: ChangesBetween };
  lesson_history: { input: LessonId; output: LessonHistory };
  learning_curve: { input: Curve; output: Curves };
  list_contradictions: { input: Contradictions; output: ContradictionList };
  benefit_report: { input: Report; output: BenefitReported };
  observe_outcome: { input: Observe; output: ObservedOutcome };
  demote_harmful: { input: DemoteHarmful; output: Demoted };
  reinstate_memories: { input: Reinstate; output: Reinstated };
  export_skills: { input: ExportSkills; output: ExportedSkills };
  import_skills: { input: ImportSkills; output: ImportedSkills };
  diff_skills: { input: DiffSkills; output: SkillDifferences };
  forget_records: { input: ForgetRecords; output: PutAway };
  pin_records: { input: Pin; output: PinnedRecords };
  correct_record: { input: alma__operations__care__Correct; output: RecordKept };
  supersede_record: { input: Supersede; output: RecordKept };
  memory_usage: { input: UsageOf; output: Usage };
  review_inbox: { input: Inbox; output: InboxPage };
  reject_records: { input: Reject; output: PutAway };
  allow_records: { input: Allow; output: Allowed };
  quarantine_records: { input: Quarantine; output: PutAway };
  merge_records: { input: MergeRecords; output: PutAway };
  neighbourhood: { input: Around; output: Neighbourhood };
  find_connection: { input: Connect; output: Connection };
  find_nodes: { input: FindNodes; output: NodesFound };
  list_keys: { input: ListKeys; output: KeyList };
  create_key: { input: CreateKey; output: KeyCreated };
  revoke_key: { input: RevokeKey; output: KeyRevoked };
  create_backup: { input: BackUp; output: BackupShown };
  list_backups: { input: BackUp; output: BackupList };
  import_lines: { input: ImportLines; output: LinesImported };
  list_webhooks: { input: ListWebhooks; output: WebhookList };
  add_webhook: { input: AddWebhook; output: WebhookAdded };
  remove_webhook: { input: RemoveWebhook; output: WebhookRemoved };
  retry_webhook: { input: RetryWebhook; output: WebhookRetried };
}

/** A method for each operation, in camel case; arguments and results have the names of the service. */
export interface OperationMethods {
  /** Retrieve the few memories worth knowing before a task. */
  retrieve(input: Operations["retrieve"]['input'], options?: CallOptions): Promise<Operations["retrieve"]['output']>;
  /** Record the outcome of a task; repeated outcomes of a strategy become a lesson. */
  learn(input: Operations["learn"]['input'], options?: CallOptions): Promise<Operations["learn"]['output']>;
  /** Separate a strategy from a lesson that counted it as the same, and keep them apart. */
  notTheSame(input: Operations["not_the_same"]['input'], options?: CallOptions): Promise<Operations["not_the_same"]['output']>;
  /** Extract facts and preferences from a conversation and store them; no language model is needed. */
  learnFromConversation(input: Operations["learn_from_conversation"]['input'], options?: CallOptions): Promise<Operations["learn_from_conversation"]['output']>;
  /** Recommend a strategy for a task, with the evidence. */
  recommend(input: Operations["recommend"]['input'], options?: CallOptions): Promise<Operations["recommend"]['output']>;
  /** Rate how much each strategy can be trusted for a task, best first, with risks and opportunities. */
  assessStrategies(input: Operations["assess_strategies"]['input'], options?: CallOptions): Promise<Operations["assess_strategies"]['output']>;
  /** Store how a user wants things done. */
  addPreference(input: Operations["add_preference"]['input'], options?: CallOptions): Promise<Operations["add_preference"]['output']>;
  /** List a user's preferences. */
  listPreferences(input?: Operations["list_preferences"]['input'], options?: CallOptions): Promise<Operations["list_preferences"]['output']>;
  /** Store a fact, if the agent may learn in this domain. */
  addKnowledge(input: Operations["add_knowledge"]['input'], options?: CallOptions): Promise<Operations["add_knowledge"]['output']>;
  /** List heuristics, outcomes, facts or anti-patterns, with pagination. */
  listLearned(input: Operations["list_learned"]['input'], options?: CallOptions): Promise<Operations["list_learned"]['output']>;
  /** Read one heuristic, outcome, fact or anti-pattern. */
  getLearned(input: Operations["get_learned"]['input'], options?: CallOptions): Promise<Operations["get_learned"]['output']>;
  /** Archive one lesson, outcome or fact; it can be restored. */
  forgetLearned(input: Operations["forget_learned"]['input'], options?: CallOptions): Promise<Operations["forget_learned"]['output']>;
  /** Archive old outcomes and heuristics with low confidence; they can be restored until they are purged. */
  forget(input?: Operations["forget"]['input'], options?: CallOptions): Promise<Operations["forget"]['output']>;
  /** List memories in the archive: forgotten, archived, merged or quarantined ones, which can be restored. */
  listArchived(input?: Operations["list_archived"]['input'], options?: CallOptions): Promise<Operations["list_archived"]['output']>;
  /** Restore memories that were forgotten, archived, merged or quarantined. */
  restore(input: Operations["restore"]['input'], options?: CallOptions): Promise<Operations["restore"]['output']>;
  /** Permanently delete what was archived or softly deleted longer ago than this, including history and vectors. */
  purge(input?: Operations["purge"]['input'], options?: CallOptions): Promise<Operations["purge"]['output']>;
  /** Merge near-duplicate memories; merged ones can be restored. */
  consolidate(input?: Operations["consolidate"]['input'], options?: CallOptions): Promise<Operations["consolidate"]['output']>;
  /** Count the memories of each kind, for one agent or all. */
  stats(input?: Operations["stats"]['input'], options?: CallOptions): Promise<Operations["stats"]['output']>;
  /** Report how current, trusted and distinct the memories of a project are, with recommendations. */
  memoryHealth(input?: Operations["memory_health"]['input'], options?: CallOptions): Promise<Operations["memory_health"]['output']>;
  /** Check that the store is available, and show the store, the embedding model and the engines in use. */
  health(input?: Operations["health"]['input'], options?: CallOptions): Promise<Operations["health"]['output']>;
  /** Create a memory: a note, a decision, a solution or a part of a conversation. */
  createMemory(input: Operations["create_memory"]['input'], options?: CallOptions): Promise<Operations["create_memory"]['output']>;
  /** Read a memory by its id. */
  getMemory(input: Operations["get_memory"]['input'], options?: CallOptions): Promise<Operations["get_memory"]['output']>;
  /** Change a memory; the previous version stays in the history. */
  updateMemory(input: Operations["update_memory"]['input'], options?: CallOptions): Promise<Operations["update_memory"]['output']>;
  /** Delete a memory, softly by default. */
  deleteMemory(input: Operations["delete_memory"]['input'], options?: CallOptions): Promise<Operations["delete_memory"]['output']>;
  /** Restore a softly deleted memory. */
  restoreMemory(input: Operations["restore_memory"]['input'], options?: CallOptions): Promise<Operations["restore_memory"]['output']>;
  /** List memories by id or by a filter, sorted and paginated. */
  listMemories(input?: Operations["list_memories"]['input'], options?: CallOptions): Promise<Operations["list_memories"]['output']>;
  /** Search memories by meaning and by words; each hit explains its score. */
  searchMemories(input: Operations["search_memories"]['input'], options?: CallOptions): Promise<Operations["search_memories"]['output']>;
  /** Delete all memories that match a filter or are older than this. */
  bulkDelete(input?: Operations["bulk_delete"]['input'], options?: CallOptions): Promise<Operations["bulk_delete"]['output']>;
  /** Summarize a session or a time range with sentences of the memories themselves. */
  summarize(input?: Operations["summarize"]['input'], options?: CallOptions): Promise<Operations["summarize"]['output']>;
  /** Collect the memories that matter for an activity, a set of files and a branch, within a token budget. */
  getContext(input?: Operations["get_context"]['input'], options?: CallOptions): Promise<Operations["get_context"]['output']>;
  /** Show what supersedes, contradicts or repeats a memory, fact or preference, with probability, judge and dates. */
  memoryRelations(input: Operations["memory_relations"]['input'], options?: CallOptions): Promise<Operations["memory_relations"]['output']>;
  /** State that two facts differ, and that neither supersedes or contradicts the other. */
  distinguishMemories(input: Operations["distinguish_memories"]['input'], options?: CallOptions): Promise<Operations["distinguish_memories"]['output']>;
  /** Compare facts that were stored in bulk (by an import) with their nearest neighbours, and relate superseded ones. */
  compareMemories(input?: Operations["compare_memories"]['input'], options?: CallOptions): Promise<Operations["compare_memories"]['output']>;
  /** Replace what a memory, fact or preference says. */
  correct(input: Operations["correct"]['input'], options?: CallOptions): Promise<Operations["correct"]['output']>;
  /** Forget one memory, fact, preference or lesson by its id; it can be restored until it is purged. */
  forgetOne(input: Operations["forget_one"]['input'], options?: CallOptions): Promise<Operations["forget_one"]['output']>;
  /** Promote useful memories from a session to the project, or from a project to all projects. */
  promoteMemories(input?: Operations["promote_memories"]['input'], options?: CallOptions): Promise<Operations["promote_memories"]['output']>;
  /** Undo the last promotion of a memory. */
  demoteMemory(input: Operations["demote_memory"]['input'], options?: CallOptions): Promise<Operations["demote_memory"]['output']>;
  /** Report whether a memory was helpful; this counts towards its promotion. */
  markHelpful(input: Operations["mark_helpful"]['input'], options?: CallOptions): Promise<Operations["mark_helpful"]['output']>;
  /** Count a project's memories by type, category and layer, and how often they are read. */
  getMemoryAnalytics(input?: Operations["get_memory_analytics"]['input'], options?: CallOptions): Promise<Operations["get_memory_analytics"]['output']>;
  /** Archive memories that have expired or whose strength has decayed; they can be restored. */
  processMemoryDecay(input?: Operations["process_memory_decay"]['input'], options?: CallOptions): Promise<Operations["process_memory_decay"]['output']>;
  /** Create missing vectors for all memories of the store. */
  reindexMemories(input?: Operations["reindex_memories"]['input'], options?: CallOptions): Promise<Operations["reindex_memories"]['output']>;
  /** Create a session, to which memories and agent states can belong. */
  createSession(input?: Operations["create_session"]['input'], options?: CallOptions): Promise<Operations["create_session"]['output']>;
  /** Read a session. */
  getSession(input: Operations["get_session"]['input'], options?: CallOptions): Promise<Operations["get_session"]['output']>;
  /** List sessions, newest first. */
  listSessions(input?: Operations["list_sessions"]['input'], options?: CallOptions): Promise<Operations["list_sessions"]['output']>;
  /** Switch to another session, which becomes the current one. */
  switchSession(input: Operations["switch_session"]['input'], options?: CallOptions): Promise<Operations["switch_session"]['output']>;
  /** End a session and store its summary. */
  endSession(input: Operations["end_session"]['input'], options?: CallOptions): Promise<Operations["end_session"]['output']>;
  /** Delete a session; the knowledge learned in it is kept. */
  deleteSession(input: Operations["delete_session"]['input'], options?: CallOptions): Promise<Operations["delete_session"]['output']>;
  /** Add memories to a session's working set; the least useful ones are evicted when it is full. */
  holdMemories(input: Operations["hold_memories"]['input'], options?: CallOptions): Promise<Operations["hold_memories"]['output']>;
  /** Read the memories in a session's working set. */
  workingSet(input: Operations["working_set"]['input'], options?: CallOptions): Promise<Operations["working_set"]['output']>;
  /** Remove memories from a session's working set; they are not deleted. */
  releaseMemories(input: Operations["release_memories"]['input'], options?: CallOptions): Promise<Operations["release_memories"]['output']>;
  /** Store a handoff for the next session: what was done, what is next, and what is blocked. */
  createHandoff(input: Operations["create_handoff"]['input'], options?: CallOptions): Promise<Operations["create_handoff"]['output']>;
  /** Read the latest handoff of an agent, or that of a session or a time. */
  latestHandoff(input: Operations["latest_handoff"]['input'], options?: CallOptions): Promise<Operations["latest_handoff"]['output']>;
  /** Save the state of an agent, to continue later. */
  saveAgentState(input: Operations["save_agent_state"]['input'], options?: CallOptions): Promise<Operations["save_agent_state"]['output']>;
  /** Read the saved state of an agent. */
  loadAgentState(input: Operations["load_agent_state"]['input'], options?: CallOptions): Promise<Operations["load_agent_state"]['output']>;
  /** Delete the saved state of an agent. */
  clearAgentState(input: Operations["clear_agent_state"]['input'], options?: CallOptions): Promise<Operations["clear_agent_state"]['output']>;
  /** Create a project, or update what is known about it. */
  initializeProject(input?: Operations["initialize_project"]['input'], options?: CallOptions): Promise<Operations["initialize_project"]['output']>;
  /** List a user's projects. */
  listProjects(input?: Operations["list_projects"]['input'], options?: CallOptions): Promise<Operations["list_projects"]['output']>;
  /** Count what a project remembers, and the outcomes of its tasks. */
  getProjectStats(input?: Operations["get_project_stats"]['input'], options?: CallOptions): Promise<Operations["get_project_stats"]['output']>;
  /** Create a user. */
  createUser(input: Operations["create_user"]['input'], options?: CallOptions): Promise<Operations["create_user"]['output']>;
  /** Read a user's profile. */
  getUser(input?: Operations["get_user"]['input'], options?: CallOptions): Promise<Operations["get_user"]['output']>;
  /** Change a user's profile; an unknown user is created. */
  updateUser(input?: Operations["update_user"]['input'], options?: CallOptions): Promise<Operations["update_user"]['output']>;
  /** Delete a user with all their records; without a token this only counts. */
  deleteUser(input: Operations["delete_user"]['input'], options?: CallOptions): Promise<Operations["delete_user"]['output']>;
  /** Delete a project with everything in it; without a token this only counts. */
  deleteProject(input: Operations["delete_project"]['input'], options?: CallOptions): Promise<Operations["delete_project"]['output']>;
  /** List the effective settings, for all users or for one. */
  listSettings(input?: Operations["list_settings"]['input'], options?: CallOptions): Promise<Operations["list_settings"]['output']>;
  /** Change a setting, for all users or for one. */
  setSetting(input: Operations["set_setting"]['input'], options?: CallOptions): Promise<Operations["set_setting"]['output']>;
  /** Create a work item. */
  createWorkItem(input: Operations["create_work_item"]['input'], options?: CallOptions): Promise<Operations["create_work_item"]['output']>;
  /** List work items. */
  listWorkItems(input?: Operations["list_work_items"]['input'], options?: CallOptions): Promise<Operations["list_work_items"]['output']>;
  /** Set the status of a work item; completing it unblocks the items that wait for it. */
  updateWorkItem(input: Operations["update_work_item"]['input'], options?: CallOptions): Promise<Operations["update_work_item"]['output']>;
  /** Recommend the next work item. */
  nextWorkItem(input?: Operations["next_work_item"]['input'], options?: CallOptions): Promise<Operations["next_work_item"]['output']>;
  /** Summarize the progress of the work items. */
  progressSummary(input?: Operations["progress_summary"]['input'], options?: CallOptions): Promise<Operations["progress_summary"]['output']>;
  /** Relate one memory to another. */
  relateMemories(input: Operations["relate_memories"]['input'], options?: CallOptions): Promise<Operations["relate_memories"]['output']>;
  /** Remove a relation between two memories. */
  unrelateMemories(input: Operations["unrelate_memories"]['input'], options?: CallOptions): Promise<Operations["unrelate_memories"]['output']>;
  /** List memories related to a memory, up to some hops away. */
  relatedMemories(input: Operations["related_memories"]['input'], options?: CallOptions): Promise<Operations["related_memories"]['output']>;
  /** Find paths of relations from one memory to another. */
  findPaths(input: Operations["find_paths"]['input'], options?: CallOptions): Promise<Operations["find_paths"]['output']>;
  /** Detect how a memory is related to others, with the evidence. */
  detectRelations(input: Operations["detect_relations"]['input'], options?: CallOptions): Promise<Operations["detect_relations"]['output']>;
  /** Extract people, organisations, tools and their relations from a text; no language model is needed. */
  addToGraph(input: Operations["add_to_graph"]['input'], options?: CallOptions): Promise<Operations["add_to_graph"]['output']>;
  /** Find entities of the graph and what they are connected to. */
  queryGraph(input?: Operations["query_graph"]['input'], options?: CallOptions): Promise<Operations["query_graph"]['output']>;
  /** Find recurring patterns in a project's memories. */
  minePatterns(input?: Operations["mine_patterns"]['input'], options?: CallOptions): Promise<Operations["mine_patterns"]['output']>;
  /** Find patterns similar to a description, in this project and a user's other projects. */
  findSimilarPatterns(input: Operations["find_similar_patterns"]['input'], options?: CallOptions): Promise<Operations["find_similar_patterns"]['output']>;
  /** Find what works in several of a user's projects. */
  getCrossProjectInsights(input?: Operations["get_cross_project_insights"]['input'], options?: CallOptions): Promise<Operations["get_cross_project_insights"]['output']>;
  /** List knowledge that a project lacks. */
  suggestContextGaps(input?: Operations["suggest_context_gaps"]['input'], options?: CallOptions): Promise<Operations["suggest_context_gaps"]['output']>;
  /** List every version of a memory: what changed, by whom, when and why. */
  listVersions(input: Operations["list_versions"]['input'], options?: CallOptions): Promise<Operations["list_versions"]['output']>;
  /** Show the differences between two versions of a memory. */
  compareVersions(input: Operations["compare_versions"]['input'], options?: CallOptions): Promise<Operations["compare_versions"]['output']>;
  /** Restore an earlier version of a memory. */
  restoreVersion(input: Operations["restore_version"]['input'], options?: CallOptions): Promise<Operations["restore_version"]['output']>;
  /** Search what was known, or what was true, at a time. */
  searchAsOf(input: Operations["search_as_of"]['input'], options?: CallOptions): Promise<Operations["search_as_of"]['output']>;
  /** List audit events: who did what, when and from where, newest first. */
  listAudit(input?: Operations["list_audit"]['input'], options?: CallOptions): Promise<Operations["list_audit"]['output']>;
  /** Verify the hash chains of the audit log: no event was changed, removed or inserted. */
  verifyAudit(input?: Operations["verify_audit"]['input'], options?: CallOptions): Promise<Operations["verify_audit"]['output']>;
  /** Show the engines beside the store: whether they answer, their lag, parked records and last verification. */
  syncStatus(input?: Operations["sync_status"]['input'], options?: CallOptions): Promise<Operations["sync_status"]['output']>;
  /** Carry the changes that wait in the outbox to the engines, and continue interrupted rebuilds. */
  syncRun(input?: Operations["sync_run"]['input'], options?: CallOptions): Promise<Operations["sync_run"]['output']>;
  /** Compare every entry of the engines with the store, and list what differs. */
  syncVerify(input?: Operations["sync_verify"]['input'], options?: CallOptions): Promise<Operations["sync_verify"]['output']>;
  /** Verify the engines, and bring the current state of every record that differs to them. */
  syncRepair(input?: Operations["sync_repair"]['input'], options?: CallOptions): Promise<Operations["sync_repair"]['output']>;
  /** Retry records that failed too often in the next run. */
  syncRetryParked(input?: Operations["sync_retry_parked"]['input'], options?: CallOptions): Promise<Operations["sync_retry_parked"]['output']>;
  /** Delete everything an engine has of this store and make it again, while others read and write. */
  syncRebuild(input: Operations["sync_rebuild"]['input'], options?: CallOptions): Promise<Operations["sync_rebuild"]['output']>;
  /** Forget an engine that is no longer used: no changes are kept for it any more. */
  syncDrop(input: Operations["sync_drop"]['input'], options?: CallOptions): Promise<Operations["sync_drop"]['output']>;
  /** Bring one memory to every engine now, whatever waits before it. */
  syncMemory(input: Operations["sync_memory"]['input'], options?: CallOptions): Promise<Operations["sync_memory"]['output']>;
  /** Run the maintenance of the store now: expiry, decay, cleanup, retention, cold storage. */
  maintain(input?: Operations["maintain"]['input'], options?: CallOptions): Promise<Operations["maintain"]['output']>;
  /** Show which tasks of maintenance are configured, what the last run did, and when the next is due. */
  maintenanceStatus(input?: Operations["maintenance_status"]['input'], options?: CallOptions): Promise<Operations["maintenance_status"]['output']>;
  /** List the sessions whose memories were moved to compressed files. */
  listColdSessions(input?: Operations["list_cold_sessions"]['input'], options?: CallOptions): Promise<Operations["list_cold_sessions"]['output']>;
  /** Move the memories of an ended session to a compressed file; restore_session brings them back. */
  storeSession(input: Operations["store_session"]['input'], options?: CallOptions): Promise<Operations["store_session"]['output']>;
  /** Bring the memories of a session back from its compressed file. */
  restoreSession(input: Operations["restore_session"]['input'], options?: CallOptions): Promise<Operations["restore_session"]['output']>;
  /** Show what the caller may do: its rights, limits and operations. */
  whoami(input?: Operations["whoami"]['input'], options?: CallOptions): Promise<Operations["whoami"]['output']>;
  /** List memories of one kind, newest first, with filters; pages are as fast at the end as at the start. */
  browseMemories(input?: Operations["browse_memories"]['input'], options?: CallOptions): Promise<Operations["browse_memories"]['output']>;
  /** Read one memory of any kind with all of its fields, now or as it was at a time. */
  readRecord(input: Operations["read_record"]['input'], options?: CallOptions): Promise<Operations["read_record"]['output']>;
  /** List the agents, users, types, tags and domains of the newest memories, as suggestions for filters. */
  listFacets(input?: Operations["list_facets"]['input'], options?: CallOptions): Promise<Operations["list_facets"]['output']>;
  /** Count what came in, what succeeded and what was archived, in equal parts of a time range. */
  countOverTime(input?: Operations["count_over_time"]['input'], options?: CallOptions): Promise<Operations["count_over_time"]['output']>;
  /** List what happened, newest first: memories, outcomes, what was archived, sessions and handoffs. */
  timeline(input?: Operations["timeline"]['input'], options?: CallOptions): Promise<Operations["timeline"]['output']>;
  /** Show what differs between two moments: what was created, changed and removed, newest first. */
  changesBetween(input: Operations["changes_between"]['input'], options?: CallOptions): Promise<Operations["changes_between"]['output']>;
  /** Show how sure a lesson was after each of its outcomes, and what would turn it around. */
  lessonHistory(input: Operations["lesson_history"]['input'], options?: CallOptions): Promise<Operations["lesson_history"]['output']>;
  /** Show the share of outcomes that succeeded over time, for a project and each of its agents. */
  learningCurve(input?: Operations["learning_curve"]['input'], options?: CallOptions): Promise<Operations["learning_curve"]['output']>;
  /** List lessons that say the opposite, side by side, and which outcomes would change which one is stronger. */
  listContradictions(input?: Operations["list_contradictions"]['input'], options?: CallOptions): Promise<Operations["list_contradictions"]['output']>;
  /** Report for each memory and group whether it helps: uplift with an interval, exposures and a state. */
  benefitReport(input?: Operations["benefit_report"]['input'], options?: CallOptions): Promise<Operations["benefit_report"]['output']>;
  /** Note what a host observed about the outcome of a task: an exit status, test results, a correction, thanks. */
  observeOutcome(input: Operations["observe_outcome"]['input'], options?: CallOptions): Promise<Operations["observe_outcome"]['output']>;
  /** Demote the memories that are measured to harm: prompts lack them until they are reinstated. */
  demoteHarmful(input?: Operations["demote_harmful"]['input'], options?: CallOptions): Promise<Operations["demote_harmful"]['output']>;
  /** Use demoted memories again, and measure them anew from now on. */
  reinstateMemories(input: Operations["reinstate_memories"]['input'], options?: CallOptions): Promise<Operations["reinstate_memories"]['output']>;
  /** Write the confirmed lessons as Agent Skills or as sections of an AGENTS.md, with their evidence. */
  exportSkills(input?: Operations["export_skills"]['input'], options?: CallOptions): Promise<Operations["export_skills"]['output']>;
  /** Learn lessons from Agent Skills and AGENTS.md files. */
  importSkills(input: Operations["import_skills"]['input'], options?: CallOptions): Promise<Operations["import_skills"]['output']>;
  /** Compare Agent Skills and AGENTS.md files with the lessons of the store. */
  diffSkills(input: Operations["diff_skills"]['input'], options?: CallOptions): Promise<Operations["diff_skills"]['output']>;
  /** Move memories of one kind to the archive; they can be restored. */
  forgetRecords(input: Operations["forget_records"]['input'], options?: CallOptions): Promise<Operations["forget_records"]['output']>;
  /** Pin memories, so that they are never forgotten by rule, or take the pin off. */
  pinRecords(input: Operations["pin_records"]['input'], options?: CallOptions): Promise<Operations["pin_records"]['output']>;
  /** Correct the text or the confidence of a memory; the id stays, and the version before it stays in the history. */
  correctRecord(input: Operations["correct_record"]['input'], options?: CallOptions): Promise<Operations["correct_record"]['output']>;
  /** State what holds now instead of a memory, fact or preference; the old one is kept and marked as superseded. */
  supersedeRecord(input: Operations["supersede_record"]['input'], options?: CallOptions): Promise<Operations["supersede_record"]['output']>;
  /** Show which sessions read a memory, which hold it in their working memory, and which agents were handed it. */
  memoryUsage(input: Operations["memory_usage"]['input'], options?: CallOptions): Promise<Operations["memory_usage"]['output']>;
  /** List what needs a decision: quarantined texts, contradictions, near-duplicates, doubtful extractions, harm. */
  reviewInbox(input?: Operations["review_inbox"]['input'], options?: CallOptions): Promise<Operations["review_inbox"]['output']>;
  /** Archive memories and refuse their texts from now on: what was rejected is not stored again in this project. */
  rejectRecords(input: Operations["reject_records"]['input'], options?: CallOptions): Promise<Operations["reject_records"]['output']>;
  /** Undo a rejection: the memories are in use again, quarantined texts wait again, and the texts may be stored. */
  allowRecords(input: Operations["allow_records"]['input'], options?: CallOptions): Promise<Operations["allow_records"]['output']>;
  /** Put memories aside for review: no search finds them until they are accepted. */
  quarantineRecords(input: Operations["quarantine_records"]['input'], options?: CallOptions): Promise<Operations["quarantine_records"]['output']>;
  /** Keep one of several memories that say the same, and archive the others as merged into it. */
  mergeRecords(input: Operations["merge_records"]['input'], options?: CallOptions): Promise<Operations["merge_records"]['output']>;
  /** Show what is directly connected with a memory, a lesson, a pattern or an entity. */
  neighbourhood(input: Operations["neighbourhood"]['input'], options?: CallOptions): Promise<Operations["neighbourhood"]['output']>;
  /** Find a shortest path between two memories, lessons, patterns or entities, over connections of every kind. */
  findConnection(input: Operations["find_connection"]['input'], options?: CallOptions): Promise<Operations["find_connection"]['output']>;
  /** Find entities, memories and lessons to start from, by name or by words. */
  findNodes(input: Operations["find_nodes"]['input'], options?: CallOptions): Promise<Operations["find_nodes"]['output']>;
  /** List the API keys of the store, newest first, without their tokens. */
  listKeys(input?: Operations["list_keys"]['input'], options?: CallOptions): Promise<Operations["list_keys"]['output']>;
  /** Create an API key; its token is shown once, and stored as a hash. */
  createKey(input: Operations["create_key"]['input'], options?: CallOptions): Promise<Operations["create_key"]['output']>;
  /** Revoke an API key; revoking twice has no effect. */
  revokeKey(input: Operations["revoke_key"]['input'], options?: CallOptions): Promise<Operations["revoke_key"]['output']>;
  /** Write a consistent backup beside the store, while it is in use. */
  createBackup(input?: Operations["create_backup"]['input'], options?: CallOptions): Promise<Operations["create_backup"]['output']>;
  /** List the backups beside the store, newest first. */
  listBackups(input?: Operations["list_backups"]['input'], options?: CallOptions): Promise<Operations["list_backups"]['output']>;
  /** Import texts as memories: redacted, screened and deduplicated as every other text; safe to repeat. */
  importLines(input: Operations["import_lines"]['input'], options?: CallOptions): Promise<Operations["import_lines"]['output']>;
  /** List the webhooks whose events wait in the store, and how many wait for each. */
  listWebhooks(input?: Operations["list_webhooks"]['input'], options?: CallOptions): Promise<Operations["list_webhooks"]['output']>;
  /** Send changes to an address from now on, signed with a secret; running services deliver them within seconds. */
  addWebhook(input: Operations["add_webhook"]['input'], options?: CallOptions): Promise<Operations["add_webhook"]['output']>;
  /** Send no more changes to a webhook, and drop those that wait for it. */
  removeWebhook(input: Operations["remove_webhook"]['input'], options?: CallOptions): Promise<Operations["remove_webhook"]['output']>;
  /** Deliver the changes again that the receiver of a webhook refused too often. */
  retryWebhook(input: Operations["retry_webhook"]['input'], options?: CallOptions): Promise<Operations["retry_webhook"]['output']>;
}

/** Options of one call. */
export interface CallOptions {
  /** Cancels the call. */
  signal?: AbortSignal;
  /** Names this write, which is executed once for each name. Default: a new name for each call. */
  idempotencyKey?: string;
}

/** Whether each operation writes; writes are sent with an idempotency key. */
export const WRITES: { readonly [name in keyof Operations]: boolean } = {
  retrieve: false,
  learn: true,
  not_the_same: true,
  learn_from_conversation: true,
  recommend: false,
  assess_strategies: false,
  add_preference: true,
  list_preferences: false,
  add_knowledge: true,
  list_learned: false,
  get_learned: false,
  forget_learned: true,
  forget: true,
  list_archived: false,
  restore: true,
  purge: true,
  consolidate: true,
  stats: false,
  memory_health: false,
  health: false,
  create_memory: true,
  get_memory: false,
  update_memory: true,
  delete_memory: true,
  restore_memory: true,
  list_memories: false,
  search_memories: false,
  bulk_delete: true,
  summarize: false,
  get_context: false,
  memory_relations: false,
  distinguish_memories: true,
  compare_memories: true,
  correct: true,
  forget_one: true,
  promote_memories: true,
  demote_memory: true,
  mark_helpful: true,
  get_memory_analytics: false,
  process_memory_decay: true,
  reindex_memories: true,
  create_session: true,
  get_session: false,
  list_sessions: false,
  switch_session: true,
  end_session: true,
  delete_session: true,
  hold_memories: true,
  working_set: false,
  release_memories: true,
  create_handoff: true,
  latest_handoff: false,
  save_agent_state: true,
  load_agent_state: false,
  clear_agent_state: true,
  initialize_project: true,
  list_projects: false,
  get_project_stats: false,
  create_user: true,
  get_user: false,
  update_user: true,
  delete_user: true,
  delete_project: true,
  list_settings: false,
  set_setting: true,
  create_work_item: true,
  list_work_items: false,
  update_work_item: true,
  next_work_item: false,
  progress_summary: false,
  relate_memories: true,
  unrelate_memories: true,
  related_memories: false,
  find_paths: false,
  detect_relations: true,
  add_to_graph: true,
  query_graph: false,
  mine_patterns: true,
  find_similar_patterns: false,
  get_cross_project_insights: false,
  suggest_context_gaps: false,
  list_versions: false,
  compare_versions: false,
  restore_version: true,
  search_as_of: false,
  list_audit: true,
  verify_audit: true,
  sync_status: false,
  sync_run: true,
  sync_verify: true,
  sync_repair: true,
  sync_retry_parked: true,
  sync_rebuild: true,
  sync_drop: true,
  sync_memory: true,
  maintain: true,
  maintenance_status: false,
  list_cold_sessions: false,
  store_session: true,
  restore_session: true,
  whoami: false,
  browse_memories: false,
  read_record: false,
  list_facets: false,
  count_over_time: false,
  timeline: false,
  changes_between: false,
  lesson_history: false,
  learning_curve: false,
  list_contradictions: false,
  benefit_report: false,
  observe_outcome: true,
  demote_harmful: true,
  reinstate_memories: true,
  export_skills: false,
  import_skills: true,
  diff_skills: false,
  forget_records: true,
  pin_records: true,
  correct_record: true,
  supersede_record: true,
  memory_usage: false,
  review_inbox: false,
  reject_records: true,
  allow_records: true,
  quarantine_records: true,
  merge_records: true,
  neighbourhood: false,
  find_connection: false,
  find_nodes: false,
  list_keys: true,
  create_key: true,
  revoke_key: true,
  create_backup: true,
  list_backups: true,
  import_lines: true,
  list_webhooks: true,
  add_webhook: true,
  remove_webhook: true,
  retry_webhook: true,
};
