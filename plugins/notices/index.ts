/** Notices to clients: what crosses a threshold of theirs is found by the upkeep, and sent by mail or webhook, once in a fleet. */
import { definePlugin, type Host, type PluginInstance } from '../../core/contract/contract.ts';
import { consolePages, mailers } from '../common/domain/admin/alerts.ts';
import { ledgerQueries } from '../common/domain/admin/ledger.ts';
import {
  accountEnds,
  accountPeople,
  movedAccounts,
  noticeAdmin,
  noticeKinds,
  noticeSender,
} from '../common/domain/admin/notices.ts';
import { priceQueries } from '../common/domain/admin/prices.ts';
import { requestQueries } from '../common/domain/admin/requests.ts';
import { database } from '../common/domain/database.ts';
import { pool } from '../common/domain/ledger.ts';
import { budgetAdmin } from '../common/domain/organizations/budgets.ts';
import { creditLineAdmin } from '../common/domain/organizations/credit-lines.ts';
import { plans } from '../common/domain/plans.ts';
import { multipliers } from '../common/domain/price-ratio.ts';
import { openNoticeAdmin } from './admin.ts';
import { Announcements } from './announcements.ts';
import { configSchema, type NoticesConfig, problemsOf } from './config.ts';
import { Deliveries } from './deliveries.ts';
import { kinds } from './kinds.ts';
import { Look } from './look.ts';
import { NoticeRows } from './rows.ts';
import { Sender } from './sender.ts';

const tickMs = 1_000;
const cleanIntervalMs = 3_600_000;
/** Longer than any threshold in days, and any period of a cap but the whole life of a key. */
const statesKeptMs = 400 * 86_400_000;

export default definePlugin<NoticesConfig>({
  name: 'notices',
  config: configSchema,
  extensionPoints: [noticeKinds],
  extends: [noticeKinds],
  services: {
    requires: [database],
    optional: [
      ...[accountEnds, accountPeople, movedAccounts, mailers, consolePages, ledgerQueries],
      ...[priceQueries, requestQueries, pool, plans, multipliers, budgetAdmin, creditLineAdmin],
    ],
    provides: [noticeSender, noticeAdmin],
  },
  async setup(host: Host, written: NoticesConfig): Promise<PluginInstance<NoticesConfig>> {
    let config = written;
    for (const kind of kinds) host.extend(noticeKinds, kind);
    const store = host.get(database);
    await store.migrate('notices', new URL('./migrations/', import.meta.url));
    const rows = new NoticeRows(store);
    const deliveries = new Deliveries(host, store, rows, () => config.allow_private);
    const sender = new Sender(host, rows, deliveries, () => config);
    const announcements = new Announcements(host, rows, sender);
    const look = new Look({ host, orm: store.orm, rows, sender, announcements }, () => config.every);
    store.onChange('account', () => look.changed());
    host.provide(noticeSender, sender);
    host.provide(
      noticeAdmin,
      openNoticeAdmin({ host, rows, deliveries, kinds: () => sender.kinds(), config: () => config }),
    );
    return {
      checks: { problems: () => problemsOf(config, sender.kinds()) },
      reload: {
        prepare(changed) {
          const [problem] = problemsOf(changed, sender.kinds());
          if (problem !== undefined) throw new Error(problem.message);
          return () => {
            config = changed;
          };
        },
      },
      lifecycle: {
        start() {
          host.every(tickMs, 'look for notices', () => look.whenDue());
          host.every(tickMs, 'send notices', () => deliveries.look());
          host.every(cleanIntervalMs, 'forget old notices', () => {
            const now = host.clock.now();
            return rows.removeOld(now - config.retention, now - statesKeptMs);
          });
        },
        stop: () => look.release(),
      },
    };
  },
});
