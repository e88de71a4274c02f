// Operations: keys, settings, forgetting, backups, imports, indexes, the audit log and webhooks.
import { html } from "../html.js";
import { s } from "../strings.js";
import { Card, Empty, Page, Tabs } from "../ui.js";
import { Audit, Backups, Imports, Sync } from "../store.js";
import { Webhooks } from "../webhooks.js";
import { Forgetting, Keys, Settings } from "../governing.js";

const SECTIONS = {
  keys: [Keys, "list_keys"],
  settings: [Settings, "list_settings"],
  forgetting: [Forgetting, "forget"],
  backups: [Backups, "list_backups"],
  imports: [Imports, "import_lines"],
  sync: [Sync, "sync_status"],
  audit: [Audit, "list_audit"],
  webhooks: [Webhooks, "list_webhooks"],
};

export default function Operations(ctx) {
  const { can, address } = ctx;
  const allowed = Object.keys(SECTIONS).filter((name) => can(SECTIONS[name][1]));
  const chosen = allowed.includes(address.params.tab) ? address.params.tab : allowed[0];
  const Section = chosen && SECTIONS[chosen][0];
  return html`<${Page} title=${s.views.operations} lead=${s.operations.lead}>
    ${chosen ? html`<${Tabs} label=${s.views.operations} chosen=${chosen} onChoose=${(tab) => address.change({ tab })} tabs=${allowed.map((name) => [name, s.operations.sections[name]])} /><${Section} key=${chosen} ...${ctx} />` : html`<${Card}><${Empty} title=${s.operations.noneAllowed} /><//>`}<//>`;
}
