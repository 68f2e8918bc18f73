/** What an account has chosen: shown, changed, and tried by a test message. */
import type { Host } from '../../core/contract/contract.ts';
import { invalid } from '../../core/json/request-body.ts';
import { GuardedClient, Unfetchable } from '../../core/tools/guarded-fetch.ts';
import { mailers } from '../common/domain/admin/alerts.ts';
import type {
  NoticeAdmin,
  NoticeChange,
  NoticeChoice,
  NoticeKind,
  NoticeKindView,
  NoticeLanguage,
} from '../common/domain/admin/notices.ts';
import { formatUsd, parseUsd } from '../common/domain/money.ts';
import { type NoticesConfig, thresholdFault, usualChannels, usualThreshold } from './config.ts';
import type { Deliveries } from './deliveries.ts';
import { testTexts } from './kinds.ts';
import type { NoticeRows, StoredSettings } from './rows.ts';

const shownMessages = 20;

interface AdminParts {
  readonly host: Host;
  readonly rows: NoticeRows;
  readonly deliveries: Deliveries;
  readonly kinds: () => readonly NoticeKind[];
  readonly config: () => NoticesConfig;
}

export function openNoticeAdmin(parts: AdminParts): NoticeAdmin {
  const { host, rows, deliveries, kinds, config } = parts;
  return {
    async settings(accountId, language) {
      const [settings, choices, messages] = await Promise.all([
        rows.settings(accountId),
        rows.choices([accountId]),
        rows.messages(accountId, shownMessages),
      ]);
      const url = settings?.url;
      return {
        kinds: kinds().map((kind) => viewOf(kind, choices.get(accountId) ?? [], config(), language)),
        mail: host.find(mailers)?.find() !== undefined,
        webhook: url === undefined ? undefined : { url, secret: settings!.secrets[0]! },
        last: messages.map(({ message, ...row }) => ({ ...row, title: message.title })),
      };
    },

    async change(accountId, change) {
      const stored = await rows.settings(accountId);
      const before = (await rows.choices([accountId])).get(accountId) ?? [];
      const choices = (change.choices ?? []).map((choice, at) => checked(choice, at, kinds()));
      const forgotten = choices.filter(({ kind, threshold }) => {
        const known = before.find((one) => one.kind === kind);
        return thresholdOf(known?.threshold) !== thresholdOf(threshold);
      });
      const webhook = webhookAfter(parts, stored, change);
      await rows.change(
        accountId,
        { language: change.language, webhook },
        choices,
        forgotten.map(({ kind }) => kind),
      );
    },

    async test(accountId, channel, language) {
      const at = host.clock.now();
      const message = { ...testTexts[language], data: [] };
      const id = `test_${host.random.bytes(8).toString('hex')}`;
      const failed = await deliveries.send(channel, { id, accountId, kind: 'test', at, message });
      return { fault: failed?.fault };
    },
  };
}

const thresholdOf = (threshold: string | undefined) => (threshold === undefined ? undefined : parseUsd(threshold));

function viewOf(
  kind: NoticeKind,
  choices: readonly NoticeChoice[],
  config: NoticesConfig,
  language: NoticeLanguage,
): NoticeKindView {
  const own = choices.find((choice) => choice.kind === kind.name);
  const usual = kind.unit === 'none' ? undefined : formatUsd(usualThreshold(config, kind));
  const threshold = own?.threshold === undefined ? usual : formatUsd(parseUsd(own.threshold));
  const channels = own?.channels ?? usualChannels(config, kind);
  return { kind: kind.name, title: kind.title[language], unit: kind.unit, channels, threshold, usual };
}

function checked(choice: NoticeChoice, at: number, kinds: readonly NoticeKind[]): NoticeChoice {
  const kind = kinds.find(({ name }) => name === choice.kind);
  if (kind === undefined) throw invalid(`There is no kind of notice "${choice.kind}".`, `kinds.${at}.kind`);
  if (choice.threshold === undefined) return choice;
  const fault = thresholdFault(kind, parseUsd(choice.threshold));
  if (fault !== undefined) throw invalid(`The threshold of "${choice.kind}" ${fault}.`, `kinds.${at}.threshold`);
  return choice;
}

function webhookAfter(
  { host, config }: AdminParts,
  stored: StoredSettings | undefined,
  { url, newSecret = false }: NoticeChange,
): Omit<StoredSettings, 'language'> {
  const kept = stored?.secrets ?? [];
  if (url === null) return { url: undefined, secrets: [] };
  const address = url ?? stored?.url;
  if (address === undefined) return { url: undefined, secrets: [] };
  if (url !== undefined) checkAddress(url, config().allow_private);
  if (kept.length > 0 && !newSecret) return { url: address, secrets: kept };
  const made = `whsec_${host.random.bytes(32).toString('base64')}`;
  return { url: address, secrets: [made, ...kept.slice(0, 1)] };
}

/** Refuses what the guard would always refuse; what a name resolves to is checked when a message is sent. */
function checkAddress(url: string, allowPrivate: boolean): void {
  const client = new GuardedClient({ allowPrivate, maxBytes: 0 });
  try {
    client.check(url);
  } catch (error) {
    if (!(error instanceof Unfetchable)) throw error;
    throw invalid(`The address of the webhook cannot be called: ${error.message}.`, 'url');
  } finally {
    void client.close();
  }
}
