// Actions on memories, each with the call that undoes it. They return something true if they were done.
import { call } from "./api.js";
import { reloadAll } from "./state.js";
import { s } from "./strings.js";
import { attempt } from "./ui.js";

const undoing = (operation, given) => async () => {
  await call(operation, given);
  reloadAll();
};

const backAgain = (given, put) => undoing("restore", { project_id: given.project_id, ids: put.archive_ids, preferences_of: put.preferences_of });

export const forget = (given, said = s.browse.forgotten) =>
  attempt(() => call("forget_records", given), (put) => said(put.archive_ids.length), (put) => backAgain(given, put)());

export const restore = ({ project_id, ids, kind, user_id }) =>
  attempt(() => call("restore", { project_id, ids, preferences_of: kind === "user_preference" ? user_id : undefined }), (done) => s.browse.restored(done.restored.length), () => undoing("forget_records", { project_id, kind, ids, user_id })());

export const pin = (given, on) =>
  attempt(() => call("pin_records", { ...given, pinned: on }), (done) => (on ? s.browse.pinnedDone : s.browse.unpinnedDone)(done.changed.length), (done) => done.changed.length && undoing("pin_records", { ...given, ids: done.changed, pinned: !on })());

export const reject = (given) =>
  attempt(() => call("reject_records", given), s.review.rejected, (put) => undoing("allow_records", { project_id: given.project_id, archive_ids: put.archive_ids, preferences_of: put.preferences_of })());

export const merge = (given) => attempt(() => call("merge_records", given), s.review.merged, (put) => backAgain(given, put)());

/** Take a quarantined text in. */
export const accept = ({ project_id, kind, archiveId, id }) =>
  attempt(() => call("restore", { project_id, ids: [archiveId] }), s.review.accepted, () => undoing("quarantine_records", { project_id, kind, ids: [id], reason: s.undo })());

export const correct = (given, before, said) =>
  attempt(() => call("correct_record", given), said, () => undoing("correct_record", { ...given, ...before })());

/** Take a memory that harms out of prompts. */
export const demote = ({ project_id, kind, ids }) =>
  attempt(() => call("demote_harmful", { project_id, ids }), s.lessons.demotedDone, () => undoing("reinstate_memories", { project_id, kind, ids })());

/** Use a demoted memory again; what was measured before no longer counts. */
export const reinstate = (given) => attempt(() => call("reinstate_memories", given), s.lessons.reinstated);

/** State that two memories are distinct. */
export const keepBoth = (given) =>
  attempt(() => call("distinguish_memories", given), s.review.kept, () => undoing("distinguish_memories", { ...given, distinct: false })());
